"""What the tests of access share: a client, a message, a clock that is moved by hand."""

from __future__ import annotations

import pytest

from brookmq.access.hook import HookLimits
from brookmq.access.hooks import Hooks
from brookmq.access.points import ClientInfo, Credentials
from brookmq.base.alarms import Alarms
from brookmq.base.message import Message

# Generous where time is not what is tested: the machines that run the tests are small and shared.
PATIENT = HookLimits(answer_seconds_max=10.0, hold_seconds_max=5.0, threads_max=2, waiting_max=2, events_max=5)
HASTY = HookLimits(answer_seconds_max=0.3, hold_seconds_max=0.1, threads_max=2, waiting_max=2, events_max=5)


class Clock:
    """Unix time that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def alarms() -> Alarms:
    return Alarms()


@pytest.fixture
def hooks(alarms: Alarms, clock: Clock) -> Hooks:
    return Hooks(alarms, PATIENT, clock)


@pytest.fixture
def hasty(alarms: Alarms, clock: Clock) -> Hooks:
    """Hooks with short limits, for tests that go beyond them."""
    return Hooks(alarms, HASTY, clock)


@pytest.fixture
def client() -> ClientInfo:
    return ClientInfo("device-7", "ada", "127.0.0.1:50000", 5, "default")


@pytest.fixture
def credentials(client: ClientInfo) -> Credentials:
    return Credentials(client, b"secret")


@pytest.fixture
def message() -> Message:
    return Message(b"t/1", b"payload", 1)

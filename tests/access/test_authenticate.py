"""The chain that a CONNECT goes through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from brookmq.access.authenticate import Authentication
from brookmq.access.hooks import Hooks
from brookmq.access.points import ALLOW, IGNORE, Allow, Credentials, Decision, Deny

UNKNOWN = Deny(0x86)


def answering(hooks: Hooks, point: str, answer: Decision, *, sync: bool) -> None:
    async def waiting(_: Credentials) -> Any:
        return answer

    hooks.register(point, (lambda _: answer) if sync else waiting, "test", sync=sync)


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("anonymous", "connect", "authenticate", "decision"),
    [
        (None, [], [], ALLOW),  # a node that was just installed
        (False, [], [], UNKNOWN),
        (True, [], [], ALLOW),
        (None, [], [IGNORE], UNKNOWN),  # an authenticator is there and does not know the client
        (True, [], [IGNORE], ALLOW),
        (False, [], [IGNORE], UNKNOWN),
        (None, [], [IGNORE, Allow(superuser=True)], Allow(superuser=True)),
        (True, [], [Deny(0x8C)], Deny(0x8C)),  # a clear no stays a no
        (None, [], [ALLOW, Deny()], ALLOW),
        (None, [Deny(0x8A)], [ALLOW], Deny(0x8A)),
        (None, [ALLOW], [UNKNOWN], UNKNOWN),  # a connect hook lets nobody in
        (None, [IGNORE], [], ALLOW),
    ],
)
def test_decisions(
    hooks: Hooks,
    credentials: Credentials,
    sync: bool,
    anonymous: bool | None,
    connect: list[Decision],
    authenticate: list[Decision],
    decision: Decision,
) -> None:
    chain = Authentication(hooks, anonymous)
    for answer in connect:
        answering(hooks, "connect", answer, sync=sync)
    for answer in authenticate:
        answering(hooks, "authenticate", answer, sync=sync)
    assert chain.needs_wait == (not sync and bool(connect or authenticate))
    assert asyncio.run(chain.decide(credentials)) == decision
    if not chain.needs_wait:
        assert chain.decide_now(credentials) == decision


def test_one_hook_that_waits_makes_the_chain_wait(hooks: Hooks) -> None:
    chain = Authentication(hooks)
    answering(hooks, "authenticate", ALLOW, sync=True)
    assert not chain.needs_wait
    answering(hooks, "connect", IGNORE, sync=False)
    assert chain.needs_wait

"""What a broken hook can do to a node: be counted, be told to the operator, be switched off. Nothing else."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from brookmq.access.hook import QUIET_SECONDS, STUCK_TASKS_MAX, HookLimits
from brookmq.access.hooks import Hooks
from brookmq.access.points import ALLOW, IGNORE, Access, ClientEvent, ClientInfo, Credentials, Deny
from brookmq.base.alarms import Alarms
from brookmq.base.message import Message

from .conftest import HASTY, Clock

PUBLISH = Access("publish", "t/1")


class PluginError(Exception):
    pass


def fails_in_place(*_: Any) -> Any:
    raise PluginError("oops")


def fails_in_thread(*_: Any) -> Any:
    raise PluginError("oops")


async def fails_awaited(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise PluginError("oops")


FAILING: list[tuple[Callable[..., Any], bool]] = [
    (fails_in_place, True),
    (fails_in_thread, False),
    (fails_awaited, False),
]


def run(hooks: Hooks, scenario: Callable[[], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        try:
            return await scenario()
        finally:
            await hooks.stop()

    return asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event to set
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(("function", "sync"), FAILING)
def test_guards_fail_closed(
    hooks: Hooks, function: Callable[..., Any], sync: bool, credentials: Credentials, client: ClientInfo
) -> None:
    for point in ("connect", "authenticate", "authorize"):
        hooks.register(point, function, "bad", sync=sync)

    async def scenario() -> None:
        assert await hooks.run_connect(credentials) == Deny(0x88)
        assert await hooks.run_authenticate(credentials) == Deny(0x88)
        assert await hooks.run_authorize(client, PUBLISH) == Deny(0x87)

    run(hooks, scenario)


@pytest.mark.parametrize(("function", "sync"), FAILING)
def test_decorators_fail_open(
    hooks: Hooks, function: Callable[..., Any], sync: bool, client: ClientInfo, message: Message
) -> None:
    for point in ("publish", "deliver"):
        hooks.register(point, function, "bad", sync=sync)

    async def scenario() -> None:
        assert await hooks.run_publish(client, message) is message
        assert await hooks.run_deliver(client, message) is message

    run(hooks, scenario)


def test_failing_the_other_way_is_a_choice(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    hooks.register("publish", fails_in_place, "bad", sync=True, refuse_on_error=True)
    hooks.register("authorize", fails_in_place, "bad", sync=True, refuse_on_error=False)
    assert hooks.publish_now(client, message) is None
    assert hooks.authorize_now(client, PUBLISH) is IGNORE


@pytest.mark.parametrize("answer", [None, True, "allow", 0, Message(b"t", b"", 0)])
def test_a_wrong_decision_is_a_failure(hooks: Hooks, answer: object, client: ClientInfo, alarms: Alarms) -> None:
    hooks.register("authorize", lambda *_: answer, "bad", sync=True)
    assert hooks.authorize_now(client, PUBLISH) == Deny(0x87)
    assert alarms.is_active("hook_failing/bad/authorize")


@pytest.mark.parametrize(
    "answer",
    [
        b"bytes",
        ALLOW,
        Message(b"", b"", 0),
        Message(b"a/+", b"", 0),
        Message(b"#", b"", 0),
        Message(b"a\0", b"", 0),
        Message(b"x" * 65_536, b"", 0),
        Message(b"a", b"", 3),
    ],
)
def test_a_wrong_message_is_a_failure(hooks: Hooks, answer: object, client: ClientInfo, message: Message) -> None:
    hooks.register("publish", lambda *_: answer, "bad", sync=True)
    assert hooks.publish_now(client, message) is message
    assert hooks.registered()[0].failures == 1


def test_a_forgotten_await_is_a_failure(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    async def inner() -> None: ...

    hooks.register("publish", lambda *_: inner(), "bad", sync=True)
    assert hooks.publish_now(client, message) is message
    assert hooks.registered()[0].failures == 1


@pytest.mark.parametrize("error", [SystemExit(1), StopIteration(), GeneratorExit()])
def test_odd_errors_in_threads(hooks: Hooks, error: BaseException, client: ClientInfo, message: Message) -> None:
    def odd(*_: Any) -> Any:
        raise error

    hooks.register("publish", odd, "bad")
    assert run(hooks, lambda: hooks.run_publish(client, message)) is message


def test_failures_are_logged_once_in_a_while(
    hooks: Hooks, clock: Clock, client: ClientInfo, message: Message, caplog: pytest.LogCaptureFixture
) -> None:
    hooks.register("publish", fails_in_place, "bad", sync=True)
    with caplog.at_level(logging.ERROR, "brookmq.hooks"):
        for _ in range(100):
            hooks.publish_now(client, message)
        assert [record.getMessage() for record in caplog.records] == [
            "hook publish of bad failed: PluginError: oops",
        ]
        clock.now += QUIET_SECONDS
        hooks.publish_now(client, message)
    assert caplog.messages[1:] == [
        "hook publish of bad failed: PluginError: oops (99 more failures since the last line)"
    ]
    assert hooks.registered()[0].failures == 101
    assert hooks.failures() == 101
    asyncio.run(hooks.remove("bad"))
    assert hooks.failures() == 101  # a counter never falls


def test_the_alarm_ends_after_a_quiet_time(
    hooks: Hooks, clock: Clock, alarms: Alarms, client: ClientInfo, message: Message
) -> None:
    broken = True

    def sometimes(*_: Any) -> None:
        if broken:
            raise PluginError

    hooks.register("publish", sometimes, "bad", sync=True)
    hooks.publish_now(client, message)
    broken = False
    hooks.publish_now(client, message)
    assert alarms.is_active("hook_failing/bad/publish")
    clock.now += QUIET_SECONDS
    hooks.publish_now(client, message)
    assert not alarms.is_active("hook_failing/bad/publish")
    assert alarms.history()[0].name == "hook_failing/bad/publish"


def hold_the_loop() -> None:
    time.sleep(HASTY.hold_seconds_max * 1.5)


def holds_in_the_first_step() -> Callable[..., Any]:
    async def hook(*_: Any) -> None:
        hold_the_loop()

    return hook


def holds_in_a_later_step() -> Callable[..., Any]:
    async def hook(*_: Any) -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        hold_the_loop()

    return hook


def holds_in_something_it_awaits() -> Callable[..., Any]:
    async def inner() -> None:
        await asyncio.sleep(0)
        hold_the_loop()

    async def hook(*_: Any) -> None:
        await inner()

    return hook


def holds_when_it_is_cancelled() -> Callable[..., Any]:
    async def hook(*_: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            hold_the_loop()

    return hook


@pytest.mark.parametrize(
    "make",
    [holds_in_the_first_step, holds_in_a_later_step, holds_in_something_it_awaits, holds_when_it_is_cancelled],
)
def test_a_hook_that_holds_the_loop_is_switched_off(
    hasty: Hooks, make: Callable[[], Callable[..., Any]], alarms: Alarms, client: ClientInfo, message: Message
) -> None:
    hook = hasty.register("publish", make(), "sleepy")

    async def scenario() -> None:
        assert await hasty.run_publish(client, message) is message
        await until(lambda: hook.switched_off)
        assert hasty.publish == ()  # costs nothing any more
        assert not hasty.publish_waits
        (alarm,) = (alarm for alarm in alarms.active() if alarm.name == "hook_switched_off/sleepy/publish")
        assert "held the loop for" in alarm.message

    run(hasty, scenario)


def test_a_hook_in_place_that_sleeps_is_switched_off(hasty: Hooks, client: ClientInfo, message: Message) -> None:
    hook = hasty.register("publish", lambda *_: hold_the_loop(), "sleepy", sync=True)
    hasty.publish_now(client, message)
    assert hook.switched_off
    assert hasty.publish == ()


def test_waiting_is_not_holding(client: ClientInfo, message: Message) -> None:
    async def waits(*_: Any) -> None:
        await asyncio.sleep(0.6)

    hooks = Hooks(Alarms(), HookLimits(hold_seconds_max=0.5))
    hook = hooks.register("publish", waits, "patient")
    run(hooks, lambda: hooks.run_publish(client, message))
    assert not hook.switched_off
    assert hook.failures == 0


def test_a_guard_that_is_switched_off_goes_on_refusing(hasty: Hooks, credentials: Credentials) -> None:
    """A broken authenticator must not open the door."""
    calls: list[int] = []

    async def sleepy(_: Credentials) -> Any:
        calls.append(1)
        hold_the_loop()
        return ALLOW

    hasty.register("authenticate", sleepy, "sleepy")

    async def scenario() -> None:
        await hasty.run_authenticate(credentials)
        assert await hasty.run_authenticate(credentials) == Deny(0x88)
        assert len(hasty.authenticate) == 1

    run(hasty, scenario)
    assert calls == [1]


def test_the_time_limit_of_async_hooks(hasty: Hooks, credentials: Credentials) -> None:
    cancelled: list[bool] = []

    async def never(_: Credentials) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    hook = hasty.register("authenticate", never, "slow")

    async def scenario() -> float:
        started = time.monotonic()
        assert await hasty.run_authenticate(credentials) == Deny(0x88)
        took = time.monotonic() - started
        await until(lambda: bool(cancelled))
        return took

    assert run(hasty, scenario) >= HASTY.answer_seconds_max
    assert hook.failures == 1


def test_hooks_that_refuse_to_end_are_switched_off(hasty: Hooks, client: ClientInfo, alarms: Alarms) -> None:
    async def scenario() -> None:
        release = asyncio.Event()

        async def stubborn(*_: Any) -> Any:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        hasty.register("authorize", stubborn, "stubborn")
        answers = await asyncio.gather(*(hasty.run_authorize(client, PUBLISH) for _ in range(STUCK_TASKS_MAX + 1)))
        assert set(answers) == {Deny(0x87)}
        assert alarms.is_active("hook_switched_off/stubborn/authorize")
        release.set()

    run(hasty, scenario)


def test_the_callers_cancellation_reaches_the_hook(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    """A client that goes away while a hook looks at its message leaves nothing behind."""
    ended: list[bool] = []

    async def waits(*_: Any) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    hooks.register("publish", waits, "patient")

    async def scenario() -> None:
        task = asyncio.create_task(hooks.run_publish(client, message))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: bool(ended))
        assert len(asyncio.all_tasks()) == 1

    run(hooks, scenario)


def test_blocking_hooks_that_hang(hasty: Hooks, client: ClientInfo, message: Message, alarms: Alarms) -> None:
    release = threading.Event()

    def hangs(*_: Any) -> None:
        release.wait(10)

    hook = hasty.register("publish", hangs, "hanging")

    async def scenario() -> None:
        # Two threads, two that wait for one, and a fifth that is refused at once.
        calls = [asyncio.create_task(hasty.run_publish(client, message)) for _ in range(4)]
        await asyncio.sleep(0)
        assert await hasty.run_publish(client, message) is message
        assert "too many calls waiting" in alarms.active()[0].message
        assert all([await call is message for call in calls])
        assert hook.switched_off
        assert alarms.is_active("hook_switched_off/hanging/publish")

    try:
        run(hasty, scenario)
    finally:
        release.set()


def test_a_hang_that_ends_is_forgiven(hasty: Hooks, client: ClientInfo, message: Message) -> None:
    """One slow call is a failure; the thread is used again when it comes back."""
    release = threading.Event()
    slow = True

    def sometimes(*_: Any) -> None:
        if slow:
            release.wait(10)

    hook = hasty.register("publish", sometimes, "slow")

    async def scenario() -> None:
        nonlocal slow
        await hasty.run_publish(client, message)
        assert hook.failures == 1
        slow = False
        release.set()
        for _ in range(10):
            await hasty.run_publish(client, message)
        assert hook.failures == 1
        assert not hook.switched_off

    run(hasty, scenario)


def test_failing_listeners_hear_the_next_event(hooks: Hooks, client: ClientInfo) -> None:
    seen: list[float] = []

    async def picky(event: ClientEvent) -> None:
        seen.append(event.at)
        if event.at == 1.0:
            raise PluginError

    hooks.register("client_off", picky, "picky")

    async def scenario() -> None:
        for number in range(3):
            hooks.tell("client_off", ClientEvent(client, float(number)))

    run(hooks, scenario)
    assert seen == [0.0, 1.0, 2.0]


def test_stopping_ends_everything(hooks: Hooks, client: ClientInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.access.hooks.STOP_SECONDS_MAX", 0.05)

    async def waits(*_: Any) -> None:
        await asyncio.sleep(60)

    hooks.register("client_online", waits, "one")
    before = threading.active_count()

    async def scenario() -> None:
        hooks.tell("client_online", ClientEvent(client, 0.0))
        await asyncio.sleep(0)
        await hooks.stop()
        assert len(asyncio.all_tasks()) == 1

    run(hooks, scenario)
    assert threading.active_count() <= before

"""Hook points: order, answers, events, and what is free when nobody listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from brookmq.access.hooks import Hooks
from brookmq.access.points import (
    ALLOW,
    DECIDE_POINTS,
    DROP,
    IGNORE,
    MESSAGE_POINTS,
    POINTS,
    Access,
    Allow,
    ClientEvent,
    ClientInfo,
    Credentials,
    Decision,
    Deny,
    PublishAnswer,
    SubscriptionEvent,
)
from brookmq.access.registrar import HookRegistrar
from brookmq.base.alarms import Alarms
from brookmq.base.errors import CallerError
from brookmq.base.message import Message

PUBLISH = Access("publish", "t/1", 1)


def in_place(answer: Any) -> tuple[Callable[..., Any], bool]:
    return lambda *_: answer, True


def in_thread(answer: Any) -> tuple[Callable[..., Any], bool]:
    return lambda *_: answer, False


def awaited(answer: Any) -> tuple[Callable[..., Any], bool]:
    async def hook(*_: Any) -> Any:
        await asyncio.sleep(0)
        return answer

    return hook, False


class CallableObject:
    """A hook that is an object with ``async def __call__``."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def __call__(self, *_: Any) -> Any:
        return self.answer


def as_object(answer: Any) -> tuple[Callable[..., Any], bool]:
    return CallableObject(answer), False


Kind = Callable[[Any], tuple[Callable[..., Any], bool]]


@pytest.fixture(params=[in_place, in_thread, awaited, as_object], ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Kind:
    made: Kind = request.param
    return made


def add(hooks: Hooks, point: str, hook: tuple[Callable[..., Any], bool], **more: Any) -> None:
    function, sync = hook
    hooks.register(point, function, "test", sync=sync, **more)


def run(hooks: Hooks, scenario: Callable[[], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        try:
            return await scenario()
        finally:
            await hooks.stop()

    return asyncio.run(whole())


def test_unused_points_are_empty(hooks: Hooks) -> None:
    assert all(getattr(hooks, point) == () for point in POINTS)
    assert not any(getattr(hooks, f"{point}_waits") for point in (*DECIDE_POINTS, *MESSAGE_POINTS))


def test_an_unknown_point_is_a_bug(hooks: Hooks) -> None:
    with pytest.raises(CallerError, match="no hook point 'publsh'"):
        hooks.register("publsh", lambda: None, "test")


def test_waiting_is_known_before(hooks: Hooks) -> None:
    add(hooks, "publish", in_place(None))
    assert not hooks.publish_waits
    add(hooks, "publish", awaited(None))
    assert hooks.publish_waits


@pytest.mark.parametrize("answer", [ALLOW, Allow(superuser=True), Deny(0x86, "no"), IGNORE])
def test_decisions(hooks: Hooks, kind: Kind, answer: Decision, credentials: Credentials, client: ClientInfo) -> None:
    add(hooks, "authenticate", kind(answer))
    add(hooks, "authorize", kind(answer))

    async def scenario() -> None:
        assert await hooks.run_authenticate(credentials) == answer
        assert await hooks.run_authorize(client, PUBLISH) == answer

    run(hooks, scenario)


def test_the_first_who_knows_decides(hooks: Hooks, kind: Kind, client: ClientInfo) -> None:
    add(hooks, "authorize", kind(IGNORE))
    add(hooks, "authorize", kind(Deny(0x87)))
    add(hooks, "authorize", kind(ALLOW))
    assert run(hooks, lambda: hooks.run_authorize(client, PUBLISH)) == Deny(0x87)


def test_order_goes_before_registration(hooks: Hooks, client: ClientInfo) -> None:
    add(hooks, "authorize", in_place(ALLOW))
    add(hooks, "authorize", in_place(Deny()), order=-1)
    assert hooks.authorize_now(client, PUBLISH) == Deny()


def test_connect_hooks_only_refuse(hooks: Hooks, kind: Kind, credentials: Credentials) -> None:
    add(hooks, "connect", kind(ALLOW))
    add(hooks, "connect", kind(Deny(0x8A)))
    assert run(hooks, lambda: hooks.run_connect(credentials)) == Deny(0x8A)


def test_connect_hooks_in_place(hooks: Hooks, credentials: Credentials) -> None:
    add(hooks, "connect", in_place(ALLOW))
    assert hooks.connect_now(credentials) is IGNORE
    add(hooks, "connect", in_place(Deny(0x8A)))
    assert hooks.connect_now(credentials) == Deny(0x8A)


def test_messages_go_through_all(hooks: Hooks, kind: Kind, client: ClientInfo, message: Message) -> None:
    changed = Message(b"t/2", b"new", 0)
    add(hooks, "publish", kind(None))
    add(hooks, "publish", kind(changed))
    assert run(hooks, lambda: hooks.run_publish(client, message)) is changed


def test_each_gets_what_the_one_before_made(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    async def longer(_: ClientInfo, given: Message) -> Message:
        return Message(given.topic + b"/x", given.payload, given.qos)

    for _ in range(3):
        hooks.register("deliver", longer, "test")
    result = run(hooks, lambda: hooks.run_deliver(client, message))
    assert result.topic == b"t/1/x/x/x"
    assert message.topic == b"t/1"


def test_a_dropped_message_goes_no_further(hooks: Hooks, kind: Kind, client: ClientInfo, message: Message) -> None:
    seen: list[Message] = []
    add(hooks, "publish", kind(DROP))
    hooks.register("publish", lambda _, given: seen.append(given), "test", sync=True)
    assert run(hooks, lambda: hooks.run_publish(client, message)) is None
    assert seen == []


def test_in_place_without_a_loop(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    add(hooks, "publish", in_place(None))
    add(hooks, "deliver", in_place(DROP))
    assert hooks.publish_now(client, message) is message
    assert hooks.deliver_now(client, message) is None


def test_blocking_hooks_leave_the_loop(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    threads: list[str] = []
    hooks.register("publish", lambda *_: threads.append(threading.current_thread().name), "test")
    run(hooks, lambda: hooks.run_publish(client, message))
    assert threads == ["hook-test-1"]


def test_events_come_in_order_and_nobody_waits(hooks: Hooks, kind: Kind, client: ClientInfo) -> None:
    seen: list[float] = []
    function, sync = kind(None)

    async def slowly(event: ClientEvent) -> None:
        await asyncio.sleep(0)
        seen.append(event.at)

    hooks.register("client_online", slowly, "test")
    hooks.register("client_online", function, "other", sync=sync)

    async def scenario() -> None:
        for number in range(5):
            hooks.tell("client_online", ClientEvent(client, float(number)))

    run(hooks, scenario)  # stopping waits for events that are under way
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [hook.dropped for hook in hooks.registered()] == []


def test_a_slow_listener_loses_events_not_the_node(hooks: Hooks, client: ClientInfo, alarms: Alarms) -> None:
    async def scenario() -> tuple[int, int]:
        gate = asyncio.Event()
        seen: list[str] = []

        async def waits(event: SubscriptionEvent) -> None:
            await gate.wait()
            seen.append(event.filter)

        hook = hooks.register("subscribe", waits, "test")
        hooks.tell("subscribe", SubscriptionEvent(client, "first", 0.0))
        await asyncio.sleep(0)  # the first is under way
        for number in range(8):  # events_max is 5
            hooks.tell("subscribe", SubscriptionEvent(client, str(number), 0.0))
        assert alarms.is_active("hook_failing/test/subscribe")
        gate.set()
        await hooks.stop()
        return len(seen), hook.dropped

    assert run(hooks, scenario) == (6, 3)


def test_removing_an_owner_leaves_the_others(hooks: Hooks, client: ClientInfo) -> None:
    hooks.register("authorize", lambda *_: Deny(), "one", sync=True)
    hooks.register("authorize", lambda *_: ALLOW, "two", sync=True)

    async def scenario() -> None:
        await hooks.remove("one")
        assert hooks.authorize_now(client, PUBLISH) == ALLOW
        assert [hook.name for hook in hooks.registered()] == ["two/authorize"]

    run(hooks, scenario)
    assert hooks.authorize == ()


def test_typed_registration(hooks: Hooks, client: ClientInfo, message: Message) -> None:
    registrar = HookRegistrar(hooks, "typed")

    def stamp(_: ClientInfo, given: Message) -> PublishAnswer:
        return DROP if given.retain else None

    registrar.register("publish", stamp, sync=True)
    assert hooks.publish_now(client, message) is message
    assert hooks.registered()[0].owner == "typed"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a/b", "a/b"),
        ("$share/g/secret/#", "secret/#"),
        ("$queue/secret", "secret"),
        ("$exclusive/secret", "secret"),
        ("$share/g/$exclusive/secret", "secret"),
        ("$delayed/5/secret", "secret"),
        ("$delayed/5/$SYS/x", "$SYS/x"),
        ("$SYS/x", "$SYS/x"),
        ("$share", "$share"),
        ("a/$share/g/b", "a/$share/g/b"),
    ],
)
def test_access_is_about_the_topic_that_is_meant(written: str, meant: str) -> None:
    assert Access("subscribe", written).topic == meant

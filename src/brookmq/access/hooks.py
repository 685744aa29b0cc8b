"""The registry of hooks: who is called at which point (``points`` says what each gets and answers).

Each point is a tuple that is empty when nobody uses it, so what a hook costs on the path of a message is
``if hooks.publish:`` and nothing else. ``publish_waits`` and the like say whether a point can be answered in place
(``publish_now``) or only by waiting (``await run_publish``).

A hook that was switched off is not called again. Where it guards something (``refuse_on_error``) it stays in its tuple
and refuses: a broken authenticator must never mean that everybody comes in. Elsewhere it is gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from brookmq.access.hook import FAILED, Hook, HookLimits
from brookmq.access.points import (
    DECIDE_POINTS,
    DROP,
    IGNORE,
    POINTS,
    REFUSE_REASON,
    Access,
    Allow,
    ClientEvent,
    ClientInfo,
    ClientPoint,
    Credentials,
    Decision,
    Deny,
    SubscriptionEvent,
    SubscriptionPoint,
)
from brookmq.base.alarms import Alarms
from brookmq.base.errors import CallerError
from brookmq.base.message import Message

STOP_SECONDS_MAX = 2.0  # for events that still wait when a plugin or the node stops
TOPIC_BYTES_MAX = 65_535

Hooked = tuple[Hook, ...]


class Hooks:
    """All hooks of a node, called on its event loop."""

    def __init__(
        self, alarms: Alarms, limits: HookLimits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.connect: Hooked = ()
        self.authenticate: Hooked = ()
        self.authorize: Hooked = ()
        self.publish: Hooked = ()
        self.deliver: Hooked = ()
        self.session_created: Hooked = ()
        self.session_resumed: Hooked = ()
        self.session_ended: Hooked = ()
        self.client_online: Hooked = ()
        self.client_off: Hooked = ()
        self.subscribe: Hooked = ()
        self.unsubscribe: Hooked = ()
        self.connect_waits = False  # one of its hooks cannot be answered in place; so for the others
        self.authenticate_waits = False
        self.authorize_waits = False
        self.publish_waits = False
        self.deliver_waits = False
        self._all: list[Hook] = []
        self._failures_before = 0  # of hooks that are gone
        self._alarms = alarms
        self._limits = limits if limits is not None else HookLimits()
        self._clock = clock

    def register(
        self,
        point: str,
        function: Callable[..., Any],
        owner: str,
        *,
        sync: bool = False,
        refuse_on_error: bool | None = None,
        order: int = 0,
    ) -> Hook:
        """Call a function at a point, after those with a lower ``order`` and those that came before."""
        if point not in POINTS:
            raise CallerError(f"no hook point {point!r}; there are {', '.join(POINTS)}")
        hook = Hook(
            point,
            function,
            owner,
            sync=sync,
            refuse_on_error=point in DECIDE_POINTS if refuse_on_error is None else refuse_on_error,
            order=order,
            limits=self._limits,
            alarms=self._alarms,
            clock=self._clock,
            on_switched_off=lambda switched_off: self._arrange(switched_off.point),
        )
        self._all.append(hook)
        self._arrange(point)
        return hook

    async def remove(self, owner: str) -> None:
        """Take out everything that this owner registered."""
        gone = [hook for hook in self._all if hook.owner == owner]
        self._failures_before += sum(hook.failures for hook in gone)
        self._all = [hook for hook in self._all if hook.owner != owner]
        for point in {hook.point for hook in gone}:
            self._arrange(point)
        await asyncio.gather(*(hook.stop(STOP_SECONDS_MAX) for hook in gone))

    def withdraw(self, hook: Hook) -> None:
        """Take out one ``sync`` hook, unless it is out: nothing of it can be under way."""
        if hook not in self._all:
            return
        self._failures_before += hook.failures
        self._all.remove(hook)
        self._arrange(hook.point)

    async def stop(self) -> None:
        """Take out every hook."""
        for owner in {hook.owner for hook in self._all}:
            await self.remove(owner)

    def failures(self) -> int:
        """Errors, wrong answers and time-outs of all hooks since the start, for the metrics."""
        return self._failures_before + sum(hook.failures for hook in self._all)

    def registered(self) -> list[Hook]:
        """All hooks with their figures, for listings."""
        return list(self._all)

    def _arrange(self, point: str) -> None:
        hooked = [hook for hook in self._all if hook.point == point and (not hook.switched_off or hook.refuse_on_error)]
        setattr(self, point, tuple(sorted(hooked, key=lambda hook: hook.order)))
        if hasattr(self, f"{point}_waits"):
            setattr(self, f"{point}_waits", any(not hook.sync for hook in hooked))

    # Who may come in, and what they may do

    async def run_connect(self, credentials: Credentials) -> Decision:
        """Whether a CONNECT is looked at any further: the first Deny, else IGNORE."""
        for hook in self.connect:
            decision = _decision(hook, await hook.call(credentials))
            if isinstance(decision, Deny):
                return decision
        return IGNORE

    def connect_now(self, credentials: Credentials) -> Decision:
        """The same in place; only while not ``connect_waits``."""
        for hook in self.connect:
            decision = _decision(hook, hook.call_now(credentials))
            if isinstance(decision, Deny):
                return decision
        return IGNORE

    async def run_authenticate(self, credentials: Credentials) -> Decision:
        """Whether the client is who it says: the first Allow or Deny, else IGNORE."""
        for hook in self.authenticate:
            decision = _decision(hook, await hook.call(credentials))
            if decision is not IGNORE:
                return decision
        return IGNORE

    def authenticate_now(self, credentials: Credentials) -> Decision:
        """The same in place; only while not ``authenticate_waits``."""
        for hook in self.authenticate:
            decision = _decision(hook, hook.call_now(credentials))
            if decision is not IGNORE:
                return decision
        return IGNORE

    async def run_authorize(self, client: ClientInfo, access: Access) -> Decision:
        """Whether the client may do it: the first Allow or Deny, else IGNORE."""
        for hook in self.authorize:
            decision = _decision(hook, await hook.call(client, access))
            if decision is not IGNORE:
                return decision
        return IGNORE

    def authorize_now(self, client: ClientInfo, access: Access) -> Decision:
        """The same in place; only while not ``authorize_waits``."""
        for hook in self.authorize:
            decision = _decision(hook, hook.call_now(client, access))
            if decision is not IGNORE:
                return decision
        return IGNORE

    # What happens to messages

    async def run_publish(self, client: ClientInfo, message: Message) -> Message | None:
        """The message as it goes on, through all hooks in turn; None when one drops it."""
        return await _through(self.publish, client, message)

    def publish_now(self, client: ClientInfo, message: Message) -> Message | None:
        """The same in place; only while not ``publish_waits``."""
        return _through_now(self.publish, client, message)

    async def run_deliver(self, client: ClientInfo, message: Message) -> Message | None:
        """The message as this receiver gets it; None when it does not get it."""
        return await _through(self.deliver, client, message)

    def deliver_now(self, client: ClientInfo, message: Message) -> Message | None:
        """The same in place; only while not ``deliver_waits``."""
        return _through_now(self.deliver, client, message)

    # What has happened

    def tell(self, point: ClientPoint | SubscriptionPoint, event: ClientEvent | SubscriptionEvent) -> None:
        """Tell everyone at a point of an event; nobody is waited for. Ask ``if hooks.client_online:`` before."""
        for hook in cast("Hooked", getattr(self, point)):
            hook.tell(event)


def _decision(hook: Hook, answer: Any) -> Decision:
    if answer is IGNORE or isinstance(answer, Allow | Deny):
        return answer
    if answer is not FAILED:
        hook.failed(f"answered {answer!r}: neither Allow, Deny nor IGNORE")
    return Deny(REFUSE_REASON[hook.point]) if hook.refuse_on_error else IGNORE


async def _through(hooked: Hooked, client: ClientInfo, message: Message) -> Message | None:
    going: Message | None = message
    for hook in hooked:
        if going is None:
            break
        going = _message(hook, going, await hook.call(client, going))
    return going


def _through_now(hooked: Hooked, client: ClientInfo, message: Message) -> Message | None:
    going: Message | None = message
    for hook in hooked:
        if going is None:
            break
        going = _message(hook, going, hook.call_now(client, going))
    return going


def _message(hook: Hook, before: Message, answer: Any) -> Message | None:
    if answer is None or answer is before:
        return before
    if answer is DROP:
        return None
    if answer is not FAILED:
        if isinstance(answer, Message) and _is_sound(answer):
            return answer
        hook.failed(f"answered {answer!r}: neither a sound Message, None nor DROP")
    return None if hook.refuse_on_error else before


def _is_sound(message: Message) -> bool:
    """Whether a message that a hook made may go on: its topic is a topic name and its QoS one of three."""
    topic = message.topic
    return (
        0 < len(topic) <= TOPIC_BYTES_MAX
        and b"+" not in topic
        and b"#" not in topic
        and b"\0" not in topic
        and 0 <= message.qos <= 2
    )

"""Events of the node as MQTT messages under ``$events/`` (``base.events`` has the list).

What happened is told in the middle of other work, so it is published at the end of the turn, in order. An event that
nobody wants (no subscriber, no capture filter) costs a look at its audience and is not even encoded. While a node that
starts does not know yet who wants what, events wait. When more wait than are taken, the rest is dropped and counted: a
node whose clients all leave at once has other things to do.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from brookmq.access.hook import Hook
from brookmq.access.points import ClientEvent, SubscriptionEvent
from brookmq.base.events import EVENTS, topic_of
from brookmq.base.message import Message
from brookmq.broker.broker import Broker

OWNER: Final = "events"
WAITING_MAX: Final = 20_000  # events that are not published yet
SLICE: Final = 100  # published in one turn
DROPS_EVERY_S: Final = 1.0
DROPPED: Final = "dropped_"
QOS: Final = 1
SUBSCRIBED: Final = "subscribed"
PREFIX: Final = "$events"


class EventMessages:
    """``call_soon`` is the loop's."""

    def __init__(self, broker: Broker, node: str, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self.dropped = 0
        self._broker = broker
        self._node = node
        self._call_soon = call_soon
        self._waiting: deque[tuple[str, float, Mapping[str, Any]]] = deque()
        self._armed = False  # the end of the turn is awaited
        self._drops: dict[str, int] = {}  # counters when they were last looked at
        self._drops_due = 0.0
        self._hooks: dict[str, Hook] = {}  # by the event's name
        self._arrange()

    def _arrange(self) -> None:
        """Hooks for what somebody wants, and for subscriptions: a call of each hook is a tenth of a connect."""
        hooks = self._broker.hooks
        for name, event in EVENTS.items():
            if not event.point:
                continue
            wanted = name == SUBSCRIBED or self._wanted(name)
            if wanted and name not in self._hooks:
                self._hooks[name] = hooks.register(event.point, self._teller(name), OWNER, sync=True)
            elif not wanted and name in self._hooks:
                hooks.withdraw(self._hooks.pop(name))

    def tick(self, now: float) -> None:
        """What waited for a start to end; and messages that were dropped since the last time, by reason."""
        self._arrange()
        self._arm()
        if now < self._drops_due:
            return
        self._drops_due = now + DROPS_EVERY_S
        counted = self._broker.counters.as_dict()
        for name, count in counted.items():
            if name.startswith(DROPPED) and count > self._drops.get(name, 0):
                more = {"reason": name.removeprefix(DROPPED), "count": count - self._drops.get(name, 0)}
                self._drops[name] = count
                if self._wanted("message_dropped"):
                    self._tell("message_dropped", now, more)

    def _teller(self, name: str) -> Callable[[Any], None]:
        def tell(event: ClientEvent | SubscriptionEvent) -> None:
            if isinstance(event, SubscriptionEvent) and PREFIX in event.filter:
                self._arrange()  # before its SUBACK: from then on it gets what happens
            if self._wanted(name):
                self._tell(name, event.at or time.time(), _columns(name, event))

        return tell

    def _wanted(self, name: str) -> bool:
        if not self._broker.index.complete:
            return True  # not known yet
        audience = self._broker.index.audience(topic_of(name))
        return bool(audience.targets or audience.groups or audience.durable)

    def _tell(self, name: str, at: float, columns: Mapping[str, Any]) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        self._waiting.append((name, at, columns))
        self._arm()

    def _arm(self) -> None:
        if self._waiting and not self._armed and self._broker.index.complete:
            self._armed = True
            self._call_soon(self._publish)

    def _publish(self) -> None:
        self._armed = False
        for _ in range(min(SLICE, len(self._waiting))):
            name, at, columns = self._waiting.popleft()
            if self._wanted(name):
                body = json.dumps({"event": name, "at": at, "node": self._node, **columns}, ensure_ascii=False)
                message = Message(topic_of(name), body.encode(), QOS, False, b"", 0.0, at)
                self._broker.publish(message, None, at)
        self._arm()


def _columns(name: str, event: ClientEvent | SubscriptionEvent) -> dict[str, Any]:
    """What the event says, under the names of its columns."""
    client = event.client
    said = {
        "client_id": client.client_id,
        "username": client.username,
        "address": client.address,
        "listener": client.listener,
        "protocol_version": client.protocol_version,
    }
    if isinstance(event, SubscriptionEvent):
        said |= {"filter": event.filter, "qos": event.qos}
    else:
        said |= {"reason": event.reason}
    return {column: said[column] for column in EVENTS[name].columns}

"""What the broker keeps of a client: subscriptions, the QoS state, and what it has not got yet.

A *transient* session (expiry 0) ends with its connection, so it keeps no copy of what it sent. A *kept* one outlives
it: every unacknowledged message is held, in the order in which it was sent, and sent again with DUP when the client is
back.

The way of a message at QoS 1 or 2 to a session:

    queue ──(window has room, outlet takes it)──► window, held ──(PUBACK / PUBREC)──► done

and directly to the window when the queue is empty. The queue is bounded by count and bytes; ``queue_full`` says which
end gives way. What a session must persist, and how it reads what it missed, is all in this class: ``held``, ``queue``,
``open_ids``, ``subscriptions``, ``expiry`` and ``will``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.inflight import FREE, PUBCOMP_DUE, OpenIds, Window
from brookmq.broker.outlet import MESSAGE_WORTH, Outlet
from brookmq.broker.subscription import Subscription
from brookmq.mqtt.kernel import Run, acks
from brookmq.mqtt.publish import alias_property, encode_publish, expiry_property

PUBREL_HEAD = 0x62


class SessionLimits:
    """The bounds of every session of a node, from the configuration."""

    __slots__ = ("drop_oldest", "inflight_max", "queue_bytes_max", "queue_count_max", "queue_qos0")

    def __init__(
        self,
        inflight_max: int = 1024,
        queue_count_max: int = 1000,
        queue_bytes_max: int = 8 << 20,
        drop_oldest: bool = True,
        queue_qos0: bool = False,
    ) -> None:
        self.inflight_max = inflight_max
        self.queue_count_max = queue_count_max
        self.queue_bytes_max = queue_bytes_max
        self.drop_oldest = drop_oldest
        self.queue_qos0 = queue_qos0


class Delivery:
    """One message for one session, as it waits in the queue or is held until it is acknowledged."""

    __slots__ = ("group", "identifiers", "message", "qos", "retain")

    def __init__(self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object) -> None:
        self.message = message
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers
        self.group = group  # the shared group it came through: another member may get it when this one leaves


class Publication:
    """A run on its way, with its messages as objects for those who keep them: made when first needed, shared by all."""

    __slots__ = ("client_id", "messages", "now", "run", "topic", "username")

    def __init__(self) -> None:
        self.run = Run()
        self.topic = b""
        self.client_id = ""
        self.username: str | None = None
        self.now = 0.0
        self.messages: list[Message | None] | None = None

    def message(self, index: int) -> Message:
        if self.messages is None:
            self.messages = [None] * self.run.count
        message = self.messages[index]
        if message is None:
            run = self.run
            message = Message(
                self.topic, run.payload(index), run.qos, False, b"", 0.0, self.now, self.client_id, self.username
            )
            self.messages[index] = message
        return message


class Session:
    """Invariants: ``outlet`` is None exactly while no client is connected; ``held`` has the packet ids of the window
    for which something is kept; the queue is not empty only while the window or the outlet is full, or the client is
    away."""

    def __init__(self, client_id: str, limits: SessionLimits, counters: Counters) -> None:
        self.client_id = client_id
        self.username: str | None = None
        self.limits = limits
        self.counters = counters
        self.version = 4
        self.version5 = False
        self.expiry = 0.0  # seconds that it outlives its connection; inf = for ever
        self.kept = False  # expiry is above zero
        self.created_at = 0.0
        self.disconnected_at = 0.0
        self.last_client: Any = None  # ClientInfo of its last connection, for listings
        self.keep_alive = 0  # seconds, of its last connection, and so the next two
        self.clean_start = True
        self.connected_at = 0.0
        self.generation = 0  # raised at each connect: a timer of an earlier one is void
        self.channel: Any = None  # the Channel that holds it
        self.will: object = None
        self.subscriptions: dict[str, Subscription] = {}  # by the filter that the client gave
        self.outlet: Outlet | None = None
        self.plain = True  # runs can be handed to it as they are: no mount point, no topic alias, no hook
        self.intercept: Callable[[Session, Delivery, float], None] | None = None  # the deliver hooks, if there are any
        self.mount = b""
        self.packet_size_max = 0xFFFFFFFF
        self.alias_max = 0
        self.aliases: dict[bytes, int] | None = None  # outbound, of this connection
        self.window: Window | None = None
        self.window_limit = limits.inflight_max
        self.held: dict[int, Delivery | None] | None = None  # None = PUBREL is out, PUBCOMP not yet here
        self.to_resend: deque[int] | None = None  # packet ids that this connection has not seen yet
        self.queue: deque[Delivery] | None = None
        self.queue_bytes = 0
        self.open_ids: OpenIds | None = None
        self.sent_count = 0
        self.received_count = 0
        self.dropped_count = 0

    # -- runs: the fast way

    def send_run(self, publication: Publication, qos: int, first: int, count: int, group: object) -> None:
        """Messages ``first`` to ``first + count`` of a run at QoS 1 or 2. The caller has checked ``plain``."""
        outlet = self.outlet
        run = publication.run
        if outlet is not None and not self.queue and self.to_resend is None and outlet.size <= outlet.high:
            window = self.window
            if window is None:
                window = self.window = Window(self.window_limit)
            room = window.limit - window.count
            fit = min(count, room)
            if fit > 0:
                ids = window.take(fit, qos)
                outlet.put(run.with_ids(self.version5, qos, ids, first))
                self.counters.messages_sent += fit
                self.sent_count += fit
                if self.kept or group is not None:
                    self._hold(publication, qos, first, ids, group)
                if fit == count:
                    return
                first += fit
                count -= fit
        for index in range(first, first + count):
            self.enqueue(Delivery(publication.message(index), qos, False, b"", group))

    def _hold(self, publication: Publication, qos: int, first: int, ids: bytes, group: object) -> None:
        held = self.held
        if held is None:
            held = self.held = {}
        for i in range(0, len(ids), 2):
            held[ids[i] << 8 | ids[i + 1]] = Delivery(publication.message(first + i // 2), qos, False, b"", group)

    # -- single messages

    def send(self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float) -> None:
        """One message, at the QoS that its subscription allows."""
        if self.intercept is not None:
            self.intercept(self, Delivery(message, qos, retain, identifiers, group), now)
        else:
            self.send_judged(message, qos, retain, identifiers, group, now)

    def send_judged(
        self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float
    ) -> None:
        """The same, after the deliver hooks have had their say."""
        outlet = self.outlet
        if qos == 0:
            if outlet is None:
                if self.limits.queue_qos0 and self.kept:
                    self.enqueue(Delivery(message, 0, retain, identifiers, group))
                else:
                    self.counters.dropped_offline_qos0 += 1
            elif outlet.overflows():
                self.counters.dropped_output_full += 1
                self.dropped_count += 1
            else:
                self._write(message, 0, 0, retain, identifiers, False, now)
            return
        delivery = Delivery(message, qos, retain, identifiers, group)
        if outlet is None or self.queue or self.to_resend is not None or not self._deliver(delivery, now):
            self.enqueue(delivery)

    def _deliver(self, delivery: Delivery, now: float) -> bool:
        """Send one now; False when the window or the outlet has no room."""
        outlet = self.outlet
        if outlet is None or outlet.size > outlet.high:
            return False
        qos = delivery.qos
        if qos == 0:
            self._write(delivery.message, 0, 0, delivery.retain, delivery.identifiers, False, now)
            return True
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        if window.count >= window.limit:
            return False
        ids = window.take(1, qos)
        packet_id = ids[0] << 8 | ids[1]
        message = delivery.message
        if not self._write(message, qos, packet_id, delivery.retain, delivery.identifiers, False, now):
            window.move(ids, qos, FREE)
        elif self.kept or delivery.group is not None:
            if self.held is None:
                self.held = {}
            self.held[packet_id] = delivery
        return True

    def _write(
        self, message: Message, qos: int, packet_id: int, retain: bool, identifiers: bytes, dup: bool, now: float
    ) -> bool:
        """Encode for this client and put into its outlet; False when the message is expired or too large for it."""
        outlet = self.outlet
        if outlet is None:
            return False
        properties = b""
        topic = message.topic
        if self.mount and topic.startswith(self.mount):
            topic = topic[len(self.mount) :]
        expires_at = message.expires_at
        if expires_at != 0.0 and now >= expires_at and not (dup and qos == 2):  # begun is begun [MQTT-4.3.3-7]
            self.counters.dropped_expired += 1  # [MQTT-3.3.2-5]
            return False
        name = topic
        if self.version5:
            properties = message.properties
            if identifiers:
                properties = identifiers + properties
            if expires_at != 0.0:
                properties = expiry_property(max(1, int(expires_at - now + 0.5))) + properties  # [MQTT-3.3.2-6]
            if self.alias_max:
                alias = self._alias(topic)
                if alias > 0:
                    properties = alias_property(alias) + properties
                    name = b""
                elif alias < 0:
                    properties = alias_property(-alias) + properties
        head = 0x30 | qos << 1 | (1 if retain else 0) | (8 if dup else 0)
        packet = encode_publish(head, name, packet_id, self.version5, properties, message.payload)
        if len(packet) > self.packet_size_max:  # [MQTT-3.1.2-24, -25]
            if self.alias_max and self.aliases is not None and name:
                self.aliases.pop(topic, None)  # the client never saw the alias of this packet
            self.counters.dropped_too_large += 1
            return False
        outlet.put(packet)
        self.counters.messages_sent += 1
        self.sent_count += 1
        return True

    def _alias(self, topic: bytes) -> int:
        """The topic's alias when the client knows it, minus a new one when there is one left, else 0.
        [MQTT-3.1.2-26]"""
        if self.aliases is None:
            self.aliases = {}
        alias = self.aliases.get(topic)
        if alias is not None:
            return alias
        if len(self.aliases) < self.alias_max:
            number = len(self.aliases) + 1
            self.aliases[topic] = number
            return -number
        return 0

    # -- the queue

    def enqueue(self, delivery: Delivery) -> None:
        size = delivery.message.size()
        limits = self.limits
        if limits.queue_count_max == 0 or size > limits.queue_bytes_max:  # not even an empty queue has room for it
            self.counters.dropped_queue_full += 1
            self.dropped_count += 1
            return
        queue = self.queue
        if queue is None:
            queue = self.queue = deque()
            if self.outlet is not None and not self.outlet.blocked:
                self.outlet.fall_behind()
        while queue and (len(queue) >= limits.queue_count_max or self.queue_bytes + size > limits.queue_bytes_max):
            self.counters.dropped_queue_full += 1
            self.dropped_count += 1
            if not limits.drop_oldest:
                return
            self.queue_bytes -= queue.popleft().message.size()
        queue.append(delivery)
        self.queue_bytes += size
        self.counters.messages_queued += 1
        if self.outlet is not None and self.full():
            self.outlet.press()

    def pump(self, now: float) -> None:
        """Send what the window and the outlet take: first what has to be sent again, then from the queue."""
        if self.to_resend is not None and not self._resend(now):
            return
        queue = self.queue
        while queue:
            delivery = queue[0]
            if not self._deliver(delivery, now):
                return
            queue.popleft()
            self.queue_bytes -= delivery.message.size()
            if self.outlet is not None:
                self.outlet.credit += MESSAGE_WORTH
        self.queue = None
        if self.outlet is not None:
            self.outlet.relieve()

    def full(self) -> bool:
        """More than half of the queue is in use: publishers should be slowed down while its client is there."""
        queue = self.queue
        return queue is not None and (
            len(queue) * 2 > self.limits.queue_count_max or self.queue_bytes * 2 > self.limits.queue_bytes_max
        )

    # -- acknowledgements

    def acknowledged(self, ids: bytes, state: int) -> int:
        """PUBACK or PUBCOMP came for these ids. Returns how many of them were due."""
        window = self.window
        if window is None:
            return 0
        moved = window.move(ids, state, FREE)
        held = self.held
        if held:
            for i in range(0, len(ids), 2):
                packet_id = ids[i] << 8 | ids[i + 1]
                if window.state(packet_id) == FREE:  # else it was another kind of acknowledgement than is due
                    held.pop(packet_id, None)
        return moved

    def received(self, ids: bytes) -> int:
        """PUBREC came for these ids: the message is the client's now, the id is not free yet. [MQTT-4.3.3-4]"""
        window = self.window
        if window is None:
            return 0
        moved = window.move(ids, 2, PUBCOMP_DUE)
        held = self.held
        if held:
            for i in range(0, len(ids), 2):
                packet_id = ids[i] << 8 | ids[i + 1]
                if packet_id in held and window.state(packet_id) == PUBCOMP_DUE:
                    held[packet_id] = None
        return moved

    def resend(self) -> None:
        """The client is back: everything unacknowledged goes out again, in its order, before anything new.
        [MQTT-4.4.0-1]"""
        self.to_resend = deque(self.held) if self.held else None

    def _resend(self, now: float) -> bool:
        """As many as the client's receive maximum allows; True when all are out. DUP is set, PUBREL goes where PUBREC
        had come. [MQTT-3.3.1-1, MQTT-4.6.0-1, MQTT-3.3.4-9]"""
        window, held, waiting, outlet = self.window, self.held, self.to_resend, self.outlet
        if window is None or held is None or waiting is None or outlet is None:
            self.to_resend = None
            return True
        while waiting:
            if len(held) - len(waiting) >= window.limit or outlet.size > outlet.high:
                return False
            packet_id = waiting.popleft()
            if packet_id not in held:
                continue
            ids = packet_id.to_bytes(2, "big")
            delivery = held[packet_id]
            if delivery is None:
                outlet.put(acks(PUBREL_HEAD, ids))
            elif self._write(
                delivery.message, delivery.qos, packet_id, delivery.retain, delivery.identifiers, True, now
            ):
                self.counters.messages_resent += 1
            else:
                window.move(ids, delivery.qos, FREE)
                del held[packet_id]
        self.to_resend = None
        return True

    def take_shared(self) -> list[Delivery]:
        """The client has left for good: what came through shared groups and may go to another member. QoS 2 that was
        sent stays with its client. [MQTT-4.8.2-4, -5]"""
        left: list[Delivery] = []
        if self.held:
            left.extend(d for d in self.held.values() if d is not None and d.group is not None and d.qos == 1)
        if self.queue:
            left.extend(d for d in self.queue if d.group is not None)
        return left

    def check_invariants(self) -> None:
        if self.window is not None:
            self.window.check_invariants()
            for packet_id in self.held or ():
                if self.window.state(packet_id) == FREE:
                    raise AssertionError(f"packet id {packet_id} is held but free")
        if self.queue_bytes != sum(d.message.size() for d in self.queue or ()):
            raise AssertionError("queue_bytes is not the size of the queue")

"""What the broker keeps of a client: subscriptions, the QoS state, and how far it has got.

A *transient* session (expiry 0) ends with its connection, so it keeps no copy of what it sent; what its window does not
take waits in a bounded queue.

A *kept* session outlives its connection, and the node. It has no queue: what it gets at QoS 1 and 2 comes out of the
journal. It is *live* when everything that the journal has was handed to it, and then gets what is stored as it is
stored. Else it is *behind*: ``cursors`` has, for each shard, the first offset that it has not got, and ``catch_up``
reads on from there whenever the window and the outlet take something. A client that is slow or away is behind; nothing
is dropped and nothing is buffered for it.

    journal ──(live, or read from the cursors)──► window (packet id → position) ──(PUBACK / PUBREC)──► done

A session with a subscription at QoS 2 is *strict*: a message goes out when the session log has its packet id and
position, so that after any crash it goes out again under the same id, and not a second time. Others are written lazily.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.inflight import FREE, NOWHERE, PUBCOMP_DUE, InFlight, OpenIds, Window
from brookmq.broker.outlet import MESSAGE_WORTH, Outlet
from brookmq.broker.subscription import Subscription
from brookmq.mqtt.kernel import Run, acks
from brookmq.mqtt.publish import alias_property, encode_publish, expiry_property

if TYPE_CHECKING:
    from brookmq.broker.acknowledging import Acknowledgement
    from brookmq.broker.keeping import Keeper
    from brookmq.broker.will import Will

PUBREL_HEAD = 0x62


class SessionLimits:
    """The bounds of every session of a node, from the configuration."""

    __slots__ = ("drop_oldest", "inflight_max", "queue_bytes_max", "queue_count_max")

    def __init__(
        self,
        inflight_max: int = 1024,
        queue_count_max: int = 1000,
        queue_bytes_max: int = 8 << 20,
        drop_oldest: bool = True,
    ) -> None:
        self.inflight_max = inflight_max
        self.queue_count_max = queue_count_max
        self.queue_bytes_max = queue_bytes_max
        self.drop_oldest = drop_oldest


class Delivery:
    """One message for one session, as it waits in the queue, is held until it is acknowledged, or is judged."""

    __slots__ = ("again", "dup", "group", "identifiers", "message", "packet_id", "qos", "retain")

    def __init__(
        self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, packet_id: int = 0
    ) -> None:
        self.message = message
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers
        self.group = group  # the shared group it came through: another member may get it when this one leaves
        self.packet_id = packet_id  # its place in the window, when it has one already
        self.dup = False  # the client may have it
        self.again = False  # its place in the window is written down


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
    """Invariants: ``outlet`` is None exactly while no client is connected; ``held`` and ``via`` have packet ids of the
    window only; the queue is not empty only while the window or the outlet is full, or the client is away; ``cursors``
    is there exactly while the session is not ``live``."""

    def __init__(self, client_id: str, limits: SessionLimits, counters: Counters) -> None:
        self.client_id = client_id
        self.username: str | None = None
        self.limits = limits
        self.counters = counters
        self.version = 4
        self.version5 = False
        self.expiry = 0.0  # seconds that it outlives its connection; inf = for ever
        self.kept = False  # it is in the store: it outlives its connection, or did so until now
        self.connect_number = 0  # names this connection, and so its will, in what is stored
        self.created_at = 0.0
        self.disconnected_at = 0.0
        self.last_client: Any = None  # ClientInfo of its last connection, for listings
        self.keep_alive = 0  # seconds, of its last connection, and so the next two
        self.clean_start = True
        self.connected_at = 0.0
        self.generation = 0  # raised at each connect: a timer of an earlier one is void
        self.channel: Any = None  # the Channel that holds it
        self.will: Will | None = None
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
        self.held: dict[int, Delivery] | None = None  # by packet id, messages of the window that no journal has
        self.via: dict[int, Any] | None = None  # by packet id, the shared group that a message of the journal came by
        self.sharing: list[Any] | None = None  # readers of the groups that it is a member of
        self.to_resend: deque[InFlight] | None = None  # what this connection has not seen yet
        self.queue: deque[Delivery] | None = None
        self.replays: list[Any] | None = None  # of retained messages, for when the client is back
        self.queue_bytes = 0
        self.open_ids: OpenIds | None = None
        self.keeper: Keeper | None = None  # of a kept session: what writes it down and reads the journal for it
        self.live = True
        self.strict = False
        self.sending = 0  # writes of a strict one that are under way: what they are about goes out behind them
        self.moved = False  # its progress is not written down yet
        self.loading = False  # what it reads next is on its way from the store
        self.cursors: list[int] | None = None
        self.dup_below: list[int] | None = None  # per shard: what is below may have been sent before a crash
        self.wanted: frozenset[int] | None = None  # filter ids that it reads the journal for; made when needed
        self.matching: dict[bytes, Subscription | None] | None = None  # by topic, while it reads
        self.open_at: dict[int, int] | None = None  # inbound QoS 2: open packet id → position of its message
        self.doubtful_ids: set[int] | None = None  # of these, those from before a crash: see ``Keeper.disown``
        self.released: list[int] | None = None  # positions whose ids were released since progress was written
        self.storing: dict[int, Acknowledgement] | None = None  # inbound QoS 2: ids whose message is on its way
        self.sent_count = 0
        self.received_count = 0
        self.dropped_count = 0

    # -- runs: the fast way

    def send_run(self, publication: Publication, qos: int, first: int, count: int, group: object) -> None:
        """Messages ``first`` to ``first + count`` of a run at QoS 1 or 2 to a transient session. The caller has checked
        ``plain``."""
        outlet = self.outlet
        run = publication.run
        if outlet is not None and not self.queue and outlet.size <= outlet.high:
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
                if group is not None:
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

    def take_run(self, publication: Publication, qos: int, first: int, count: int, position: int, group: object) -> int:
        """Messages of a run that the journal has, ``first`` at ``position``. Returns how many were taken: all, unless
        the window or the outlet has no room."""
        outlet = self.outlet
        if outlet is None or self.to_resend is not None or outlet.size > outlet.high:
            return 0
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        fit = min(count, window.limit - window.count)
        if fit <= 0:
            return 0
        ids = window.take(fit, qos)
        window.place(ids, position)
        if group is not None:
            self._came_by(ids, group)
        packets = publication.run.with_ids(self.version5, qos, ids, first)
        self.counters.messages_sent += fit
        self.sent_count += fit
        keeper = self.keeper
        if keeper is not None:
            if not self.moved:
                keeper.note_moved(self)
            if self.strict:
                keeper.sent(self, ids, qos, position, packets)
                return fit
        outlet.put(packets)
        return fit

    def _came_by(self, ids: bytes, group: object) -> None:
        if self.via is None:
            self.via = {}
        for i in range(0, len(ids), 2):
            self.via[ids[i] << 8 | ids[i + 1]] = group

    # -- single messages

    def take_message(
        self,
        message: Message,
        qos: int,
        retain: bool,
        identifiers: bytes,
        group: object,
        position: int,
        dup: bool,
        now: float,
    ) -> bool:
        """One message that the journal has at ``position``; False when the window or the outlet has no room for it."""
        outlet = self.outlet
        if outlet is None or self.to_resend is not None or outlet.size > outlet.high:
            return False
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        if window.count >= window.limit:
            return False
        ids = window.take(1, qos)
        window.place(ids, position)
        if group is not None:
            self._came_by(ids, group)
        if self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)
        delivery = Delivery(message, qos, retain, identifiers, group, ids[0] << 8 | ids[1])
        delivery.dup = dup
        if self.intercept is not None:
            self.intercept(self, delivery, now)  # its place in the window keeps it meanwhile
        else:
            self.send_taken(delivery, now)
        return True

    def send_taken(self, delivery: Delivery, now: float) -> None:
        """Write a message that has its packet id. One that is expired or too large for the client gives it back."""
        window, outlet = self.window, self.outlet
        packet_id = delivery.packet_id
        if window is None or outlet is None or window.state(packet_id) != delivery.qos:
            return  # the connection has ended while plugins were asked: it goes out to the next
        ids = packet_id.to_bytes(2, "big")
        packet = self._encode(delivery, now)
        if packet is None:
            self.finish_taken(ids, delivery.qos)
        elif self.strict and self.keeper is not None and not delivery.again:
            position = NOWHERE if window.positions is None else window.positions[packet_id - 1]
            self.keeper.sent(self, ids, delivery.qos, position, packet)
        else:
            outlet.put(packet)

    def finish_taken(self, ids: bytes, qos: int) -> None:
        """What was to be sent is not to be sent: its packet ids are free."""
        if self.window is not None:
            self.window.move(ids, qos, FREE)
        self._let_go(ids)
        if self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)

    def send(self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float) -> None:
        """One message that is not in the journal, at the QoS that its subscription allows."""
        if self.intercept is not None:
            self.intercept(self, Delivery(message, qos, retain, identifiers, group), now)
        else:
            self.send_judged(message, qos, retain, identifiers, group, now)

    def send_judged(
        self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, now: float
    ) -> None:
        """The same, after the deliver hooks have had their say."""
        outlet = self.outlet
        delivery = Delivery(message, qos, retain, identifiers, group)
        if qos == 0:
            if outlet is None:
                self.counters.dropped_offline_qos0 += 1
            elif outlet.overflows():
                self.counters.dropped_output_full += 1
                self.dropped_count += 1
            else:
                self._write(delivery, now)
            return
        if outlet is None or self.queue or self.to_resend is not None or not self._deliver(delivery, now):
            self.enqueue(delivery)

    def _deliver(self, delivery: Delivery, now: float) -> bool:
        """Send one now; False when the window or the outlet has no room."""
        outlet = self.outlet
        if outlet is None or outlet.size > outlet.high:
            return False
        qos = delivery.qos
        if qos == 0:
            self._write(delivery, now)
            return True
        window = self.window
        if window is None:
            window = self.window = Window(self.window_limit)
        if window.count >= window.limit:
            return False
        ids = window.take(1, qos)
        delivery.packet_id = ids[0] << 8 | ids[1]
        if self.kept or delivery.group is not None:
            if self.held is None:
                self.held = {}
            self.held[delivery.packet_id] = delivery
            if self.kept:
                window.place(ids, NOWHERE)
        if self.kept and self.strict:
            self.send_taken(delivery, now)
        elif not self._write(delivery, now):
            self.finish_taken(ids, qos)
        elif self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)
        return True

    def _write(self, delivery: Delivery, now: float) -> bool:
        """Encode for this client and put into its outlet; False when the message is expired or too large for it."""
        outlet = self.outlet
        if outlet is None:
            return False
        packet = self._encode(delivery, now)
        if packet is None:
            return False
        outlet.put(packet)
        return True

    def _encode(self, delivery: Delivery, now: float) -> bytes | None:
        """The packet for this client; None when the message is expired or too large for it."""
        properties = b""
        message = delivery.message
        qos = delivery.qos
        dup = delivery.dup
        topic = message.topic
        if self.mount and topic.startswith(self.mount):
            topic = topic[len(self.mount) :]
        expires_at = message.expires_at
        if expires_at != 0.0 and now >= expires_at and not (dup and qos == 2):  # begun is begun [MQTT-4.3.3-7]
            self.counters.dropped_expired += 1  # [MQTT-3.3.2-5]
            return None
        name = topic
        if self.version5:
            properties = message.properties
            if delivery.identifiers:
                properties = delivery.identifiers + properties
            if expires_at != 0.0:
                properties = expiry_property(max(1, int(expires_at - now + 0.5))) + properties  # [MQTT-3.3.2-6]
            if self.alias_max:
                alias = self._alias(topic)
                if alias > 0:
                    properties = alias_property(alias) + properties
                    name = b""
                elif alias < 0:
                    properties = alias_property(-alias) + properties
        head = 0x30 | qos << 1 | (1 if delivery.retain else 0) | (8 if dup else 0)
        packet = encode_publish(head, name, delivery.packet_id, self.version5, properties, message.payload)
        if len(packet) > self.packet_size_max:  # [MQTT-3.1.2-24, -25]
            if self.alias_max and self.aliases is not None and name:
                self.aliases.pop(topic, None)  # the client never saw the alias of this packet
            self.counters.dropped_too_large += 1
            return None
        self.counters.messages_sent += 1
        self.sent_count += 1
        return packet

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
        """Send what the window and the outlet take: first what has to be sent again, then from the queue, then from the
        journal."""
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
        if queue is not None:
            self.queue = None
            if self.outlet is not None:
                self.outlet.relieve()
        if not self.live and self.keeper is not None and not self.loading:
            self.keeper.catch_up(self, now)
        if self.sharing is not None:
            for reader in self.sharing:
                reader.pump()

    def waits(self) -> bool:
        """There is something to send that had no room."""
        return self.queue is not None or self.to_resend is not None or not self.live or self.sharing is not None

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
        if self.held or self.via:
            self._let_go(ids)
        if moved and self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)
        return moved

    def _let_go(self, ids: bytes) -> None:
        """Nothing more is needed of the messages of these ids, as far as they are free now."""
        window, held, via = self.window, self.held, self.via
        if window is None:
            return
        for i in range(0, len(ids), 2):
            packet_id = ids[i] << 8 | ids[i + 1]
            if window.state(packet_id) == FREE:  # else it was another kind of acknowledgement than is due
                if held:
                    held.pop(packet_id, None)
                if via:
                    via.pop(packet_id, None)

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
                if window.state(packet_id) == PUBCOMP_DUE:
                    held.pop(packet_id, None)
        return moved

    def resend(self) -> None:
        """The client is back: everything unacknowledged goes out again, in its order, before anything new.
        [MQTT-4.4.0-1]"""
        entries = [] if self.window is None else self.window.in_flight()
        self.to_resend = deque(entries) if entries else None

    def _resend(self, now: float) -> bool:
        """As many as the client's receive maximum allows; True when all are out. DUP is set, PUBREL goes where PUBREC
        had come. [MQTT-3.3.1-1, MQTT-4.6.0-1, MQTT-3.3.4-9]"""
        window, waiting, outlet, keeper = self.window, self.to_resend, self.outlet, self.keeper
        if window is None or waiting is None or outlet is None or keeper is None:
            self.to_resend = None
            return True
        while waiting:
            if window.count - len(waiting) >= window.limit or outlet.size > outlet.high or self.loading:
                return False
            entry = waiting[0]
            ids = entry.packet_id.to_bytes(2, "big")
            if window.state(entry.packet_id) != entry.state:
                waiting.popleft()  # it was acknowledged meanwhile
            elif entry.state == PUBCOMP_DUE:
                waiting.popleft()
                outlet.put(acks(PUBREL_HEAD, ids))
            else:
                delivery = self._held_delivery(entry)
                if delivery is None and self._is_loading():
                    return False  # it goes on when the store has answered
                if delivery is None:
                    waiting.popleft()
                    self.finish_taken(ids, entry.state)
                    continue
                waiting.popleft()
                delivery.dup = delivery.again = True
                self.counters.messages_resent += 1
                if self.intercept is not None and entry.position >= 0:
                    self.intercept(self, delivery, now)
                else:
                    self.send_taken(delivery, now)
        self.to_resend = None
        return True

    def _is_loading(self) -> bool:
        return self.loading

    def _held_delivery(self, entry: InFlight) -> Delivery | None:
        if entry.position < 0:
            return None if self.held is None else self.held.get(entry.packet_id)
        return None if self.keeper is None else self.keeper.delivery_at(self, entry)

    def expired(self, now: float) -> bool:
        """Its client was away for too long; the timer that ends it may be late."""
        return self.channel is None and self.disconnected_at + self.expiry <= now

    # -- inbound QoS 2 of a kept session

    def opened(self, ids: bytes, position: int) -> None:
        """The messages of these ids are stored, from ``position`` on in the journal."""
        if self.open_at is None:
            self.open_at = {}
        for i in range(0, len(ids), 2):
            self.open_at[ids[i] << 8 | ids[i + 1]] = position
            position += 1
        if self.keeper is not None and not self.moved:
            self.keeper.note_moved(self)

    def store_ids(self, ids: bytes, ticket: Acknowledgement) -> None:
        """The messages of these ids are on their way to the store: a repeat waits for the same."""
        if self.storing is None:
            self.storing = {}
        for i in range(0, len(ids), 2):
            self.storing[ids[i] << 8 | ids[i + 1]] = ticket

    def stored_ids(self, ids: bytes) -> None:
        """Nothing is on its way any more for these ids."""
        storing = self.storing
        if storing:
            for i in range(0, len(ids), 2):
                storing.pop(ids[i] << 8 | ids[i + 1], None)

    def take_shared(self) -> tuple[list[Delivery], list[tuple[Any, int, bool]]]:
        """The client has left for good: what came through shared groups, as messages that may go to another member, and
        as (group, position, whether it may). QoS 2 that was sent stays with its client. [MQTT-4.8.2-4, -5]"""
        left: list[Delivery] = []
        if self.held:
            left.extend(d for d in self.held.values() if d.group is not None and d.qos == 1)
        if self.queue:
            left.extend(d for d in self.queue if d.group is not None)
        stored: list[tuple[Any, int, bool]] = []
        if self.via and self.window is not None:
            for entry in self.window.in_flight():
                group = self.via.get(entry.packet_id)
                if group is not None and entry.position >= 0:
                    stored.append((group, entry.position, entry.state == 1))
        return left, stored

    def check_invariants(self) -> None:
        if self.window is not None:
            self.window.check_invariants()
            for packet_id in [*(self.held or ()), *(self.via or ())]:
                if self.window.state(packet_id) == FREE:
                    raise AssertionError(f"packet id {packet_id} is held but free")
        if self.queue_bytes != sum(d.message.size() for d in self.queue or ()):
            raise AssertionError("queue_bytes is not the size of the queue")
        if self.live != (self.cursors is None):
            raise AssertionError("a live session has no cursors, one that is behind has")

"""One connection's protocol state: bytes come in, bytes go to the outlet, decisions go to the broker.

    CONNECTING ──CONNECT accepted──► CONNECTED ──► CLOSED
         └── AUTH ⇄ AUTH ──┘

No socket and no clock: ``receive`` is given bytes and the time. Packets are handled strictly one after the other. A
step
that has to wait (a plugin's answer, a full subscriber) *suspends* the channel: what has come meanwhile stays unread
here, the host stops reading, and ``resume`` goes on where it stopped. So the order of acknowledgements is the order of
arrival.

``_consume`` is the hot loop. It takes runs of PUBLISH packets and runs of acknowledgements as slices; every other
packet is decoded and handed to the module that handles its kind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from brookmq.access.points import ClientInfo
from brookmq.base import faults
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.broker import connecting, publishing, requests
from brookmq.broker.acknowledging import Acknowledgement
from brookmq.broker.authenticating import PendingConnect
from brookmq.broker.broker import Broker
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.inflight import PUBACK_DUE, PUBCOMP_DUE, OpenIds
from brookmq.broker.journaling import Journaling
from brookmq.broker.outlet import Outlet, Turn
from brookmq.broker.publication import Publication
from brookmq.broker.session import Session
from brookmq.broker.settings import Settings
from brookmq.broker.topics import Audience, TopicIndex
from brookmq.mqtt import reasons
from brookmq.mqtt.codec import PINGRESP_BYTES, encode_ack, encode_connack, encode_disconnect
from brookmq.mqtt.kernel import Run, ack_ids, acks, frame
from brookmq.mqtt.properties import Properties
from brookmq.mqtt.topics import check_name

CONNECTING = 0
CONNECTED = 1
CLOSED = 2

TAKEN = 0  # the run is with its receivers
WAIT = 1  # a receiver is full: the run has to wait
SINGLY = 2  # the run has to take the slow way, packet by packet

SINGLES_MAX = 200  # packets handled one by one before others get their turn: 1 to 3 ms
UNSETTLED_BYTES_MAX = 1 << 20  # of messages of one connection that wait for the store; then it is not read from
PACKET_SIZE_SHORT = 5  # a CONNACK without properties: what a client whose CONNECT we could not read will take


class Host(Protocol):
    """What carries the channel: a connection of the edge, or a test."""

    def close(self) -> None:
        """Write what the outlet has, then close."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def watch(self, seconds: float) -> None:
        """Look in so many seconds whether the peer was heard (``overdue``)."""

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        """Wait for something outside, then call ``done`` with the result, or with the exception."""


class Channel:
    """Invariants: ``session`` is there from when it was opened, which may be some time before the CONNACK;
    ``partial`` holds bytes only while they are not a whole packet or the channel is suspended; a CLOSED channel changes
    nothing any more."""

    def __init__(self, broker: Broker, host: Host, outlet: Outlet, listener: str, address: str) -> None:
        self.broker = broker
        self.settings: Settings = broker.settings
        self.counters: Counters = broker.counters
        self.turn: Turn = broker.turn
        self.index: TopicIndex = broker.index
        self.dispatcher: Dispatcher = broker.dispatcher
        self.journaling: Journaling = broker.journaling
        self.host = host
        self.outlet = outlet
        self.listener = listener
        self.address = address
        self.mount_template = ""
        self.certificate: Any = None
        self.client: ClientInfo | None = None
        self.session: Session | None = None
        self.state = CONNECTING
        self.version = 0
        self.version5 = False
        self.suspended = False
        self.singly = False  # no runs: a mount point, rewriting or a publish hook looks at each message
        self.guarded = False  # access hooks are asked for each topic
        self.decisions: dict[tuple[bytes, int], bool] | None = None
        self.partial: bytearray | None = None
        self.need = 0
        self.bytes_received = 0
        self.last_seen = 0.0  # monotonic seconds of the last bytes; before CONNECT is complete, of the beginning
        self.silence_max = 0.0  # seconds without a packet after which the peer counts as gone; 0 = never
        self.last_topic = b""  # of the run before, with its QoS and who gets it: the next is mostly the same
        self.last_qos = 0
        self.last_audience: Audience | None = None
        self.aliases: dict[int, bytes] | None = None  # inbound
        self.problem_information = True
        self.peer_packet_size_max = PACKET_SIZE_SHORT  # until its CONNECT has been read
        self.method = ""  # of enhanced authentication, "" = none
        self.authentication: PendingConnect | None = None
        self.unsettled: deque[Acknowledgement] | None = None  # in the order in which they have to go out
        self.unsettled_bytes = 0
        self.stalled = False  # not read from until less of it waits for the store

    # -- bytes in

    def receive(self, data: bytes, monotonic: float) -> None:
        """Bytes have come. Never raises for anything that a peer can send."""
        if self.state == CLOSED:
            return
        self.counters.bytes_received += len(data)
        self.bytes_received += len(data)
        if self.partial is not None:
            self.partial += data
            if self.suspended or len(self.partial) < self.need:
                return
            data = bytes(self.partial)
            self.partial = None
        elif self.suspended:
            self.partial = bytearray(data)
            return
        connected = self.state == CONNECTED
        try:
            self._consume(data, monotonic + self.broker.wall)
        except PeerError as error:
            self.fail(error)
        if connected and self._unread() < len(data):
            self.last_seen = monotonic  # a whole packet at least: bytes alone don't keep alive [MQTT-3.1.2-22]

    def _consume(self, data: bytes, now: float) -> None:
        size = len(data)
        pos = 0
        singly_until = 0
        singles = 0
        while pos < size:
            if self.outlet.size > self.outlet.limit:  # it does not read our answers, so we do not read its requests
                self.wait_for(self.outlet)
                self._keep(data, pos)
                return
            if self.unsettled_bytes > UNSETTLED_BYTES_MAX:
                self.stalled = True
                self.hold()
                self._keep(data, pos)
                return
            if self.turn.tables_full and self._waits_for_table():
                self._keep(data, pos)
                return
            head = data[pos]
            kind = head >> 4
            if self.state == CONNECTED:
                if kind == 3:
                    if pos >= singly_until and not self.singly:
                        run = self.dispatcher.publication.run
                        end = run.scan(data, pos, self.version5, self.settings.packet_size_max)
                        if end > 0:
                            taken = self._take_run(now)
                            if taken == TAKEN:
                                self.counters.packets_received += run.count
                                pos = end
                                continue
                            if taken == WAIT:
                                self._keep(data, pos)
                                return
                            singly_until = end
                elif 4 <= kind <= 7 and pos >= singly_until:
                    ids = ack_ids(data, pos)
                    if ids:
                        if self._take_acks(head, ids, now):
                            self.counters.packets_received += len(ids) // 2
                            pos += 2 * len(ids)
                            continue
                        singly_until = pos + 2 * len(ids)  # not looked at as a run again: that would be quadratic
            body, end = frame(data, pos)
            if end < 0:
                raise PeerError(reasons.MALFORMED_PACKET, "the length of a packet has more than four bytes")
            if end - pos > self.settings.packet_size_max:
                self.counters.packets_too_large += 1
                raise PeerError(reasons.PACKET_TOO_LARGE, f"a packet of {end - pos} bytes is over the limit")
            if end == 0 or end > size:
                self._check_beginning(head)
                self.partial = bytearray(data[pos:]) if pos else bytearray(data)
                self.need = end - pos if end else len(self.partial) + 1
                return
            self._take_packet(head, data[body:end], now)
            pos = end
            singles += 1
            if self.state == CLOSED:
                return
            if singles == SINGLES_MAX and not self.suspended and pos < size:
                self._let_others(data, pos)
                return
            if self.suspended:
                self._keep(data, pos)
                return

    def _let_others(self, data: bytes, pos: int) -> None:
        """A peer that sends packet after packet of the slow kind goes on in the next turn of the loop."""
        self._keep(data, pos)
        self.hold()
        self.turn.call_soon(self.resume)

    def _unread(self) -> int:
        return 0 if self.partial is None else len(self.partial)

    def _keep(self, data: bytes, pos: int) -> None:
        """The channel is suspended: what is not handled yet waits here; it is bounded, since nothing more is read."""
        rest = bytearray(data[pos:])
        if self.partial is not None:
            rest += self.partial
        self.partial = rest
        self.need = 0

    def _check_beginning(self, head: int) -> None:
        """Before CONNECT nothing else is waited for. [MQTT-3.1.0-1]"""
        if self.state == CONNECTING and head >> 4 != 1 and self.authentication is None:
            raise PeerError(reasons.PROTOCOL_ERROR, "the first packet is not CONNECT")

    # -- runs

    def _take_run(self, now: float) -> int:
        publication = self.dispatcher.publication
        run = publication.run
        if run.qos and self._overwhelms(run):
            return SINGLY
        audience = self.last_audience
        if (
            audience is None
            or audience.epoch != self.index.epoch
            or run.qos != self.last_qos
            or not run.has_topic(self.last_topic)
        ):
            audience = self._find_audience(run)
            if audience is None:
                return SINGLY
        if self.turn.pressed:
            full = self.dispatcher.full_receiver(audience, self.session)
            if full is not None:
                self.wait_for(full)
                return WAIT
        session = self.session
        assert session is not None
        count = run.count
        qos = run.qos
        counters = self.counters
        journaled = audience.durable and (qos > 0 or audience.captured)
        if journaled:
            shard = self.journaling.shard_of(audience)
            if shard.full:
                counters.publishers_paused += 1
                self.hold()
                shard.wait(self.resume)
                return WAIT
        if qos == 0:
            counters.publishes_received_qos0 += count
            ids = b""
        else:
            ids = run.ids()
            if qos == 1:
                counters.publishes_received_qos1 += count
            else:
                if session.open_ids is None:
                    session.open_ids = OpenIds()
                if session.open_ids.count + count > self.settings.receive_max or session.open_ids.open(ids) == 0:
                    return SINGLY
                counters.publishes_received_qos2 += count
        counters.publishes_received += count
        session.received_count += count
        if journaled or audience.targets or audience.groups:
            publication.topic = audience.topic
            publication.client_id = session.client_id
            publication.username = session.username
            publication.now = now
            publication.messages = None
            self.dispatcher.send_run(audience, session)
        else:
            counters.publishes_without_receiver += count
        if journaled:
            self._journal_run(audience, publication, session, ids)
        elif qos == 2 and session.kept:
            self._store_open_ids(session, ids)
        elif qos:
            self.acknowledge(0x40 if qos == 1 else 0x50, ids, reasons.SUCCESS)
        return TAKEN

    def _journal_run(self, audience: Audience, publication: Publication, session: Session, ids: bytes) -> None:
        """Into the journal; the acknowledgements go out when it is stored."""
        run = publication.run
        qos = run.qos
        ticket: Acknowledgement | None = None
        if qos:
            ticket = self.ticket(0x40 if qos == 1 else 0x50, ids, run.end - run.start)
            if qos == 2 and session.kept:
                session.store_ids(ids, ticket)
        self.journaling.add_run(audience, publication, self.version5, session, ticket)
        if faults.armed and ticket is not None and faults.broken("ack_before_append"):
            ticket.waits = 0
            self.settled()
            ticket.waits = 1

    def _store_open_ids(self, session: Session, ids: bytes) -> None:
        """Nobody needs these messages kept, but that they were taken has to be known after a crash."""
        ticket = self.ticket(0x50, ids, 0)
        session.store_ids(ids, ticket)
        self.broker.keeper.opened(session, ids, ticket.stored)

    # -- acknowledgements of what was published

    def ticket(self, head: int, ids: bytes, size: int) -> Acknowledgement:
        """An acknowledgement that goes out when it is settled, behind those that came before."""
        session = self.session
        assert session is not None
        ticket = Acknowledgement(self, session, head, ids, size, 1)
        if self.unsettled is None:
            self.unsettled = deque()
        self.unsettled.append(ticket)
        self.unsettled_bytes += size
        return ticket

    def acknowledge(self, head: int, ids: bytes, reason: int) -> None:
        """One that waits for nothing but those before it."""
        if self.unsettled:
            ticket = self.ticket(head, ids, 0)
            ticket.waits = 0
            ticket.reason = reason
        else:
            self._put_acknowledgement(head, ids, reason)

    def settled(self) -> None:
        """Something that was waited for is stored, or could not be: what is settled goes out, in order."""
        unsettled = self.unsettled
        while unsettled:
            ticket = unsettled[0]
            if ticket.waits > 0:
                return
            unsettled.popleft()
            self.unsettled_bytes -= ticket.size
            if self.state == CONNECTED:
                self._put_acknowledgement(ticket.head, ticket.ids, ticket.reason)
        if self.stalled:
            self.stalled = False
            self.turn.call_soon(self.resume)

    def _put_acknowledgement(self, head: int, ids: bytes, reason: int) -> None:
        """MQTT 3 has no words for a message that could not be kept: no acknowledgement, and the connection ends."""
        if reason == reasons.SUCCESS:
            self.outlet.put(acks(head, ids))
        elif self.version5:
            for i in range(0, len(ids), 2):
                self.outlet.put(encode_ack(head >> 4, ids[i] << 8 | ids[i + 1], reason, None, self.version))
        elif reason == reasons.QUOTA_EXCEEDED:
            self.end(reason)
        else:
            self.outlet.put(acks(head, ids))

    def _overwhelms(self, run: Run) -> bool:
        """More than half of a session's queue at once: it could be full before anybody can be slowed down for it."""
        session = self.session
        assert session is not None
        limits = session.limits
        return run.count * 2 > limits.queue_count_max or (run.end - run.start) * 2 > limits.queue_bytes_max

    def _find_audience(self, run: Run) -> Audience | None:
        """Who gets this topic, or None when the messages need a closer look."""
        if run.qos > self.settings.qos_max or run.topic_size > self.settings.topic_length_max:
            return None
        topic = run.topic()
        if topic.startswith(b"$"):
            return None
        if self.guarded and (self.decisions is None or not self.decisions.get((topic, run.qos), False)):
            return None
        audience = self.index.audiences.get(topic)
        if audience is None:
            check_name(topic, self.settings.topic_levels_max)
        audience = self.index.audience(topic)
        self.last_topic = topic
        self.last_qos = run.qos
        self.last_audience = audience
        return audience

    def _take_acks(self, head: int, ids: bytes, now: float) -> bool:
        """A run of acknowledgements in their shortest form. False: one of them is not expected, so take them singly."""
        session = self.session
        assert session is not None
        count = len(ids) // 2
        if head == 0x40:
            session.acknowledged(ids, PUBACK_DUE)
        elif head == 0x50:
            if session.received(ids) != count:
                return False
            if session.keeper is not None:
                session.keeper.received(session, ids)
            else:
                self.outlet.put(acks(0x62, ids))
            return True
        elif head == 0x62:
            if session.open_ids is None or session.open_ids.release(ids) != count:
                return False
            if session.keeper is not None:
                session.keeper.released(session, ids, acks(0x70, ids))
            else:
                self.outlet.put(acks(0x70, ids))
            return True
        elif head == 0x70:
            session.acknowledged(ids, PUBCOMP_DUE)
        else:
            return False  # wrong flags: the codec says so
        if session.waits():
            session.pump(now)
        return True

    # -- packets

    def _take_packet(self, head: int, body: bytes, now: float) -> None:
        self.counters.packets_received += 1
        if self.state != CONNECTED:
            connecting.take_packet(self, head, body, now)
            return
        kind = head >> 4
        if kind == 3:
            publishing.take_publish(self, head, body, now)
        elif head == 0xC0 and not body:
            self.outlet.put(PINGRESP_BYTES)
        else:
            requests.take_packet(self, head, body, now)

    # -- waiting

    def wait_for(self, outlet: Outlet) -> None:
        """Go on when a full subscriber has room, or has used up its patience."""
        self.counters.publishers_paused += 1
        self.hold()
        outlet.wait(self.resume)

    def _waits_for_table(self) -> bool:
        """Whatever a kept session does may be a change for the table of sessions, which has too many already."""
        session, table = self.session, self.broker.keeper.table
        if session is None or not session.kept or table is None or not table.full:
            return False
        self.counters.publishers_paused += 1
        self.hold()
        table.wait(self.resume)
        return True

    def suspend(self, awaitable: Awaitable[Any], then: Callable[[Any], None]) -> None:
        """Wait for an answer from outside; ``then`` gets it, unless the connection has ended meanwhile."""
        self.hold()

        def done(answer: Any) -> None:
            def step() -> None:
                if isinstance(answer, BaseException):
                    raise PeerError(reasons.IMPLEMENTATION_SPECIFIC_ERROR, "an internal step failed") from answer
                then(answer)

            self.go_on(step)

        self.host.run(awaitable, done)

    def hold(self) -> None:
        """Handle nothing more until ``go_on`` or ``resume``."""
        self.suspended = True
        self.host.pause_reading()

    def go_on(self, step: Callable[[], None]) -> None:
        """What was waited for is there: take the next step, then handle what has come meanwhile. Does nothing when the
        connection has ended."""
        if self.state == CLOSED:
            return
        self.suspended = False
        try:
            step()
        except PeerError as error:
            self.fail(error)
        if not self.suspended:  # the next step may have to wait as well
            self.resume()

    def resume(self) -> None:
        """The step that was waited for is done: handle what has come meanwhile, and read on."""
        if self.state == CLOSED:
            return
        self.suspended = False
        self.heard(self.broker.now)
        data = self.partial
        self.partial = None
        if data:
            try:
                self._consume(bytes(data), self.broker.now)
            except PeerError as error:
                self.fail(error)
        if not self.suspended and self.state != CLOSED:
            self.host.resume_reading()

    # -- the end

    def fail(self, error: PeerError) -> None:
        """The peer broke the protocol or a limit: tell it why where the protocol has words for it, and close.
        [MQTT-4.13.1-1]"""
        self.counters.protocol_errors += 1
        if self.state == CONNECTED:
            self.disconnect(error.reason, str(error))
            self.ended(True, error.reason)
        elif self.state != CLOSED:
            self.refuse(error.reason, str(error))

    def refuse(self, reason: int, message: str = "", properties: Properties | None = None) -> None:
        """Answer CONNECT with an error and close. Before a CONNECT could be read there is nobody to answer."""
        if self.version5 or (self.version and reason in reasons.CONNACK_V3):
            self.counters.connects_refused += 1
            explained = properties or Properties()
            if message and self.version5 and self.problem_information:
                explained.reason_string = message
            packet = encode_connack(False, reason, explained, self.version)
            if len(packet) > self.peer_packet_size_max:  # [MQTT-3.2.2-19]
                packet = encode_connack(False, reason, properties, self.version)
            if len(packet) <= self.peer_packet_size_max:
                self.outlet.put(packet)
        self.state = CLOSED
        self.host.close()

    def disconnect(self, reason: int, message: str = "") -> None:
        """Tell the client why (MQTT 5 has words for it) and close; the session is the caller's business."""
        if self.state == CONNECTING and self.session is not None:  # its CONNACK still waits for the store
            self.refuse(reason, message)
        if self.state != CONNECTED:
            return
        self.state = CLOSED
        self.counters.disconnects_by_server += 1
        if self.version5:
            properties = Properties()
            if reason in (reasons.USE_ANOTHER_SERVER, reasons.SERVER_MOVED) and self.settings.server_reference:
                properties.server_reference = self.settings.server_reference
            bare = encode_disconnect(reason, properties, 5)
            if message and self.problem_information:
                properties.reason_string = message
            packet = encode_disconnect(reason, properties, 5)
            if len(packet) > self.peer_packet_size_max:  # [MQTT-3.14.2-3]
                packet = bare
            if len(packet) <= self.peer_packet_size_max:
                self.outlet.put(packet)
        self.host.close()

    def end(self, reason: int, message: str = "") -> None:
        """The server ends this connection: an administrator, a time-out, a shutdown."""
        if self.state == CONNECTED:
            self.disconnect(reason, message)
            self.ended(True, reason)
        elif self.state != CLOSED:
            self.state = CLOSED
            self.host.close()

    def left(self, with_will: bool, reason: int) -> None:
        """The client said DISCONNECT. [MQTT-3.14.4-1, -2]"""
        self.state = CLOSED
        self.host.close()
        self.ended(with_will, reason)

    def give_up(self) -> None:
        """The client left before it was connected."""
        self.state = CLOSED
        self.host.close()

    def lost(self) -> None:
        """The transport is gone."""
        self.state = CLOSED
        self.partial = None
        self.ended(True, reasons.UNSPECIFIED_ERROR)
        self.outlet.close()

    def ended(self, with_will: bool, reason: int) -> None:
        """The session has no connection any more."""
        session = self.session
        if session is not None:
            self.broker.sessions.close(session, self, with_will, reason, self.broker.now)

    def drained(self) -> None:
        """The outlet is empty again: the session may have more."""
        session = self.session
        if session is not None and session.channel is self:
            session.pump(self.broker.now)

    def overdue(self, monotonic: float) -> bool:
        """True when the peer has been silent for too long. A peer that we do not read from is not to blame, unless we
        wait for it to read our answers."""
        if self.suspended and self.outlet.size <= self.outlet.limit:
            return False
        return self.silence_max > 0 and monotonic - self.last_seen > self.silence_max

    def connected(self) -> None:
        self.state = CONNECTED

    def heard(self, now: float) -> None:
        """Silence is counted from now on (unix seconds)."""
        self.last_seen = max(self.last_seen, now - self.broker.wall)

    def timed_out(self) -> None:
        """[MQTT-3.1.2-22], [MQTT-3.1.4-5]"""
        if self.state == CONNECTED:
            self.counters.keep_alive_timeouts += 1
            self.end(reasons.KEEP_ALIVE_TIMEOUT)
        elif self.state != CLOSED:
            self.counters.connect_timeouts += 1
            self.end(reasons.UNSPECIFIED_ERROR)

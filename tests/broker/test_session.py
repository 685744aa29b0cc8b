"""A kept session told stories: messages, acknowledgements in any order, wrong ones, absences, smaller windows.

The client of the machine keeps the rules of MQTT and remembers everything; what it got at the end must be what was
sent, but for what the session says it dropped.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.publication import Delivery
from brookmq.broker.session import Session
from brookmq.broker.settings import SessionLimits
from tests.broker.memory import MemoryNode, MemoryStream
from tests.broker.reading import packets
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property

QUEUE_COUNT_MAX = 8
QUEUE_BYTES_MAX = 400
INFLIGHT_MAX = 6


class Reader:
    """A subscriber as the specification wants it: it knows which QoS 2 packet ids it has, connected or not."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.stream: MemoryStream | None = None
        self.receive_max = 65_535
        self.unfinished: dict[
            int, int
        ] = {}  # what it has to acknowledge on this connection: packet id → QoS, 3 = PUBREL
        self.open_ids: set[int] = set()  # QoS 2 messages that it has got and that are not released
        self.got: list[tuple[int, int]] = []  # number and QoS of each message, repeats of QoS 2 left out
        self.this_time: list[int] = []  # numbers in the order of this connection

    def connect(self, node: MemoryNode, receive_max: int) -> Packet:
        self.receive_max = receive_max if self.version == 5 else 65_535
        props = [(Property.SESSION_EXPIRY, 3600), (Property.RECEIVE_MAXIMUM, receive_max)] if self.version == 5 else []
        self.stream = MemoryStream(node, "")
        self.unfinished, self.this_time = {}, []
        self.stream.send(wire.connect("reader", version=self.version, clean=False, props=props))
        return self.read()

    def read(self) -> Packet:
        """Take what has come; the first packet, for the CONNACK."""
        assert self.stream is not None
        data = bytes(self.stream.host.written)
        self.stream.host.written.clear()
        came = packets(data, self.version)
        for packet in came:
            if packet.kind is Kind.PUBLISH:
                self._take(packet)
            elif packet.kind is Kind.PUBREL:
                self.open_ids.discard(packet.packet_id)
                self.unfinished[packet.packet_id] = 3
        assert len(self.unfinished) <= self.receive_max  # [MQTT-3.3.4-9]
        return came[0] if came else Packet(Kind.PINGRESP, 0, 0)

    def _take(self, packet: Packet) -> None:
        number = int(packet.payload[:6])
        assert packet.packet_id not in self.unfinished, "a packet id that is in use"  # [MQTT-2.2.1-4]
        self.unfinished[packet.packet_id] = packet.qos
        if self.this_time:
            assert number > self.this_time[-1], "out of order"  # [MQTT-4.6.0-5]
        self.this_time.append(number)
        repeated = (number, packet.qos) in self.got
        assert packet.dup == repeated, "DUP is set when it is sent again, and only then"  # [MQTT-3.3.1-1]
        if packet.qos == 2 and packet.packet_id in self.open_ids:
            assert repeated
            return
        assert packet.qos == 1 or not repeated, "twice"  # [MQTT-4.3.3]
        if packet.qos == 2:
            self.open_ids.add(packet.packet_id)
        if not repeated:
            self.got.append((number, packet.qos))

    def acknowledge(self, packet_id: int) -> None:
        qos = self.unfinished.pop(packet_id)
        kind = {1: Kind.PUBACK, 2: Kind.PUBREC, 3: Kind.PUBCOMP}[qos]
        self.send(wire.acknowledge(kind, packet_id))

    def send(self, data: bytes) -> None:
        assert self.stream is not None
        self.stream.send(data)
        self.read()


class SessionMachine(RuleBasedStateMachine):
    node: MemoryNode
    reader: Reader
    session: Session

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[int, int]] = []

    @initialize(version=st.sampled_from([4, 5]), oldest=st.booleans(), receive_max=st.integers(1, 8))
    def begin(self, version: int, oldest: bool, receive_max: int) -> None:
        self.node = MemoryNode()
        limits = self.node.broker.sessions.limits
        limits.inflight_max, limits.queue_count_max = INFLIGHT_MAX, QUEUE_COUNT_MAX
        limits.queue_bytes_max, limits.drop_oldest = QUEUE_BYTES_MAX, oldest
        self.writer = self.node.client(4, "writer")
        self.reader = Reader(version)
        assert not self.reader.connect(self.node, receive_max).session_present
        self.reader.send(wire.subscribe(1, [("t", 2)], version=version))
        self.session = self.node.broker.sessions.by_client_id["reader"]

    @rule(count=st.integers(1, 5), qos=st.sampled_from([1, 2]), size=st.sampled_from([0, 10, 90]), run=st.booleans())
    def publish(self, count: int, qos: int, size: int, run: bool) -> None:
        """In one piece they are a run; a retained one in front of it is none."""
        parts = []
        for _ in range(count):
            number = len(self.sent)
            self.sent.append((number, qos))
            payload = b"%06d" % number + bytes(size)
            parts.append(wire.publish("t", payload, version=4, qos=qos, packet_id=1 + number % 60_000, retain=not run))
            parts += [wire.acknowledge(Kind.PUBREL, 1 + number % 60_000)] if qos == 2 and not run else []
        if qos == 2 and run:
            parts += [
                wire.acknowledge(Kind.PUBREL, 1 + number % 60_000) for number, _ in self.sent[len(self.sent) - count :]
            ]
        self.writer.send(b"".join(parts))
        if self.reader.stream is not None:
            self.reader.read()

    @precondition(lambda self: self.reader.stream is not None and self.reader.unfinished)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        for packet_id in data.draw(st.lists(st.sampled_from(sorted(self.reader.unfinished)), unique=True)):
            if packet_id in self.reader.unfinished:
                self.reader.acknowledge(packet_id)

    @precondition(lambda self: self.reader.stream is not None)
    @rule(kind=st.sampled_from([Kind.PUBACK, Kind.PUBCOMP]), data=st.data())
    def acknowledge_wrongly(self, kind: Kind, data: st.DataObject) -> None:
        """An acknowledgement of the wrong kind, or of nothing, settles nothing."""
        wrong = [number for number, qos in self.reader.unfinished.items() if (kind is Kind.PUBACK) != (qos == 1)]
        wrong = [number for number in wrong if kind is Kind.PUBACK or self.reader.unfinished[number] != 3]
        self.reader.send(wire.acknowledge(kind, data.draw(st.sampled_from([*wrong, 60_001]))))

    @precondition(lambda self: self.reader.stream is not None)
    @rule()
    def leave(self) -> None:
        assert self.reader.stream is not None
        self.reader.stream.close()
        self.reader.stream = None

    @rule(receive_max=st.integers(1, 8))
    def come(self, receive_max: int) -> None:
        """Back, or on a second connection that takes the first one over."""
        assert self.reader.connect(self.node, receive_max).session_present

    @invariant()
    def bounds_hold(self) -> None:
        if not hasattr(self, "session"):
            return
        session = self.session
        session.check_invariants()
        queue = session.queue or ()
        assert len(queue) <= QUEUE_COUNT_MAX
        assert session.queue_bytes <= QUEUE_BYTES_MAX
        assert session.window is None or session.window.count <= INFLIGHT_MAX
        assert (session.outlet is None) == (self.reader.stream is None)
        if self.reader.stream is not None and session.window is not None and session.to_resend is None:
            assert not queue or session.window.room() <= 0, "messages wait although there is room"

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.reader.connect(self.node, 8)
        while self.reader.unfinished:
            self.reader.acknowledge(min(self.reader.unfinished))
        assert not self.session.queue
        assert self.session.window is None or self.session.window.count == 0
        assert not self.session.held
        assert len(set(self.reader.got)) == len(self.reader.got)
        assert set(self.reader.got) <= set(self.sent)
        assert len(self.sent) - len(self.reader.got) == self.session.dropped_count
        self.node.close()


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=60, stateful_step_count=40)


def delivery(number: int, size: int = 10) -> Delivery:
    return Delivery(Message(b"t", b"%d" % number + bytes(size - 1), 1), 1, False, b"", None)


def queued(session: Session) -> list[int]:
    return [int(each.message.payload[:1]) for each in session.queue or ()]


@pytest.mark.parametrize(("oldest", "left"), [(True, [2, 3, 4]), (False, [0, 1, 2])])
def test_which_end_of_a_full_queue_gives_way(oldest: bool, left: list[int]) -> None:
    counters = Counters()
    session = Session("c", SessionLimits(queue_count_max=3, drop_oldest=oldest), counters)
    for number in range(5):
        session.enqueue(delivery(number))
    assert queued(session) == left
    assert session.dropped_count == counters.dropped_queue_full == 2
    session.check_invariants()


@pytest.mark.parametrize(("oldest", "left"), [(True, [2, 3]), (False, [0, 1])])
def test_a_queue_is_bounded_by_bytes(oldest: bool, left: list[int]) -> None:
    session = Session("c", SessionLimits(queue_bytes_max=25, drop_oldest=oldest), Counters())
    for number in range(4):
        session.enqueue(delivery(number))
    assert queued(session) == left
    assert session.queue_bytes == 22


def test_a_message_larger_than_the_queue_is_dropped_alone() -> None:
    session = Session("c", SessionLimits(queue_bytes_max=25), Counters())
    session.enqueue(delivery(1))
    session.enqueue(delivery(2, size=40))
    assert queued(session) == [1]
    assert session.dropped_count == 1

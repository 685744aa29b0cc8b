"""Chapter 4 as a whole: sessions that come and go, checked step by step against a small model of what they are owed.

Hypothesis invents the story: who connects, subscribes, gets messages, acknowledges some of them, leaves, is taken over
and comes back. The model says after each step exactly which packets the node has to send, and in which order. What
waits for a session is judged by the subscriptions that it has when there is room [MQTT-3.10.4-2]; the node of this test
has one shard, so that the order is one over all topics, which is more than MQTT asks for [MQTT-4.6.0-5].
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.harness import wire
from tests.harness.node import Broker
from tests.harness.raw import DEADLINE, Address, Client, unique
from tests.harness.received import Packet
from tests.harness.wire import PINGREQ, Kind, Property
from tests.spec.marks import mqtt5, mqtt311

FILTERS = {
    "a": {"a"},
    "b": {"b"},
    "+": {"a", "b"},
    "#": {"a", "b", "a/b"},
    "a/#": {"a", "a/b"},
    "+/b": {"a/b"},
}
TOPICS = ["a", "b", "a/b"]


@dataclass
class Flight:
    """A message that was sent and is not finished."""

    payload: bytes
    qos: int
    packet_id: int = 0  # known once it has arrived
    released: bool = False  # PUBREC was sent, PUBREL has arrived


@dataclass
class Person:
    """A client as the model sees it."""

    client_id: str
    version: int
    window: int
    client: Client | None = None
    has_session: bool = False
    kept: bool = False  # the session outlives its connection
    subscriptions: dict[str, tuple[int, int]] = field(default_factory=dict)  # QoS, and the last message before it
    flying: list[Flight] = field(default_factory=list)
    waiting: deque[tuple[int, str, int]] = field(default_factory=deque)  # number, topic, QoS
    qos0: list[bytes] = field(default_factory=list)  # to arrive at the next look

    def gone(self) -> None:
        """The connection has ended."""
        if not self.kept:
            self.has_session = False

    def forget(self) -> None:
        self.subscriptions, self.flying, self.waiting, self.qos0 = {}, [], deque(), []

    def granted(self, topic: str, number: int) -> int:
        """The QoS at which it gets a message; -1: not at all."""
        found = [qos for name, (qos, since) in self.subscriptions.items() if topic in FILTERS[name] and since < number]
        return max(found, default=-1)

    def owe(self, topic: str, number: int, qos: int) -> None:
        """A message was published."""
        granted = self.granted(topic, number)
        if not self.has_session or granted < 0:
            return
        if min(qos, granted):
            self.waiting.append((number, topic, qos))
        elif self.client is not None:
            self.qos0.append(b"%d" % number)

    def take_off(self) -> list[Flight]:
        """What the window lets out now."""
        new = []
        while self.waiting and len(self.flying) < self.window:
            number, topic, qos = self.waiting.popleft()
            delivered = min(qos, self.granted(topic, number))
            if delivered > 0:
                new.append(Flight(b"%d" % number, delivered))
                self.flying.append(new[-1])
        return new


class Story(RuleBasedStateMachine):
    """The rules are the steps of the story."""

    address: ClassVar[Address]

    def __init__(self) -> None:
        super().__init__()
        self.base = unique()
        self.count = 0
        self.people = [Person(unique(), 5, 3), Person(unique(), 5, 1), Person(unique(), 4, 1000)]
        self.publishers = [Client(self.address, version).connect() for version in (4, 5)]

    def teardown(self) -> None:
        for publisher in self.publishers:
            publisher.close()
        for person in self.people:  # leave nothing behind on a shared node
            Client(self.address).connect(person.client_id, clean=True).disconnect()
            if person.client is not None:
                person.client.close()

    who = st.integers(0, 2)

    @initialize(names=st.lists(st.sampled_from(sorted(FILTERS)), min_size=3, max_size=3), qos=st.integers(0, 2))
    def begin(self, names: list[str], qos: int) -> None:
        """Everybody is there and wants something, or most stories would be of nobody."""
        for who, name in enumerate(names):
            self.connect(who, clean=False)
            self.subscribe(who, name, qos)

    @rule(who=who, clean=st.booleans())
    def connect(self, who: int, clean: bool) -> None:
        """Come, come back, or take over the own connection."""
        person = self.people[who]
        old = person.client
        person.client = Client(self.address, person.version)
        props = [(Property.SESSION_EXPIRY, 60), (Property.RECEIVE_MAXIMUM, person.window)]
        person.client.connect(person.client_id, clean=clean, props=props)
        if old is not None:
            old.drain()
            old.close()
            person.gone()
        assert person.client.connack.session_present == (person.has_session and not clean)
        if clean or not person.has_session:
            person.forget()
        person.has_session = True
        person.kept = person.version == 5 or not clean  # in 3.1.1 a clean session ends with its connection
        self.look(person, again=list(person.flying))

    @precondition(lambda self: any(person.client for person in self.people))
    @rule(who=who)
    def leave(self, who: int) -> None:
        person = self.people[who]
        if person.client is not None:
            person.client.disconnect()
            person.client = None
            person.gone()

    @rule(who=who, name=st.sampled_from(sorted(FILTERS)), qos=st.integers(0, 2))
    def subscribe(self, who: int, name: str, qos: int) -> None:
        person = self.people[who]
        if person.client is not None:
            assert person.client.subscribe(f"{self.base}/{name}", qos=qos).reasons == [qos]
            old_qos, since = person.subscriptions.get(name, (0, 0))
            person.subscriptions[name] = (qos, since if old_qos else self.count)

    @rule(who=who, name=st.sampled_from(sorted(FILTERS)))
    def unsubscribe(self, who: int, name: str) -> None:
        person = self.people[who]
        if person.client is not None:
            person.client.unsubscribe(f"{self.base}/{name}")
            person.subscriptions.pop(name, None)

    @rule(
        publisher=st.integers(0, 1),
        topic=st.sampled_from(TOPICS),
        qos=st.integers(0, 2),
        count=st.sampled_from([1, 1, 4]),
    )
    def publish(self, publisher: int, topic: str, qos: int, count: int) -> None:
        """One message, or several in one write."""
        sender = self.publishers[publisher]
        packets = []
        packet_ids = [sender.next_id() % 60_000 + 1 for _ in range(count)] if qos else [None] * count
        for packet_id in packet_ids:
            self.count += 1
            payload = b"%d" % self.count
            packets.append(
                wire.publish(f"{self.base}/{topic}", payload, version=sender.version, qos=qos, packet_id=packet_id)
            )
            for person in self.people:
                person.owe(topic, self.count, qos)
        sender.send(*packets)
        answer = {0: None, 1: Kind.PUBACK, 2: Kind.PUBREC}[qos]
        if answer is not None:
            assert [sender.expect(answer).packet_id for _ in packet_ids] == packet_ids
        if qos == 2:
            sender.send(*(wire.acknowledge(Kind.PUBREL, packet_id) for packet_id in packet_ids if packet_id))
            assert [sender.expect(Kind.PUBCOMP).packet_id for _ in packet_ids] == packet_ids
        sender.sync()
        for person in self.people:
            self.look(person)

    @rule(who=who, place=st.integers(0, 2))
    def acknowledge(self, who: int, place: int) -> None:
        """The next step for one of the messages in flight."""
        person = self.people[who]
        if person.client is None or len(person.flying) <= place:
            return
        flight = person.flying[place]
        if flight.qos == 2 and not flight.released:
            person.client.send(wire.acknowledge(Kind.PUBREC, flight.packet_id))
            assert person.client.expect(Kind.PUBREL).packet_id == flight.packet_id
            flight.released = True
        else:
            kind = Kind.PUBACK if flight.qos == 1 else Kind.PUBCOMP
            person.client.send(wire.acknowledge(kind, flight.packet_id))
            person.flying.remove(flight)
        self.look(person)

    def look(self, person: Person, again: list[Flight] | None = None) -> None:
        """Everything that the node has sent, against what it owed: first what is sent again, then what is new."""
        if person.client is None:
            return
        again = again or []
        new = person.take_off()
        got: list[Packet] = []
        deadline = time.monotonic() + DEADLINE
        while True:  # what comes out of the journal may still be on its way
            person.client.send(PINGREQ)
            while (packet := person.client.receive()).kind is not Kind.PINGRESP:
                got.append(packet)
            arrived_count = sum(one.kind is Kind.PUBREL or one.qos > 0 for one in got)
            if arrived_count >= len(again) + len(new) or time.monotonic() > deadline:
                break
        published = [one for one in got if one.kind is Kind.PUBLISH]
        assert [one.payload for one in published if one.qos == 0] == person.qos0
        person.qos0 = []
        assert [one.packet_id for one in got if one.kind is Kind.PUBREL] == [f.packet_id for f in again if f.released]
        owed = [(f.payload, f.qos, True) for f in again if not f.released] + [(f.payload, f.qos, False) for f in new]
        assert [(one.payload, one.qos, one.dup) for one in published if one.qos] == owed
        arrived = [one.packet_id for one in published if one.qos]
        resent = [f.packet_id for f in again if not f.released]
        assert arrived[: len(resent)] == resent
        for flight, packet_id in zip(new, arrived[len(resent) :], strict=True):
            flight.packet_id = packet_id
        in_use = [flight.packet_id for flight in person.flying]
        assert len(in_use) == len(set(in_use))


@mqtt5("3.1.2-4", "3.1.2-5", "3.1.2-6", "4.1.0-1", "4.4.0-1", "4.5.0-1", "4.6.0-1", "4.6.0-5", "4.9.0-2", "3.8.4-8")
@mqtt311("3.1.2-4", "3.1.2-5", "3.1.2-6", "4.1.0-1", "4.4.0-1", "4.5.0-1", "4.6.0-1", "4.6.0-6", "3.8.4-6")
def test_sessions_get_what_they_are_owed(node: Broker) -> None:
    story = type("Story", (Story,), {"address": node.mqtt})
    run_state_machine_as_test(
        story,
        settings=settings(
            max_examples=80,
            stateful_step_count=50,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

"""Section 4.8 as a story: members of a group come and go, and no QoS 1 message is lost while anybody is there.

Which member gets a message is the node's choice, so the model keeps only what must hold for any choice: a message that
is out is with one member, what a member left behind goes to the others, and in the end all has been acknowledged once.
"""

from __future__ import annotations

from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.harness import wire
from tests.harness.node import Broker
from tests.harness.raw import Address, Client, unique
from tests.harness.wire import PINGREQ, Kind, Property
from tests.spec.marks import mqtt5

MEMBERS_MAX = 4


class Member:
    """A client of the group, with the messages that it has and has not acknowledged."""

    def __init__(self, address: Address, group_filter: str, window: int) -> None:
        self.client = Client(address).connect(props=[(Property.RECEIVE_MAXIMUM, window)])
        self.client.subscribe(group_filter, qos=1)
        self.window = window
        self.open: dict[bytes, int] = {}  # payload: packet id

    def look(self) -> None:
        """Take what has come."""
        self.client.send(PINGREQ)
        while (packet := self.client.receive()).kind is not Kind.PINGRESP:
            assert packet.kind is Kind.PUBLISH
            assert packet.payload not in self.open
            self.open[packet.payload] = packet.packet_id
        assert len(self.open) <= self.window


class Group(RuleBasedStateMachine):
    """The rules are the steps of the story."""

    address: ClassVar[Address]

    def __init__(self) -> None:
        super().__init__()
        self.topic = unique()
        self.publisher = Client(self.address).connect()
        self.members: list[Member] = []
        self.owed: set[bytes] = set()
        self.acknowledged: set[bytes] = set()
        self.count = 0

    @initialize(window=st.integers(1, 3))
    def begin(self, window: int) -> None:
        self.join(window)
        self.join(window + 1)

    @rule(window=st.integers(1, 3))
    def join(self, window: int) -> None:
        if len(self.members) < MEMBERS_MAX:
            self.members.append(Member(self.address, f"$share/{self.topic}/{self.topic}", window))

    @rule(who=st.integers(0, MEMBERS_MAX - 1), politely=st.booleans())
    def leave(self, who: int, politely: bool) -> None:
        """Not the last one: with nobody there, nothing is owed."""
        if who >= len(self.members) or len(self.members) == 1:
            return
        member = self.members.pop(who)
        if politely:
            member.client.disconnect()
        else:
            member.client.send(wire.publish("a", qos=3, packet_id=1)).drain()  # a breach ends it
            member.client.close()
        self.look()

    @rule(count=st.sampled_from([1, 2, 5]))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.count += 1
            self.owed.add(b"%d" % self.count)
            self.publisher.send(wire.publish(self.topic, b"%d" % self.count, qos=1, packet_id=self.count))
        for _ in range(count):
            self.publisher.expect(Kind.PUBACK)
        self.look()

    @rule(who=st.integers(0, MEMBERS_MAX - 1), count=st.integers(1, 3))
    def acknowledge(self, who: int, count: int) -> None:
        if who < len(self.members):
            member = self.members[who]
            for payload in [*member.open][:count]:
                member.client.send(wire.acknowledge(Kind.PUBACK, member.open.pop(payload)))
                assert payload not in self.acknowledged
                self.acknowledged.add(payload)
            self.look()

    def look(self) -> None:
        for member in self.members:
            member.look()
        out = [payload for member in self.members for payload in member.open]
        assert len(out) == len(set(out)), "a message is with two members"
        assert set(out) <= self.owed - self.acknowledged

    def teardown(self) -> None:
        try:
            while any(member.open for member in self.members):
                for who in range(len(self.members)):
                    self.acknowledge(who, MEMBERS_MAX)
            assert self.acknowledged == self.owed
        finally:
            for client in (self.publisher, *(member.client for member in self.members)):
                client.close()


@mqtt5("4.8.2-3", "4.9.0-2", "4.5.0-1")
def test_a_group_loses_nothing_while_anybody_is_there(node: Broker) -> None:
    group = type("Group", (Group,), {"address": node.mqtt})
    run_state_machine_as_test(
        group,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

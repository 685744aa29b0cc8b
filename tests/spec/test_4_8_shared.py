"""Section 4.8: shared subscriptions."""

from __future__ import annotations

import pytest

from tests.features.figures import wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import Client, unique
from tests.harness.received import Packet
from tests.harness.wire import KEPT, PINGREQ, Kind, Property
from tests.spec.marks import every_qos, mqtt5


def members(client: ClientMaker, topic: str, count: int = 2, qos: int = 2, **fields: object) -> list[Client]:
    """That many clients in one group; its name is the topic's."""
    group = [client(**fields) for _ in range(count)]
    for member in group:
        assert member.subscribe(f"$share/{topic}/{topic}", qos=qos).reasons == [qos]
    return group


def receiver(group: list[Client]) -> tuple[Client, Packet]:
    """Who of the group got the one message that was published, and the message; it may still be on its way."""
    got: list[tuple[Client, Packet]] = []

    def somebody_got_it() -> bool:
        for member in group:
            packet = member.send(PINGREQ).receive()
            if packet.kind is Kind.PUBLISH:
                got.append((member, packet))
                member.expect(Kind.PINGRESP)
        return bool(got)

    wait_until(somebody_got_it)
    assert len(got) == 1, got
    return got[0]


@every_qos
@mqtt5("4.8.2-3")
def test_each_message_goes_to_one_member(client: ClientMaker, qos: int) -> None:
    topic = unique()
    group, alone, publisher = members(client, topic, 3), client(), client()
    alone.subscribe(topic, qos=2)
    for number in range(30):
        publisher.publish(topic, b"%d" % number, qos=qos)
    assert alone.take_payloads(30) == [b"%d" % number for number in range(30)]
    got: list[bytes] = []
    for member in group:
        member.send(PINGREQ)
        while (packet := member.receive()).kind is not Kind.PINGRESP:
            if packet.kind is Kind.PUBLISH:
                got.append(packet.payload)
                assert packet.qos == qos
                if qos:
                    member.send(wire.acknowledge(Kind.PUBACK if qos == 1 else Kind.PUBREC, packet.packet_id))
    assert sorted(got, key=int) == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("granted", [0, 1])
@mqtt5("4.8.2-3")
def test_the_granted_qos_of_the_member_counts(client: ClientMaker, granted: int) -> None:
    topic = unique()
    group = members(client, topic, 2, qos=granted)
    client().publish(topic, b"x", qos=2)
    assert receiver(group)[1].qos == granted


@pytest.mark.parametrize(
    "name", ["$share//a", "$share/", "$share/g", "$share/g/", "$share/g+/a", "$share/#/a", "$share/g#/a"]
)
@mqtt5("4.8.2-1", "4.8.2-2")
def test_a_shared_filter_needs_a_name_and_a_filter(client: ClientMaker, name: str) -> None:
    answer = client().send(wire.subscribe(1, [(name, 0)])).receive()
    if answer.kind is Kind.DISCONNECT:
        assert answer.reason in {0x81, 0x82, 0x8F}
    else:
        assert answer.reasons[0] >= 0x80


@mqtt5("4.8.2-1", "4.8.2-2")
def test_shared_filters_may_have_wildcards_and_leading_slashes(client: ClientMaker) -> None:
    base = unique()
    member, publisher = client(), client()
    names = (f"$share/{base}/{base}/#", f"$share/{base}//{base}/+", f"$share/g ü/{base}x")
    assert member.subscribe(*names).reasons == [0, 0, 0]
    for topic in (f"{base}/a/b", f"/{base}/a", f"{base}x"):
        publisher.publish(topic, b"x")
        assert member.take().topic.decode() == topic


@mqtt5("4.8.2-2")
def test_groups_are_told_apart_by_name_and_filter(client: ClientMaker) -> None:
    topic = unique()
    first, second, third = client(), client(), client()
    first.subscribe(f"$share/a/{topic}")
    second.subscribe(f"$share/b/{topic}")
    third.subscribe(f"$share/a/{topic}/#")
    client().publish(topic, b"x")
    for one in (first, second, third):
        assert one.take().payload == b"x"


@mqtt5("4.8.2-4")
def test_qos2_is_completed_with_the_client_that_has_it(client: ClientMaker) -> None:
    topic = unique()
    group = members(client, topic, 2, **KEPT)
    client().publish(topic, b"x", qos=2)
    holder, message = receiver(group)
    other = group[1 - group.index(holder)]
    holder.drop()
    other.expect_nothing()
    back = client(5, holder.client_id, **KEPT)
    again = back.take()
    assert (again.packet_id, again.dup, again.payload) == (message.packet_id, True, b"x")
    other.expect_nothing()


@mqtt5("4.8.2-5")
def test_qos2_of_a_session_that_ends_goes_to_nobody_else(client: ClientMaker) -> None:
    topic = unique()
    group = members(client, topic, 2, **KEPT)
    client().publish(topic, b"x", qos=2)
    holder, _ = receiver(group)
    other = group[1 - group.index(holder)]
    holder.disconnect(0, [(Property.SESSION_EXPIRY, 0)])
    client().publish(topic, b"y", qos=2)  # what came back to the group would go out before it
    assert other.take().payload == b"y"


def test_qos1_of_a_member_that_leaves_goes_to_another(client: ClientMaker) -> None:
    """The specification says SHOULD (section 4.8.2); nothing is lost while a member is there."""
    topic = unique()
    group = members(client, topic, 2, qos=1)
    client().publish(topic, b"x", qos=1)
    holder, _ = receiver(group)
    other = group[1 - group.index(holder)]
    holder.disconnect()
    assert other.take().payload == b"x"


@pytest.mark.parametrize(("qos", "kind"), [(1, Kind.PUBACK), (2, Kind.PUBREC)], ids=["puback", "pubrec"])
@mqtt5("4.8.2-6", "4.4.0-2")
def test_a_refused_message_goes_to_nobody_else(client: ClientMaker, qos: int, kind: Kind) -> None:
    topic = unique()
    group = members(client, topic, 2, **KEPT)
    client().publish(topic, b"x", qos=qos)
    holder, message = receiver(group)
    other = group[1 - group.index(holder)]
    holder.send(wire.acknowledge(kind, message.packet_id, 0x80)).expect_nothing()
    other.expect_nothing()
    holder.disconnect(0, [(Property.SESSION_EXPIRY, 0)])
    client().publish(topic, b"y", qos=qos)
    assert other.take().payload == b"y"


@mqtt5("4.7.2-1", "4.8.2-2")
def test_shared_wildcards_do_not_match_topics_of_the_node_either(client: ClientMaker) -> None:
    base = unique()
    member, publisher = client(), client()
    member.subscribe(f"$share/{base}/+/{base}", f"$share/{base}/$x/{base}")
    publisher.publish(f"$y/{base}", b"no")
    publisher.publish(f"$x/{base}", b"exact")
    publisher.publish(f"y/{base}", b"wildcard")
    assert member.take_payloads(2) == [b"exact", b"wildcard"]
    member.expect_nothing()


@mqtt5("3.10.4-1", "4.8.2-1")
def test_leaving_a_group(client: ClientMaker) -> None:
    topic = unique()
    group = members(client, topic, 2)
    assert group[0].unsubscribe(f"$share/{topic}/{topic}").reasons == [0]
    publisher = client()
    for _ in range(5):
        publisher.publish(topic, b"x")
        assert group[1].take().payload == b"x"
    group[0].expect_nothing()


@mqtt5("3.3.1-9", "4.8.2-1")
def test_a_shared_subscription_gets_no_retained_messages(client: ClientMaker) -> None:
    topic = unique()
    publisher, member = client(), client()
    publisher.publish(topic, b"kept", retain=True)
    member.subscribe(f"$share/g/{topic}")
    member.expect_nothing()
    publisher.publish(topic, retain=True)

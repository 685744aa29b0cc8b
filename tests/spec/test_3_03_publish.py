"""Section 3.3: PUBLISH. Its properties and its retain flag have files of their own."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.received import Packet
from tests.harness.wire import KEPT, PINGREQ, Kind, Property
from tests.spec.marks import acknowledged_qos, both, every_qos, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID, RECEIVE_MAXIMUM, ALIAS_INVALID = 0x81, 0x82, 0x90, 0x93, 0x94


# -- fixed header ------------------------------------------------------------------------------------------------


@both
@acknowledged_qos
@mqtt5("3.3.1-1", "4.4.0-1")
@mqtt311("3.3.1-1", "4.4.0-1")
def test_a_redelivery_has_dup_and_its_packet_id(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    lost = client(version, **KEPT)
    lost.subscribe(topic, qos=qos)
    client(version).publish(topic, b"x", qos=qos)
    first = lost.expect(Kind.PUBLISH)
    assert not first.dup
    lost.drop()
    second = client(version, lost.client_id, **KEPT).expect(Kind.PUBLISH)
    assert (second.dup, second.packet_id, second.payload) == (True, first.packet_id, b"x")


@both
@mqtt5("3.3.1-2", "4.13.1-1")
@mqtt311("3.3.1-2", "4.8.0-1")
def test_dup_with_qos0_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.publish("a", version=version, dup=True)).expect_closed(MALFORMED, PROTOCOL_ERROR)


@both
@acknowledged_qos
@mqtt5("3.3.1-3", "4.3.2-2", "4.3.3-2")
@mqtt311("3.3.1-3", "4.3.2-1", "4.3.3-1")
def test_dup_of_the_publisher_is_not_passed_on(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=qos)
    publisher = client(version).send(wire.publish(topic, b"x", version=version, qos=qos, packet_id=7, dup=True))
    if qos == 2:
        publisher.send(wire.acknowledge(Kind.PUBREL, 7))
    assert not subscriber.expect(Kind.PUBLISH).dup


@both
@mqtt5("3.3.1-4")
@mqtt311("3.3.1-4")
def test_qos_3_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.publish("a", version=version, qos=3, packet_id=1)).expect_closed(MALFORMED)


# -- topic name --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("topic", ["#", "+", "a/#", "a/+/b", "a+", "a#b"])
@every_qos
@mqtt5("3.3.2-2", "4.7.0-1")
@mqtt311("3.3.2-2", "4.7.1-1")
def test_wildcards_in_a_topic_name_end_the_connection(client: ClientMaker, version: int, topic: str, qos: int) -> None:
    packet = wire.publish(topic, b"x", version=version, qos=qos, packet_id=1 if qos else None)
    client(version).send(packet).expect_closed(MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID)


@both
@mqtt5("4.7.3-1")
@mqtt311("4.7.3-1")
def test_an_empty_topic_name_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.publish("", b"x", version=version)).expect_closed(
        MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID
    )


@both
@mqtt5("3.3.2-1", "4.13.1-1")
@mqtt311("3.3.2-1", "4.8.0-1")
def test_a_publish_without_topic_ends_the_connection(client: ClientMaker, version: int) -> None:
    for body in (b"", b"\0", b"\0\5abc"):
        client(version).send(wire.packet(Kind.PUBLISH, 0, body)).expect_closed(MALFORMED)


@both
@every_qos
@mqtt5("3.3.2-1", "3.3.2-3")
@mqtt311("3.3.2-1", "3.3.2-3")
def test_the_topic_name_arrives_as_it_was_sent(client: ClientMaker, version: int, qos: int) -> None:
    base = unique()
    names = [f"{base}/a", f"{base}//", f"{base}/ü b/$x", f"/{base}", f"{base}/" + "x" * 300]
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(f"{base}/#", f"/{base}", qos=2)
    for name in names:
        publisher.publish(name, b"x", qos=qos)
    assert [subscriber.take().topic.decode() for _ in names] == names


# -- what the receiver answers -----------------------------------------------------------------------------------


@both
@mqtt5("3.3.4-1", "3.4.2-1", "3.5.2-1")
@mqtt311("3.3.4-1")
def test_each_qos_has_its_answer(client: ClientMaker, version: int) -> None:
    publisher = client(version)
    publisher.send(wire.publish("a", version=version), PINGREQ)
    publisher.expect(Kind.PINGRESP)  # no answer to QoS 0
    publisher.send(wire.publish("a", version=version, qos=1, packet_id=1))
    assert publisher.expect(Kind.PUBACK).reason < 0x80
    publisher.send(wire.publish("a", version=version, qos=2, packet_id=1))
    assert publisher.expect(Kind.PUBREC).reason < 0x80


# -- subscriptions that overlap ----------------------------------------------------------------------------------


@both
@mqtt5("3.3.4-2")
@mqtt311("3.3.5-1")
def test_overlapping_subscriptions_deliver_with_the_highest_qos(client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe((f"{base}/#", 0), (f"{base}/+", 2), (f"{base}/a", 1))
    publisher.publish(f"{base}/a", b"x", qos=2)
    publisher.publish(f"{base}/end/end", b"end", qos=2)
    got: list[Packet] = []
    while not got or got[-1].payload != b"end":
        got.append(subscriber.take())
    assert max(one.qos for one in got[:-1]) == 2


@mqtt5("3.3.4-3", "3.3.4-4", "3.3.4-5")
def test_subscription_identifiers_come_with_the_message(client: ClientMaker) -> None:
    base = unique()
    subscriber, publisher = client(), client()
    subscriber.subscribe(f"{base}/+", qos=1, props=[(Property.SUBSCRIPTION_ID, 1)])
    subscriber.subscribe(f"{base}/a", qos=1, props=[(Property.SUBSCRIPTION_ID, 268_435_455)])
    subscriber.subscribe(f"{base}/#")
    publisher.publish(f"{base}/a", b"x", qos=1)
    publisher.publish(f"{base}/end/end", b"end", qos=1)
    got = [subscriber.take()]
    while got[-1].payload != b"end":
        got.append(subscriber.take())
    identifiers = [value for one in got for value in one.all(Property.SUBSCRIPTION_ID)]
    assert sorted(identifiers, key=str) == [1, 268_435_455]
    assert got[-1].all(Property.SUBSCRIPTION_ID) == []


@mqtt5("3.3.4-3", "3.8.4-3")
def test_a_subscription_identifier_can_be_changed_and_taken_away(client: ClientMaker) -> None:
    topic = unique()
    subscriber, publisher = client(), client()
    for expected in (200, 5, None):
        props = [] if expected is None else [(Property.SUBSCRIPTION_ID, expected)]
        subscriber.subscribe(topic, props=props)
        publisher.publish(topic, b"x")
        assert subscriber.take().get(Property.SUBSCRIPTION_ID) == expected


@mqtt5("3.3.4-6")
def test_a_subscription_identifier_from_a_client_is_a_protocol_error(client: ClientMaker) -> None:
    packet = wire.publish(unique(), props=[(Property.SUBSCRIPTION_ID, 1)])
    client().send(packet).expect_closed(PROTOCOL_ERROR)


# -- receive maximum ---------------------------------------------------------------------------------------------


@mqtt5("3.3.4-7", "4.9.0-3")
def test_more_unfinished_messages_than_the_receive_maximum_end_the_connection(client: ClientMaker) -> None:
    publisher = client()
    maximum = publisher.connack.number(Property.RECEIVE_MAXIMUM, 65_535)
    topic = unique()
    publisher.send(*(wire.publish(topic, qos=2, packet_id=number) for number in range(1, maximum + 1)))
    for number in range(1, maximum + 1):
        assert publisher.expect(Kind.PUBREC).packet_id == number
    publisher.expect_nothing()
    publisher.send(wire.publish(topic, qos=2, packet_id=maximum + 1)).expect_closed(RECEIVE_MAXIMUM)


@acknowledged_qos
@pytest.mark.parametrize("maximum", [1, 3])
@mqtt5("3.3.4-9", "3.3.4-10", "4.9.0-1", "4.9.0-2", "4.9.0-3")
def test_the_node_keeps_the_receive_maximum_of_the_client(client: ClientMaker, qos: int, maximum: int) -> None:
    topic = unique()
    subscriber = client(5, props=[(Property.RECEIVE_MAXIMUM, maximum)])
    subscriber.subscribe(topic, qos=2)
    publisher = client()
    for number in range(maximum + 2):
        publisher.publish(topic, b"%d" % number, qos=qos)
    got = [subscriber.expect(Kind.PUBLISH) for _ in range(maximum)]
    subscriber.expect_nothing()  # the window is full, and PINGREQ is answered all the same
    assert subscriber.subscribe(unique()).reasons == [0]  # as is every other packet
    publisher.publish(topic, b"zero")
    assert subscriber.take().payload == b"zero"  # QoS 0 needs no room in the window
    if qos == 1:
        subscriber.send(wire.acknowledge(Kind.PUBACK, got[0].packet_id))
    else:
        subscriber.send(wire.acknowledge(Kind.PUBREC, got[0].packet_id))
        subscriber.expect(Kind.PUBREL)
        subscriber.expect_nothing()  # PUBREC alone gives no room
        subscriber.send(wire.acknowledge(Kind.PUBCOMP, got[0].packet_id))
    assert subscriber.expect(Kind.PUBLISH).payload == b"%d" % maximum
    subscriber.expect_nothing()


@mqtt5("3.3.4-9", "4.9.0-2", "4.4.0-2")
def test_a_refusing_pubrec_gives_room_in_the_window(client: ClientMaker) -> None:
    topic = unique()
    subscriber = client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
    subscriber.subscribe(topic, qos=2)
    publisher = client()
    publisher.publish(topic, b"a", qos=2)
    publisher.publish(topic, b"b", qos=2)
    first = subscriber.expect(Kind.PUBLISH)
    subscriber.send(wire.acknowledge(Kind.PUBREC, first.packet_id, 0x80))
    assert subscriber.expect(Kind.PUBLISH).payload == b"b"


@mqtt5("3.3.4-9", "4.9.0-1")
def test_the_window_of_a_resumed_session_is_the_new_receive_maximum(client: ClientMaker) -> None:
    topic = unique()
    first = client(**KEPT)
    first.subscribe(topic, qos=1)
    publisher = client()
    for number in range(5):
        publisher.publish(topic, b"%d" % number, qos=1)
    for _ in range(5):
        first.expect(Kind.PUBLISH)
    first.drop()
    props = [(Property.SESSION_EXPIRY, 30), (Property.RECEIVE_MAXIMUM, 2)]
    back = client(5, first.client_id, clean=False, props=props)
    got = [back.expect(Kind.PUBLISH) for _ in range(2)]
    back.expect_nothing()
    for one in got:
        back.send(wire.acknowledge(Kind.PUBACK, one.packet_id))
    assert [one.payload for one in (*got, back.take(), back.take(), back.take())] == [b"0", b"1", b"2", b"3", b"4"]


@both
@mqtt311("3.3.5-2")
@mqtt5("3.3.4-1")
def test_a_publish_that_may_not_be_is_acknowledged_or_ends_the_connection(client: ClientMaker, version: int) -> None:
    """A topic that no client may write to: the node's own `$SYS`."""
    publisher = client(version)
    publisher.send(wire.publish("$SYS/broker/uptime", b"x", version=version, qos=1, packet_id=1))
    try:
        answer = publisher.receive()
    except AssertionError:
        return  # closed
    assert answer.kind in {Kind.PUBACK, Kind.DISCONNECT}

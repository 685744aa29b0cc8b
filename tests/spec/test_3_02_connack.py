"""Section 3.2: CONNACK, and what the node does with clients that ignore what it says there."""

from __future__ import annotations

import time

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import unique
from tests.harness.wire import KEPT, Kind, Property, Will
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82


@both
@mqtt5("3.2.2-2", "3.1.2-4", "3.1.4-4", "3.1.4-5")
@mqtt311("3.2.2-1", "3.1.2-6", "3.1.4-3", "3.1.4-4")
def test_a_clean_start_has_no_session(client: ClientMaker, version: int) -> None:
    topic = unique()
    first = client(version, **KEPT)
    first.subscribe(topic, qos=1)
    first.disconnect()
    clean = client(version, first.client_id, clean=True, props=KEPT["props"])
    assert (clean.connack.session_present, clean.connack.reason) == (False, 0)
    client(version).publish(topic, b"x", qos=1)
    clean.expect_nothing()  # the subscription went with the old session


@both
@mqtt5("3.2.2-3", "3.1.2-5", "3.1.2-6", "3.1.4-4")
@mqtt311("3.2.2-2", "3.2.2-3", "3.1.2-4", "3.1.4-3")
def test_session_present_says_whether_there_was_one(client: ClientMaker, version: int) -> None:
    first = client(version, **KEPT)
    assert (first.connack.session_present, first.connack.reason) == (False, 0)
    first.disconnect()
    again = client(version, first.client_id, **KEPT)
    assert (again.connack.session_present, again.connack.reason) == (True, 0)
    third = client(version, first.client_id, **KEPT)  # taking over a live connection is the same
    assert third.connack.session_present


@both
@mqtt5("3.2.0-1", "3.2.2-3")
@mqtt311("3.2.0-1", "3.2.2-2")
def test_connack_comes_before_the_messages_of_the_session(client: ClientMaker, raw: ClientMaker, version: int) -> None:
    topic = unique()
    absent = client(version, **KEPT)
    absent.subscribe(topic, qos=1)
    absent.disconnect()
    client(version).publish(topic, b"x", qos=1)
    back = raw(version).send(wire.connect(absent.client_id, version=version, **KEPT))
    assert back.receive().kind is Kind.CONNACK
    assert back.take().payload == b"x"


@both
@mqtt5("3.2.2-6", "3.2.2-7", "3.2.2-8", "4.13.2-1")
@mqtt311("3.2.2-4", "3.2.2-5", "3.2.2-6")
def test_a_refusal_has_no_session_and_ends_the_connection(client: ClientMaker, raw: ClientMaker, version: int) -> None:
    kept = client(version, **KEPT)
    kept.disconnect()
    bad = raw(version).send(wire.connect(kept.client_id, version=version, clean=False, flags=0x01))
    bad.expect_refused(MALFORMED, PROTOCOL_ERROR, or_silence=version == 4)
    assert client(version, kept.client_id, **KEPT).connack.session_present  # the session is still there


@both
@mqtt5("3.2.2-1")
def test_connack_flags_have_no_reserved_bits(raw: ClientMaker, version: int) -> None:
    for clean in (True, False):
        got = raw(version).send(wire.connect(unique(), version=version, clean=clean)).expect(Kind.CONNACK)
        assert not got.session_present  # the decoder refuses flags other than 0 and 1


@pytest.mark.parametrize("maximum", [8, 20, 40])
@mqtt5("3.2.2-19", "3.2.2-20", "3.1.2-24")
def test_a_refusal_explains_itself_only_within_the_maximum_packet_size(raw: ClientMaker, maximum: int) -> None:
    props = [(Property.MAXIMUM_PACKET_SIZE, maximum), (Property.RECEIVE_MAXIMUM, 0)]
    got = raw().send(wire.connect(unique(), props=props)).expect_refused(PROTOCOL_ERROR, or_silence=True)
    assert got is None or got.size <= maximum


@pytest.mark.parametrize("maximum", [8, 20, 40])
@mqtt5("3.2.2-19", "3.2.2-20", "3.1.2-24")
def test_a_connack_never_exceeds_the_maximum_packet_size(raw: ClientMaker, maximum: int) -> None:
    modest = raw().send(wire.connect(unique(), props=[(Property.MAXIMUM_PACKET_SIZE, maximum)]), wire.disconnect())
    assert len(modest.read_to_end()) <= maximum  # one that cannot get smaller is not sent at all


@mqtt5("3.2.2-18", "3.2.2-17", "3.3.2-9", "3.3.2-12")
def test_topic_aliases_up_to_the_announced_maximum_and_no_further(client: ClientMaker) -> None:
    topic = unique()
    publisher, subscriber = client(), client()
    subscriber.subscribe(topic)
    maximum = publisher.connack.number(Property.TOPIC_ALIAS_MAXIMUM)
    for name in (topic, ""):  # each is set, then used
        for alias in range(1, min(maximum, 100) + 1):
            publisher.publish(name, b"%d" % alias, props=[(Property.TOPIC_ALIAS, alias)])
            got = subscriber.take()
            assert (got.topic, got.payload) == (topic.encode(), b"%d" % alias)
    if maximum < 0xFFFF:
        publisher.send(wire.publish(topic, b"x", props=[(Property.TOPIC_ALIAS, maximum + 1)]))
        publisher.expect_closed(0x94)
        subscriber.expect_nothing()


# -- nodes that offer less ---------------------------------------------------------------------------------------


@mqtt5("3.2.2-9", "3.2.2-10", "3.2.2-11", "3.2.2-12")
def test_a_node_without_qos2(modest: Node, client: ClientMaker, raw: ClientMaker) -> None:
    connected = client(to=modest)
    assert connected.connack.get(Property.MAXIMUM_QOS) == 1
    topic = unique()
    answer = connected.subscribe((f"{topic}/0", 0), (f"{topic}/1", 1), (f"{topic}/2", 2))
    assert answer.reasons == [0, 1, 1]
    connected.publish(topic, b"x", qos=1)
    connected.send(wire.publish(topic, qos=2, packet_id=1)).expect_closed(0x9B)
    raw(to=modest).send(wire.connect(unique(), will=Will(topic, qos=2))).expect_refused(0x9B)


@mqtt5("3.2.2-9", "3.2.2-10", "3.2.2-11", "3.2.2-12")
@both
def test_a_node_with_qos0_only(client: ClientMaker, raw: ClientMaker, make_node: NodeMaker, version: int) -> None:
    small = make_node("[mqtt]\nqos_max = 0\n")
    connected = client(version, to=small)
    topic = unique()
    assert connected.subscribe((f"{topic}/0", 0), (f"{topic}/1", 1), (f"{topic}/2", 2)).reasons == [0, 0, 0]
    connected.publish(f"{topic}/2", b"x")
    assert connected.take().payload == b"x"
    connected.send(wire.publish(topic, version=version, qos=1, packet_id=1)).expect_closed(0x9B)
    refused = raw(version, to=small).send(wire.connect(unique(), version=version, will=Will(topic, qos=1)))
    refused.expect_refused(*([0x9B] if version == 5 else []))


@mqtt5("3.2.2-13", "3.2.2-14")
def test_a_node_without_retained_messages(modest: Node, client: ClientMaker, raw: ClientMaker) -> None:
    connected = client(to=modest)
    assert connected.connack.get(Property.RETAIN_AVAILABLE) == 0
    connected.send(wire.publish(unique(), b"x", retain=True)).expect_closed(0x9A)
    raw(to=modest).send(wire.connect(unique(), will=Will("w", retain=True))).expect_refused(0x9A)


@both
@mqtt5("3.1.3-8", "3.2.2-7")
@mqtt311("3.1.3-9", "3.2.2-5")
def test_a_client_id_that_the_node_refuses(modest: Node, client: ClientMaker, raw: ClientMaker, version: int) -> None:
    client(version, "a" * 23, to=modest).expect_nothing()
    raw(version, to=modest).send(wire.connect("a" * 24, version=version)).expect_refused(0x85 if version == 5 else 2)


@both
@mqtt5("3.2.2-15")
def test_a_packet_above_the_announced_maximum_ends_the_connection(
    modest: Node, client: ClientMaker, version: int
) -> None:
    connected = client(version, to=modest)
    if version == 5:
        assert connected.connack.get(Property.MAXIMUM_PACKET_SIZE) == 1000
    header = 3 + 3 + (version == 5)
    connected.publish("a", b"x" * (1000 - header))
    connected.send(wire.publish("a", b"x" * (1001 - header), version=version)).expect_closed(0x95)


@both
@mqtt5("3.2.2-15", "4.13.1-1")
def test_a_length_above_the_maximum_is_enough_to_end_the_connection(
    modest: Node, client: ClientMaker, version: int
) -> None:
    client(version, to=modest).send(b"\x30\xff\xff\xff\x7f").expect_closed(0x95)


@mqtt5("3.2.2-18", "3.2.2-17", "3.3.2-9")
def test_a_node_without_topic_aliases(modest: Node, client: ClientMaker) -> None:
    connected = client(to=modest)
    assert connected.connack.get(Property.TOPIC_ALIAS_MAXIMUM) is None
    connected.send(wire.publish(unique(), b"x", props=[(Property.TOPIC_ALIAS, 1)])).expect_closed(0x94)


@pytest.mark.parametrize("asked", [None, 0, 1], ids=str)
@mqtt5("3.1.2-28")
def test_response_information_comes_only_when_asked_for(modest: Node, client: ClientMaker, asked: int | None) -> None:
    props = [] if asked is None else [(Property.REQUEST_RESPONSE_INFORMATION, asked)]
    given = client(to=modest, props=props).connack.get(Property.RESPONSE_INFORMATION)
    assert given == ("answers/here" if asked else None)


@mqtt5("3.1.2-23")
def test_a_shorter_session_expiry_is_announced(modest: Node, client: ClientMaker) -> None:
    for asked, announced in ((1000, 100), (0xFFFFFFFF, 100), (50, None)):
        connected = client(to=modest, props=[(Property.SESSION_EXPIRY, asked)])
        assert connected.connack.get(Property.SESSION_EXPIRY) == announced


@mqtt5("3.3.4-7")
def test_a_small_receive_maximum_of_the_node(modest: Node, client: ClientMaker) -> None:
    connected = client(to=modest)
    assert connected.connack.get(Property.RECEIVE_MAXIMUM) == 3
    connected.send(*(wire.publish("a", qos=1, packet_id=number) for number in (1, 2, 3)))
    assert [connected.expect(Kind.PUBACK).packet_id for _ in range(3)] == [1, 2, 3]
    connected.publish("a", qos=1)  # the acknowledged ones do not count any more


@mqtt5("3.4.2-1", "4.13.2-1")
def test_a_payload_that_is_not_what_it_says_is_refused(modest: Node, client: ClientMaker) -> None:
    """A node that checks it may refuse the message, or end the connection."""
    connected = client(to=modest)
    utf8 = [(Property.PAYLOAD_FORMAT, 1)]
    assert connected.publish("a", "ü".encode(), qos=1, props=utf8)
    answer = connected.send(wire.publish("a", b"\xff", qos=1, packet_id=9, props=utf8)).receive()
    assert (answer.kind in {Kind.PUBACK, Kind.DISCONNECT}, answer.reason) == (True, 0x99)


@mqtt5("4.13.1-1")
def test_a_node_without_subscription_identifiers(modest: Node, client: ClientMaker) -> None:
    connected = client(to=modest)
    assert connected.connack.get(Property.SUBSCRIPTION_ID_AVAILABLE) == 0
    connected.send(wire.subscribe(1, [("a", 0)], props=[(Property.SUBSCRIPTION_ID, 1)])).expect_closed(0xA1)


@mqtt5("3.2.2-22", "3.1.2-22")
def test_a_server_keep_alive_replaces_that_of_the_client(client: ClientMaker, make_node: NodeMaker) -> None:
    strict = make_node("[mqtt]\nkeep_alive_max = 1\n")
    silent = client(to=strict, keep_alive=600)
    assert silent.connack.get(Property.SERVER_KEEP_ALIVE) == 1
    start = time.monotonic()
    silent.expect_closed(0x8D)
    assert time.monotonic() - start > 1.0

"""Sections 3.8 and 3.9: SUBSCRIBE and SUBACK."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import unique
from tests.harness.wire import KEPT, Kind, Property
from tests.spec.marks import both, every_qos, every_version, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, FILTER_INVALID = 0x81, 0x82, 0x8F


@both
@mqtt5("3.8.3-2", "4.13.1-1")
@mqtt311("3.8.3-3", "4.8.0-1")
def test_a_subscribe_without_filter_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.subscribe(1, [], version=version)).expect_closed(PROTOCOL_ERROR, MALFORMED)


@both
@mqtt5("3.8.3-2", "4.13.1-1")
@mqtt311("3.8.3-3")
def test_a_filter_without_options_ends_the_connection(client: ClientMaker, version: int) -> None:
    whole = wire.subscribe(1, [("a/b", 0)], version=version)
    client(version).send(wire.packet(Kind.SUBSCRIBE, 2, whole[2:-1])).expect_closed(MALFORMED)


@both
@pytest.mark.parametrize("options", [0x03, 0x40, 0x80, 0xC0], ids=hex)
@mqtt5("3.8.3-5", "4.13.1-1")
@mqtt311("3.8.3-4")
def test_reserved_bits_of_the_options_end_the_connection(client: ClientMaker, version: int, options: int) -> None:
    packet = wire.subscribe(1, [("a", options)], version=version)
    client(version).send(packet).expect_closed(MALFORMED, PROTOCOL_ERROR)


@pytest.mark.parametrize("options", [0x04, 0x08, 0x10, 0x20, 0x30], ids=hex)
@mqtt311("3.8.3-4")
def test_the_options_of_5_are_reserved_before_it(client: ClientMaker, options: int) -> None:
    client(4).send(wire.subscribe(1, [("a", options)], version=4)).expect_closed()


@mqtt5("3.8.3-5", "4.13.1-1")
def test_retain_handling_3_ends_the_connection(client: ClientMaker) -> None:
    client().send(wire.subscribe(1, [("a", 0x30)])).expect_closed(PROTOCOL_ERROR, MALFORMED)


@pytest.mark.parametrize(
    "props",
    [[(Property.SUBSCRIPTION_ID, 0)], [(Property.SUBSCRIPTION_ID, 1), (Property.SUBSCRIPTION_ID, 2)]],
    ids=["zero", "twice"],
)
@mqtt5("4.13.1-1")
def test_a_wrong_subscription_identifier_is_a_protocol_error(client: ClientMaker, props: wire.Properties) -> None:
    client().send(wire.subscribe(1, [("a", 0)], props=props)).expect_closed(PROTOCOL_ERROR)


@mqtt5("3.8.3-3")
@every_qos
def test_no_local_keeps_a_clients_messages_from_itself(client: ClientMaker, qos: int) -> None:
    topic = unique()
    talker, other = client(), client()
    talker.subscribe(topic, qos=2, no_local=True)
    other.subscribe(topic, qos=2, no_local=True)
    talker.publish(topic, b"x", qos=qos)
    assert other.take().payload == b"x"
    talker.expect_nothing()
    other.publish(topic, b"y", qos=qos)
    assert talker.take().payload == b"y"


@mqtt5("3.8.3-3")
def test_no_local_holds_for_the_client_id_not_the_connection(client: ClientMaker) -> None:
    topic = unique()
    talker = client(**KEPT)
    talker.subscribe(topic, qos=1, no_local=True)
    talker.disconnect()
    again = client(5, talker.client_id, **KEPT)
    again.publish(topic, b"x", qos=1)
    again.expect_nothing()


@mqtt5("3.8.3-4")
def test_no_local_on_a_shared_subscription_is_a_protocol_error(client: ClientMaker) -> None:
    packet = wire.subscribe(1, [("$share/g/a", wire.options(0, no_local=True))])
    client().send(packet).expect_closed(PROTOCOL_ERROR)


@every_version
@mqtt5("3.8.4-1", "3.8.4-5", "3.8.4-6", "3.8.4-7", "3.9.3-1", "3.9.3-2")
@mqtt311("3.8.4-1", "3.8.4-4", "3.8.4-5", "3.9.3-1", "3.9.3-2")
def test_suback_answers_every_filter_in_order(client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber = client(version)
    granted = [2, 0, 1, 1, 2, 0]
    answer = subscriber.subscribe(*((f"{base}/{number}", qos) for number, qos in enumerate(granted)))
    assert answer.reasons == granted
    publisher = client(version)
    for number, qos in enumerate(granted):  # each filter holds as if it had come alone
        publisher.publish(f"{base}/{number}", b"x", qos=2)
        assert subscriber.take().qos == qos


@both
@mqtt5("3.8.4-6", "3.8.4-7", "3.9.3-1", "3.9.3-2", "4.7.1-1", "4.7.1-2")
@mqtt311("3.8.4-4", "3.8.4-5", "3.9.3-1", "3.9.3-2", "4.7.1-2", "4.7.1-3")
def test_a_bad_filter_does_not_spoil_the_others(client: ClientMaker, version: int) -> None:
    """A node may also close the connection for a filter that is not valid; ours answers it with its reason code."""
    base = unique()
    subscriber = client(version)
    answer = subscriber.subscribe((f"{base}/a", 1), (f"{base}/#/x", 1), (f"{base}/b", 2), (f"{base}+", 0))
    bad = FILTER_INVALID if version == 5 else 0x80
    assert answer.reasons == [1, bad, 2, bad]
    client(version).publish(f"{base}/b", b"x", qos=2)
    assert subscriber.take().payload == b"x"


@both
@mqtt5("3.8.4-5", "3.8.4-3", "3.3.1-9")
@mqtt311("3.8.4-4", "3.8.4-3")
def test_the_same_filter_twice_in_one_subscribe(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    publisher.publish(topic, b"kept", retain=True)
    assert subscriber.subscribe((topic, 0), (topic, 1)).reasons == [0, 1]
    assert subscriber.take_payloads(2) == [b"kept", b"kept"]  # as two SUBSCRIBE packets would get it
    publisher.publish(topic, b"x", qos=2)
    assert subscriber.take().qos == 1
    subscriber.expect_nothing()
    assert subscriber.unsubscribe(topic, topic).reasons == ([0, 0x11] if version == 5 else [])
    publisher.publish(topic, retain=True)


@both
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
@mqtt5("3.8.4-8")
@mqtt311("3.8.4-6")
def test_the_lower_qos_of_message_and_subscription_counts(
    client: ClientMaker, version: int, published: int, granted: int
) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=granted)
    client(version).publish(topic, b"x", qos=published)
    assert subscriber.take().qos == min(published, granted)


@both
@mqtt5("3.8.4-3")
@mqtt311("3.8.4-3")
def test_subscribing_again_replaces_the_subscription(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    for qos in (0, 2, 1):
        assert subscriber.subscribe(topic, qos=qos).reasons == [qos]
        publisher.publish(topic, b"x", qos=2)
        assert subscriber.take().qos == qos
        subscriber.expect_nothing()  # one subscription, one copy


@both
@mqtt5("3.8.4-4")
@mqtt311("3.8.4-3")
def test_no_message_is_lost_while_a_subscription_is_replaced(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=1)
    for number in range(40):
        publisher.send(wire.publish(topic, b"%d" % number, version=version, qos=1, packet_id=number + 1))
        subscriber.send(wire.subscribe(number + 1, [(topic, 1)], version=version))
    got: list[bytes] = []
    acknowledged = 0
    while len(got) < 40 or acknowledged < 40:
        packet = subscriber.receive()
        if packet.kind is Kind.SUBACK:
            acknowledged += 1
        else:
            got.append(packet.payload)
            subscriber.send(wire.acknowledge(Kind.PUBACK, packet.packet_id))
    assert got == [b"%d" % number for number in range(40)]


@mqtt5("3.9.2-1", "3.9.2-2")
def test_suback_stays_within_the_maximum_packet_size(client: ClientMaker) -> None:
    subscriber = client(props=[(Property.MAXIMUM_PACKET_SIZE, 20)])
    assert subscriber.subscribe(("a/#/b", 0)).size <= 20
    assert subscriber.subscribe(unique()).size <= 20


@pytest.mark.parametrize(
    ("announced", "name", "reason"),
    [
        pytest.param(Property.WILDCARD_AVAILABLE, "a/+", 0xA2, id="wildcards"),
        pytest.param(Property.SHARED_AVAILABLE, "$share/g/a", 0x9E, id="shared"),
    ],
)
@both
@mqtt5("3.9.3-2", "3.8.4-7")
@mqtt311("3.8.3-2", "3.9.3-2")
def test_a_node_that_offers_less_refuses_the_filter(
    modest: Node, client: ClientMaker, version: int, announced: Property, name: str, reason: int
) -> None:
    subscriber = client(version, to=modest)
    answer = subscriber.send(wire.subscribe(1, [("plain", 0), (name, 0)], version=version)).receive()
    if version == 5:
        assert subscriber.connack.get(announced) == 0
    if answer.kind is Kind.DISCONNECT:
        assert answer.reason == reason
    else:
        assert answer.reasons == [0, reason if version == 5 else 0x80]

"""Chapter 2: fixed header, packet identifiers, property length."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import Kind, Property
from tests.spec.marks import acknowledged_qos, both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82

RIGHT_FLAGS = {
    Kind.PUBACK: 0,
    Kind.PUBREC: 0,
    Kind.PUBREL: 2,
    Kind.PUBCOMP: 0,
    Kind.SUBSCRIBE: 2,
    Kind.UNSUBSCRIBE: 2,
    Kind.PINGREQ: 0,
    Kind.DISCONNECT: 0,
}
FLAGS = [
    pytest.param(kind, flags, id=f"{kind.name.lower()}-{flags:04b}")
    for kind, right in RIGHT_FLAGS.items()
    for flags in (0b0000, 0b0001, 0b0010, 0b0100, 0b1000, 0b1111)
    if flags != right
]


def with_flags(kind: Kind, flags: int, version: int) -> bytes:
    """A packet that is right but for its flags."""
    if kind is Kind.SUBSCRIBE:
        return wire.subscribe(1, [("a", 0)], version=version, flags=flags)
    if kind is Kind.UNSUBSCRIBE:
        return wire.unsubscribe(1, ["a"], version=version, flags=flags)
    if kind in {Kind.PINGREQ, Kind.DISCONNECT}:
        return wire.packet(kind, flags)
    return wire.acknowledge(kind, 1, flags=flags)


@both
@pytest.mark.parametrize(("kind", "flags"), FLAGS)
@mqtt5("2.1.3-1", "3.6.1-1", "3.8.1-1", "3.10.1-1", "3.14.1-1")
@mqtt311("2.2.2-1", "2.2.2-2", "3.6.1-1", "3.8.1-1", "3.10.1-1", "3.14.1-1")
def test_reserved_flags_end_the_connection(client: ClientMaker, version: int, kind: Kind, flags: int) -> None:
    client(version).send(with_flags(kind, flags, version)).expect_closed(MALFORMED)


@both
@pytest.mark.parametrize("flags", [0b0001, 0b0010, 0b0100, 0b1000])
@mqtt5("2.1.3-1", "3.1.4-1")
@mqtt311("2.2.2-1", "2.2.2-2", "3.1.4-1")
def test_reserved_flags_of_connect_are_refused(raw: ClientMaker, version: int, flags: int) -> None:
    packet = wire.connect(unique(), version=version)
    raw(version).send(bytes([0x10 | flags]) + packet[1:]).expect_refused(MALFORMED, or_silence=True)


@both
@pytest.mark.parametrize("kind", [0, Kind.CONNACK, Kind.SUBACK, Kind.UNSUBACK, Kind.PINGRESP])
@mqtt5("4.13.1-1")
@mqtt311("4.8.0-1")
def test_packets_that_no_client_sends_end_the_connection(client: ClientMaker, version: int, kind: int) -> None:
    bodies = {Kind.CONNACK: b"\0\0\0", Kind.SUBACK: b"\0\1\0\0", Kind.UNSUBACK: b"\0\1\0\0"}
    client(version).send(wire.packet(kind, 0, bodies.get(Kind(kind) if kind else Kind.AUTH, b""))).expect_closed(
        MALFORMED, PROTOCOL_ERROR
    )


@mqtt311("4.8.0-1")
def test_packet_type_15_does_not_exist_before_5(client: ClientMaker) -> None:
    client(4).send(wire.packet(Kind.AUTH, 0)).expect_closed()


@both
@mqtt5("2.2.1-2", "4.3.1-1")
@mqtt311("2.3.1-5", "4.3.1-1")
def test_a_qos0_publish_has_no_packet_id(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, b"payload")
    got = subscriber.take()
    # a packet id between topic and payload would stand in front of the payload
    assert (got.qos, got.dup, got.payload) == (0, False, b"payload")


@both
@pytest.mark.parametrize("kind", ["qos1", "qos2", "subscribe", "unsubscribe"])
@mqtt5("2.2.1-3")
@mqtt311("2.3.1-1")
def test_packet_id_zero_ends_the_connection(client: ClientMaker, version: int, kind: str) -> None:
    packets = {
        "qos1": wire.publish("a", version=version, qos=1, packet_id=0),
        "qos2": wire.publish("a", version=version, qos=2, packet_id=0),
        "subscribe": wire.subscribe(0, [("a", 0)], version=version),
        "unsubscribe": wire.unsubscribe(0, ["a"], version=version),
    }
    client(version).send(packets[kind]).expect_closed(MALFORMED, PROTOCOL_ERROR)


@both
@pytest.mark.parametrize("kind", [Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP], ids=lambda kind: kind.name)
@mqtt5("2.2.1-5", "4.13.1-1")
@mqtt311("2.3.1-6", "4.8.0-1")
def test_packet_id_zero_in_an_acknowledgement_ends_the_connection(
    client: ClientMaker, version: int, kind: Kind
) -> None:
    client(version).send(wire.acknowledge(kind, 0)).expect_closed(MALFORMED, PROTOCOL_ERROR)


@both
@mqtt5("2.2.1-4", "4.3.2-1", "4.3.3-1")
@mqtt311("2.3.1-4", "4.3.2-1", "4.3.3-1")
def test_packet_ids_of_the_node_are_unused_ones(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=2)
    for number in range(30):
        publisher.publish(topic, qos=1 + number % 2)
    unacknowledged = [subscriber.expect(Kind.PUBLISH).packet_id for _ in range(20)]
    assert len(set(unacknowledged)) == 20
    assert 0 not in unacknowledged


@both
@pytest.mark.parametrize("packet_id", [1, 0xFF, 0x100, 0xFFFF])
@mqtt5("2.2.1-5", "4.3.2-4", "4.3.3-8", "4.3.3-11", "3.3.4-1")
@mqtt311("2.3.1-6", "4.3.2-2", "4.3.3-2", "3.3.4-1")
def test_acknowledgements_have_the_packet_id_of_the_publish(client: ClientMaker, version: int, packet_id: int) -> None:
    publisher = client(version)
    publisher.send(wire.publish("a", version=version, qos=1, packet_id=packet_id))
    assert publisher.expect(Kind.PUBACK).packet_id == packet_id
    publisher.send(wire.publish("a", version=version, qos=2, packet_id=packet_id))
    assert publisher.expect(Kind.PUBREC).packet_id == packet_id
    publisher.send(wire.acknowledge(Kind.PUBREL, packet_id))
    assert publisher.expect(Kind.PUBCOMP).packet_id == packet_id


@both
@mqtt5("2.2.1-5", "4.3.3-4")
@mqtt311("2.3.1-6", "4.3.3-1")
def test_pubrel_of_the_node_has_the_packet_id_of_its_publish(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, qos=2)
    packet_id = subscriber.expect(Kind.PUBLISH).packet_id
    subscriber.send(wire.acknowledge(Kind.PUBREC, packet_id))
    assert subscriber.expect(Kind.PUBREL).packet_id == packet_id


@both
@pytest.mark.parametrize("packet_id", [1, 0xFF, 0x100, 0xFFFF])
@mqtt5("2.2.1-6", "3.8.4-1", "3.8.4-2", "3.10.4-4", "3.10.4-5")
@mqtt311("2.3.1-7", "3.8.4-1", "3.8.4-2", "3.10.4-4", "3.10.4-5")
def test_suback_and_unsuback_have_the_packet_id_of_the_request(
    client: ClientMaker, version: int, packet_id: int
) -> None:
    subscriber = client(version)
    subscriber.send(wire.subscribe(packet_id, [("a", 0)], version=version))
    assert subscriber.expect(Kind.SUBACK).packet_id == packet_id
    subscriber.send(wire.unsubscribe(packet_id, ["a"], version=version))
    assert subscriber.expect(Kind.UNSUBACK).packet_id == packet_id


@acknowledged_qos
@mqtt5("2.2.2-1")
def test_no_properties_are_written_as_length_zero(client: ClientMaker, qos: int) -> None:
    topic = unique()
    subscriber = client()
    assert subscriber.subscribe(topic, qos=2).properties == []
    client().publish(topic, b"p", qos=qos)
    got = subscriber.take()
    assert got.size == 2 + 2 + len(topic) + 2 + 1 + 1  # one byte says that there are none


@pytest.mark.parametrize(
    "packet",
    [
        wire.packet(Kind.PUBLISH, 0, wire.binary("a")),
        wire.packet(Kind.PUBLISH, 2, wire.binary("a") + b"\0\1"),
        wire.packet(Kind.SUBSCRIBE, 2, b"\0\1"),
        wire.packet(Kind.UNSUBSCRIBE, 2, b"\0\1"),
    ],
    ids=["publish-qos0", "publish-qos1", "subscribe", "unsubscribe"],
)
@mqtt5("2.2.2-1")
def test_a_packet_without_its_property_length_is_malformed(client: ClientMaker, packet: bytes) -> None:
    client().send(packet).expect_closed(MALFORMED)


@pytest.mark.parametrize(
    ("props", "reasons"),
    [
        pytest.param(b"\x02\x7f\x00", [MALFORMED], id="unknown"),
        pytest.param(b"\x05\x11\0\0\0\1", [MALFORMED, PROTOCOL_ERROR], id="of-another-packet"),
        pytest.param(b"\x04\x01\x00\x01\x00", [PROTOCOL_ERROR], id="twice"),
        pytest.param(b"\x02\x01\x02", [PROTOCOL_ERROR, MALFORMED], id="value-out-of-range"),
        pytest.param(b"\x03\x02\0\0", [MALFORMED], id="cut-short"),
        pytest.param(b"\x20\x01\x00", [MALFORMED], id="longer-than-the-packet"),
    ],
)
@mqtt5("4.13.1-1")
def test_wrong_properties_end_the_connection(client: ClientMaker, props: bytes, reasons: list[int]) -> None:
    client().send(wire.packet(Kind.PUBLISH, 0, wire.binary("a") + props)).expect_closed(*reasons)


@pytest.mark.parametrize("identifier", list(Property), ids=lambda prop: prop.name.lower())
@mqtt5("4.13.1-1")
def test_a_property_that_publish_does_not_have_ends_the_connection(client: ClientMaker, identifier: Property) -> None:
    allowed = {
        Property.PAYLOAD_FORMAT, Property.MESSAGE_EXPIRY, Property.TOPIC_ALIAS, Property.RESPONSE_TOPIC,
        Property.CORRELATION_DATA, Property.USER_PROPERTY, Property.CONTENT_TYPE,
    }  # fmt: skip
    text = identifier in wire.TEXT | wire.BINARY
    value: wire.Value = ("name", "value") if identifier in wire.PAIR else "x" if text else 1
    publisher = client()
    publisher.send(wire.publish(unique(), props=[(identifier, value)]))
    if identifier in allowed:
        publisher.expect_nothing()
    else:
        publisher.expect_closed(MALFORMED, PROTOCOL_ERROR)

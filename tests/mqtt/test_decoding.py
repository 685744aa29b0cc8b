"""Where each field of a packet ends up, and that an error says what is wrong."""

from __future__ import annotations

import pytest

from brookmq.mqtt import packets as p
from brookmq.mqtt.codec import PacketError, decode
from tests.catalogue import CATALOGUE, Entry


def decoded(name: str) -> p.Packet:
    entry = CATALOGUE[name]
    return decode(entry.first_byte, entry.body, entry.version)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_the_fields_of_a_connect(version: int) -> None:
    packet = decoded(f"CONNECT with everything, version {version}")
    assert packet == p.Connect(version, "client-1", True, 60, "user", b"secret", p.Will(b"w", b"x", 1, True))
    assert decoded(f"CONNECT without clean start, version {version}") == p.Connect(version, "client-1", False, 60)


def test_the_properties_of_a_connect() -> None:
    packet = decoded("CONNECT with properties")
    assert isinstance(packet, p.Connect)
    assert packet.properties.present() == {
        "session_expiry_interval": 3600,
        "authentication_method": "SCRAM-SHA-256",
        "authentication_data": b"n,,n=user",
        "request_problem_information": 0,
        "request_response_information": 1,
        "receive_maximum": 20,
        "topic_alias_maximum": 5,
        "user_properties": (("os", "linux"),),
        "maximum_packet_size": 65_536,
    }


def test_the_will_of_a_connect() -> None:
    packet = decoded("CONNECT with will properties")
    assert isinstance(packet, p.Connect)
    will = packet.will
    assert will is not None
    assert (will.topic, will.payload, will.qos, will.retain, will.delay) == (b"w", b"x", 1, False, 7)
    assert will.properties.content_type == "text/plain"
    assert will.properties.user_properties == (("w", "x"),)
    assert packet.properties.present() == {}


def test_mqtt_3_1_may_leave_out_what_its_flags_promise() -> None:
    packet = decoded("CONNECT 3.1 that ends before its password")
    assert packet == p.Connect(3, "client-1", True, 60, "u", None)


def test_a_byte_order_mark_stays() -> None:  # [MQTT-1.5.4-3]
    packet = decoded("CONNECT with U+FEFF, version 5")
    assert isinstance(packet, p.Connect)
    assert packet.client_id == "\ufeffclient"


def test_the_fields_of_a_publish() -> None:
    packet = decoded("PUBLISH with properties")
    assert isinstance(packet, p.Publish)
    assert (packet.topic, packet.payload, packet.qos, packet.packet_id) == (b"a/b", b"hello", 1, 10)
    assert packet.properties.present() == {
        "payload_format_indicator": 1,
        "message_expiry_interval": 30,
        "content_type": "text/plain",
        "response_topic": "answer/here",
        "correlation_data": b"\x00\xff",
        "user_properties": (("a", "1"), ("b", "2"), ("a", "1")),
    }
    assert decoded("PUBLISH QoS 1 again, version 4") == p.Publish(b"a/b", b"hello", 1, dup=True, packet_id=10)
    assert decoded("PUBLISH retained, version 4") == p.Publish(b"a/b", b"hello", retain=True)


def test_subscription_identifiers_in_their_order() -> None:
    packet = decoded("PUBLISH with subscription identifiers")
    assert isinstance(packet, p.Publish)
    assert packet.properties.subscription_identifiers == (1, 128, 268_435_455)


def test_the_options_of_a_subscribe() -> None:
    assert decoded("SUBSCRIBE with options") == p.Subscribe(10, [p.SubscriptionRequest("a", 1, True, True, 2)])


def test_return_codes_of_mqtt_3_are_reason_codes() -> None:
    assert decoded("CONNACK 3.1.1 not authorized") == p.Connack(False, 0x87)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CONNECT without its user name, version 4", "CONNECT: user name: 0 of 2 bytes"),
        ("CONNECT with a client identifier beyond its end, version 4", "CONNECT: client identifier: 6 of 9 bytes"),
        ("CONNECT with another protocol name", "CONNECT: protocol b'mqtt' version 5 is not supported"),
        ("CONNECT with receive maximum twice", "CONNECT: receive_maximum: more than once"),
        ("CONNECT with a topic alias", "CONNECT: topic_alias: not allowed here"),
        ("CONNECT with an unknown property", "CONNECT: property 0x7F does not exist"),
        ("PUBLISH with topic alias 0", "PUBLISH: topic_alias: must not be 0"),
        ("PUBLISH with packet identifier 0, version 5", "PUBLISH: packet identifier: 0"),
        ("SUBSCRIBE without filter, version 5", "SUBSCRIBE: no topic filter"),
        ("PINGREQ with a body, version 4", "PINGREQ: 1 bytes too many"),
        ("PUBREL without its flag", "PUBREL: flags 0x0 in the fixed header instead of 0x2"),
        ("packet type 0, version 4", "reserved packet type 0: not a packet of this protocol version"),
    ],
)
def test_an_error_names_packet_field_and_fault(name: str, message: str) -> None:
    entry: Entry = CATALOGUE[name]
    with pytest.raises(PacketError) as caught:
        decode(entry.first_byte, entry.body, entry.version)
    assert str(caught.value) == message


def test_a_packet_full_of_user_properties_costs_time_in_proportion_to_its_size() -> None:
    """200,000 pairs: with a tuple that is copied for each one this would take minutes."""
    pairs = b"\x26\x00\x01a\x00\x01b" * 200_000
    size = len(pairs)
    length = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
    packet = decode(0x30, b"\x00\x01t" + length + pairs, 5)
    assert isinstance(packet, p.Publish)
    assert len(packet.properties.user_properties) == 200_000

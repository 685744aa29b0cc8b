"""Bytes that are sent: the shortest form, the right form for the version, and our own mistakes found."""

from __future__ import annotations

import pytest

from brookmq.base.errors import CallerError
from brookmq.mqtt import packets as p
from brookmq.mqtt.codec import (
    PINGREQ_BYTES,
    PINGRESP_BYTES,
    decode,
    encode,
    encode_ack,
    encode_connack,
    encode_disconnect,
    encode_suback,
    encode_unsuback,
)
from brookmq.mqtt.properties import Properties
from tests.mqtt.framing import round_trip


def with_reason_string(text: str) -> Properties:
    properties = Properties()
    properties.reason_string = text
    return properties


def test_connack_for_each_version() -> None:
    assert encode_connack(True, 0, None, 5) == b"\x20\x03\x01\x00\x00"
    assert encode_connack(True, 0, None, 4) == b"\x20\x02\x01\x00"
    assert encode_connack(True, 0, None, 3) == b"\x20\x02\x00\x00"  # MQTT 3.1 has no session present flag
    assert encode_connack(True, 0x87, None, 5) == b"\x20\x03\x00\x87\x00"  # [MQTT-3.2.2-6]
    assert encode_connack(False, 0x87, with_reason_string("no"), 4) == b"\x20\x02\x00\x05"
    assert encode_connack(False, 0, with_reason_string("hi"), 5) == b"\x20\x08\x00\x00\x05\x1f\x00\x02hi"


@pytest.mark.parametrize(
    ("packet_type", "first_byte"), [(p.PUBACK, 0x40), (p.PUBREC, 0x50), (p.PUBREL, 0x62), (p.PUBCOMP, 0x70)]
)
def test_acknowledgements_are_as_short_as_they_can_be(packet_type: int, first_byte: int) -> None:
    head = bytes((first_byte,))
    assert encode_ack(packet_type, 0x1234, 0, None, 5) == head + b"\x02\x12\x34"
    assert encode_ack(packet_type, 0x1234, 0, Properties(), 5) == head + b"\x02\x12\x34"
    assert encode_ack(packet_type, 0x1234, 0x92, None, 5) == head + b"\x03\x12\x34\x92"
    assert encode_ack(packet_type, 0x1234, 0, with_reason_string("x"), 5) == head + b"\x08\x12\x34\x00\x04\x1f\x00\x01x"
    assert encode_ack(packet_type, 0x1234, 0x92, with_reason_string("x"), 4) == head + b"\x02\x12\x34"


def test_suback_for_each_version() -> None:
    assert encode_suback(1, [0, 2, 0x87], None, 5) == b"\x90\x06\x00\x01\x00\x00\x02\x87"
    assert encode_suback(1, [0, 2, 0x87], None, 4) == b"\x90\x05\x00\x01\x00\x02\x80"  # 3.1.1: [MQTT-3.9.3-2]
    assert encode_suback(1, (1,), with_reason_string("x"), 5) == b"\x90\x08\x00\x01\x04\x1f\x00\x01x\x01"


def test_unsuback_for_each_version() -> None:
    assert encode_unsuback(1, [0, 0x11], None, 5) == b"\xb0\x05\x00\x01\x00\x00\x11"
    assert encode_unsuback(1, [0, 0x11], None, 4) == b"\xb0\x02\x00\x01"


def test_disconnect_for_each_version() -> None:
    assert encode_disconnect(0, None, 5) == b"\xe0\x00"
    assert encode_disconnect(0x8E, None, 5) == b"\xe0\x01\x8e"
    assert encode_disconnect(0x8E, with_reason_string("x"), 5) == b"\xe0\x06\x8e\x04\x1f\x00\x01x"
    assert encode_disconnect(0x8E, with_reason_string("x"), 4) == b"\xe0\x00"


def test_ready_made_packets() -> None:
    assert encode(p.Pingreq(), 4) == PINGREQ_BYTES
    assert encode(p.Pingresp(), 5) == PINGRESP_BYTES


def test_options_of_mqtt_5_are_left_out_before() -> None:
    request = p.SubscriptionRequest("a", 1, no_local=True, retain_as_published=True, retain_handling=2)
    assert encode(p.Subscribe(1, [request]), 4) == b"\x82\x06\x00\x01\x00\x01a\x01"
    assert encode(p.Subscribe(1, [request]), 5) == b"\x82\x07\x00\x01\x00\x00\x01a\x2d"


def test_properties_are_left_out_before_mqtt_5() -> None:
    properties = Properties()
    properties.content_type = "text"
    assert encode(p.Publish(b"a", b"x", properties=properties), 4) == b"\x30\x04\x00\x01ax"


def test_a_large_packet_has_a_long_length() -> None:
    packet = p.Publish(b"a", bytes(3_000_000))
    data = encode(packet, 4)
    assert data[:5] == b"\x30\xc3\x8d\xb7\x01"
    assert decode(data[0], data[5:], 4) == packet


def test_the_delay_of_a_will_is_its_property() -> None:
    properties = Properties()
    properties.will_delay_interval = 30
    connect = p.Connect(5, "c", will=p.Will(b"w", b"", properties=properties, delay=30))
    decoded = round_trip(connect, 5)
    assert isinstance(decoded, p.Connect)
    assert decoded.will is not None
    assert decoded.will.delay == 30


@pytest.mark.parametrize(
    ("packet", "version"),
    [
        (p.Auth(0x18), 4),
        (p.Connect(4, "c", password=b"alone"), 4),
        (p.Connect(3, "c", password=b"alone"), 3),
        (p.Connect(5, "c" * 65_536), 5),
        (p.Connect(5, "c", will=p.Will(b"w", b"", delay=5)), 5),
        (p.Publish(b"a", b"", qos=1, packet_id=65_536), 5),
        (p.Subscribe(65_536, [p.SubscriptionRequest("a")]), 5),
        (p.SubscriptionRequest("a"), 5),
    ],
)
def test_what_cannot_be_said_is_our_bug(packet: p.Packet, version: int) -> None:
    with pytest.raises(CallerError):
        encode(packet, version)

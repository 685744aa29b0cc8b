"""The bytes that the load tool sends, and the one thing that it reads from a CONNACK."""

from __future__ import annotations

import pytest

from brookmq.bench import packets


def test_connect() -> None:
    assert packets.connect("c", 4, keep_alive_s=10) == b"\x10\x0d\0\x04MQTT\x04\x02\0\x0a\0\x01c"
    assert packets.connect("c", 3)[2:10] == b"\0\x06MQIsdp"
    five = packets.connect("c", 5, clean=False, expiry_s=60, user="u", password="p")
    assert five[8:12] == b"\x05\xc0\x01\x2c"
    assert five[12:18] == b"\x05\x11\0\0\0\x3c"
    assert five.endswith(b"\0\x01c\0\x01u\0\x01p")


def test_many_filters_go_in_several_packets() -> None:
    made = packets.subscribe([b"a/%d" % number for number in range(450)], 5, 1)
    assert len(made) == 3
    assert all(packet[0] == 0x82 for packet in made)
    assert made[0].endswith(b"a/199\x01")


@pytest.mark.parametrize(("version", "qos"), [(4, 0), (4, 1), (5, 0), (5, 2)])
def test_the_places_in_a_publish(version: int, qos: int) -> None:
    packet, id_offset, payload = packets.publish(b"topic", b"x" * 200, version, qos)
    assert packet[payload:] == b"x" * 200
    assert (id_offset >= 0) == (qos > 0)
    if qos:
        assert packet[id_offset - 5 : id_offset] == b"topic"
        assert packet[id_offset : id_offset + 2] == b"\0\x01"


@pytest.mark.parametrize(
    ("connack", "version", "expected"),
    [
        (b"\0\0", 4, 65535),
        (b"\0\0\0", 5, 65535),
        (b"\0\0\x03\x21\0\x0a", 5, 10),
        (b"\0\0\x0c\x12\0\x01a\x26\0\x01b\0\0\x24\x01", 5, 65535),
        (b"\0\0\x0f\x12\0\x01a\x26\0\x01b\0\0\x24\x01\x21\x01\0", 5, 256),
    ],
)
def test_the_brokers_receive_maximum_is_found(connack: bytes, version: int, expected: int) -> None:
    assert packets.receive_maximum(connack, version) == expected


def test_a_connack_with_a_foreign_property_is_an_error() -> None:
    with pytest.raises(ValueError, match="0x23"):
        packets.receive_maximum(b"\0\0\x03\x23\0\x01", 5)

"""Packets as values: equal by their fields, readable, with what may be left out."""

from __future__ import annotations

import pytest

from brookmq.mqtt import packets as p
from brookmq.mqtt.properties import Properties


def test_equal_by_type_and_fields() -> None:
    assert p.Suback(1, [0]) == p.Suback(1, [0])
    assert p.Suback(1, [0]) != p.Suback(1, [1])
    assert p.Suback(1, [0]) != p.Unsuback(1, [0])
    assert p.Pingreq() != p.Pingresp()
    assert p.Pingreq() != "PINGREQ"
    with pytest.raises(TypeError):
        hash(p.Pingreq())


def test_readable() -> None:
    assert repr(p.Disconnect(0x8E)) == "Disconnect(properties=Properties(), reason=142)"


def test_properties_left_out_are_an_empty_set_of_its_own() -> None:
    one, other = p.Connack(False, 0), p.Connack(False, 0)
    assert one.properties == Properties()
    assert one.properties is not other.properties


def test_only_declared_fields() -> None:
    with pytest.raises(AttributeError):
        p.Connack(False, 0).reson = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        Properties().topic_alais = 1  # type: ignore[attr-defined]


def test_numbers_of_the_packet_types() -> None:
    assert [p.PACKET_NAMES[number] for number in (p.CONNECT, p.PUBLISH, p.SUBSCRIBE, p.AUTH)] == [
        "CONNECT",
        "PUBLISH",
        "SUBSCRIBE",
        "AUTH",
    ]
    for number, name in enumerate(p.PACKET_NAMES[1:], start=1):
        assert getattr(p, name) == number

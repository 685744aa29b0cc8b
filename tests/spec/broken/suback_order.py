"""Sections 3.8 and 3.9: the reason codes of SUBACK stand in the opposite order."""

from collections.abc import Iterable

from brookmq.mqtt import encoding
from brookmq.mqtt.properties import Properties

FAILS = "test_3_08_subscribe.py::test_suback_answers_every_filter_in_order[5.0]"

_encode_suback = encoding.encode_suback


def encode_suback(packet_id: int, reasons: Iterable[int], properties: Properties | None, version: int) -> bytes:
    return _encode_suback(packet_id, [*reasons][::-1], properties, version)


encoding.encode_suback = encode_suback

"""Sections 3.4 to 3.7: acknowledgements always say success."""

from brookmq.mqtt import encoding
from brookmq.mqtt.properties import Properties

FAILS = "test_3_04_acknowledgements.py::test_acknowledgements_have_reason_codes_of_their_own[5.0]"

_encode_ack = encoding.encode_ack


def encode_ack(kind: int, packet_id: int, reason: int, properties: Properties | None, version: int) -> bytes:
    return _encode_ack(kind, packet_id, 0, properties, version)


encoding.encode_ack = encode_ack  # type: ignore[assignment]

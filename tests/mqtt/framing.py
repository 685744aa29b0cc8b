"""Cuts one encoded packet into what `decode` takes."""

from __future__ import annotations

from brookmq.mqtt.codec import decode, encode
from brookmq.mqtt.packets import Packet


def split(data: bytes) -> tuple[int, bytes]:
    """``(first byte, body)`` of one whole packet; its remaining length must be right."""
    value = shift = 0
    at = 1
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    assert len(data) == at + value
    return data[0], data[at:]


def decode_whole(data: bytes, version: int) -> Packet:
    first_byte, body = split(data)
    return decode(first_byte, body, version)


def round_trip(packet: Packet, version: int) -> Packet:
    return decode_whole(encode(packet, version), version)

"""Takes apart what a channel wrote, with the strict reader of the specification suite."""

from __future__ import annotations

from tests.harness.received import Packet, decode


def packets(data: bytes, version: int) -> list[Packet]:
    """The packets of a stream that ends with a whole one."""
    found: list[Packet] = []
    at = 0
    while at < len(data):
        start, size, shift = at, 0, 0
        while True:
            at += 1
            size |= (data[at] & 0x7F) << shift
            shift += 7
            if data[at] < 0x80:
                break
        at += 1
        assert at + size <= len(data), "the stream ends in the middle of a packet"
        found.append(decode(data[start], data[at : at + size], version))
        at += size
    return found

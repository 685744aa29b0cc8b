"""Numbers and byte strings as the journal's records have them, written to a bytearray and read back with checks.

A number is a varint: seven bits per byte, the lowest first, the highest bit set in all but the last. Small numbers are
most of what a record says about its messages, and at a trickle of single messages every byte of it is paid per message.

A record comes from a store that checks its own checksums, and still nothing here trusts a length: compiled code does
not check its indexes, and a format error must be an error with a name and not a crash.
"""

from __future__ import annotations

from brookmq.store.errors import BadRecord

VARINT_BYTES_MAX = 9  # 63 bits: everything that is counted here is less


def put_varint(out: bytearray, value: int) -> None:
    """Appends a number, 0 to 2**63 - 1."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_bytes(out: bytearray, data: bytes) -> None:
    """Appends bytes with their length in front."""
    put_varint(out, len(data))
    out += data


class FieldReader:
    """A position in ``data`` that moves forward, field by field, up to its end."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        if not 0 <= position <= len(data):
            raise BadRecord(f"{len(data)} bytes, and its content would begin at {position}")
        self.data = data
        self.position = position
        self.end = len(data)

    def byte(self) -> int:
        position = self.position
        if position >= self.end:
            raise BadRecord("it ends in the middle of a field")
        self.position = position + 1
        return self.data[position]

    def varint(self) -> int:
        value = shift = 0
        while shift < 7 * VARINT_BYTES_MAX:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise BadRecord(f"a number of more than {VARINT_BYTES_MAX} bytes")

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        position = self.position
        if size < 0 or size > self.end - position:
            raise BadRecord(f"{self.end - position} of {size} bytes")
        self.position = position + size
        return self.data[position : position + size]

    def skip(self, size: int) -> None:
        """Passes over the next ``size`` bytes."""
        if not 0 <= size <= self.end - self.position:
            raise BadRecord(f"{self.end - self.position} of {size} bytes")
        self.position += size

    def sized(self) -> bytes:
        """Bytes with their length in front."""
        return self.take(self.varint())

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(self.end - self.position)

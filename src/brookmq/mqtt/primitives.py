"""The data types that every packet is made of: integers, strings, binary data. [section 1.5]

Reading goes through a `Reader`, which knows where it is and where the packet ends: no field can reach beyond it,
whatever its length says. Each read is given the name of the field, so that an error names it. Writing appends to a
bytearray; a value that does not fit its field is our own bug and not the peer's.

The Reader does not copy the packet and never moves backwards, so a packet costs time in proportion to its size.
"""

from __future__ import annotations

from typing import Final

from brookmq.base.errors import CallerError
from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.reasons import MALFORMED_PACKET

STRING_BYTES_MAX: Final = 65_535  # what the two-byte length in front of strings and binary data can say
VARINT_MAX: Final = 268_435_455  # four bytes of seven bits


def malformed(message: str) -> PacketError:
    """The error for bytes that cannot be parsed."""
    return PacketError(MALFORMED_PACKET, message)


def check_text(data: bytes, field: str) -> None:
    """Refuse bytes that may not stand in a UTF-8 string; for fields that stay bytes, such as topic names."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            # [MQTT-1.5.4-1] Python's decoder refuses surrogates, overlong forms and what is beyond U+10FFFF
            raise malformed(f"{field}: not UTF-8: {error.reason}") from None
    if b"\0" in data:
        raise malformed(f"{field}: contains U+0000")  # [MQTT-1.5.4-2]


class Reader:
    """A position in ``data`` that moves forward, field by field, up to ``end``."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        if not 0 <= position <= end <= len(data):
            raise CallerError(f"bytes {position} to {end} of {len(data)}")
        self.data = data
        self.position = position
        self.end = end  # reads are checked against it alone, and compiled code does not check again

    def uint8(self, field: str) -> int:
        position = self.position
        if position >= self.end:
            raise malformed(f"{field}: missing")
        self.position = position + 1
        return self.data[position]

    def uint16(self, field: str) -> int:
        position = self.position
        if position + 2 > self.end:
            raise malformed(f"{field}: {self.end - position} of 2 bytes")
        self.position = position + 2
        return self.data[position] << 8 | self.data[position + 1]

    def uint32(self, field: str) -> int:
        high = self.uint16(field)
        return high << 16 | self.uint16(field)

    def varint(self, field: str) -> int:
        """A variable byte integer of up to four bytes. [section 1.5.5]"""
        value = shift = 0
        while shift < 28:
            byte = self.uint8(field)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift != 0:
                    raise malformed(f"{field}: variable byte integer longer than needed")  # [MQTT-1.5.5-1]
                return value
            shift += 7
        raise malformed(f"{field}: variable byte integer of more than four bytes")

    def skip_sized(self, field: str) -> int:
        """Move behind a string or binary data; returns where its content begins (it ends at ``position``)."""
        size = self.uint16(field)
        start = self.position
        if size > self.end - start:
            raise malformed(f"{field}: {self.end - start} of {size} bytes")
        self.position = start + size
        return start

    def binary(self, field: str) -> bytes:
        start = self.skip_sized(field)
        return self.data[start : self.position]

    def string(self, field: str) -> str:
        start = self.skip_sized(field)
        try:
            # [MQTT-1.5.4-1] strict: no surrogates, no overlong forms. [MQTT-1.5.4-3] U+FEFF stays.
            text = self.data[start : self.position].decode("utf-8")
        except UnicodeDecodeError as error:
            raise malformed(f"{field}: not UTF-8: {error.reason}") from None
        if "\0" in text:
            raise malformed(f"{field}: contains U+0000")  # [MQTT-1.5.4-2]
        return text

    def properties_end(self) -> int:
        """Read the length in front of a set of properties; returns where the set ends. [MQTT-2.2.2-1]"""
        size = self.varint("property length")
        if size > self.end - self.position:
            raise malformed(f"properties: {self.end - self.position} of {size} bytes")
        return self.position + size

    def rest(self) -> bytes:
        """Everything that is left: a payload."""
        start = self.position
        self.position = self.end
        return self.data[start : self.end]

    def finish(self) -> None:
        """Refuse bytes behind the last field of a packet."""
        if self.position != self.end:
            raise malformed(f"{self.end - self.position} bytes too many")


def varint(value: int) -> bytes:
    """A variable byte integer in as few bytes as it needs. [MQTT-1.5.5-1]"""
    if 0 <= value < 0x80:
        return _VARINT_1[value]
    if value < 0 or value > VARINT_MAX:
        raise CallerError(f"{value} does not fit a variable byte integer")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_VARINT_1: Final = tuple(bytes((value,)) for value in range(0x80))


def put_uint16(out: bytearray, value: int) -> None:
    if value < 0 or value > 0xFFFF:
        raise CallerError(f"{value} does not fit two bytes")
    out.append(value >> 8)
    out.append(value & 0xFF)


def put_uint32(out: bytearray, value: int) -> None:
    if value < 0 or value > 0xFFFF_FFFF:
        raise CallerError(f"{value} does not fit four bytes")
    put_uint16(out, value >> 16)
    put_uint16(out, value & 0xFFFF)


def put_binary(out: bytearray, data: bytes) -> None:
    size = len(data)
    if size > STRING_BYTES_MAX:
        raise CallerError(f"{size} bytes in a field of at most {STRING_BYTES_MAX}")
    out.append(size >> 8)
    out.append(size & 0xFF)
    out += data


def put_string(out: bytearray, text: str) -> None:
    put_binary(out, text.encode())

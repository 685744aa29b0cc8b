"""``frames`` in plain Python: the same names, the same answers, for machines without a compiler and for the tests."""

from __future__ import annotations

from typing import Final

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, SUBACK = range(1, 10)
PINGREQ, PINGRESP, DISCONNECT = 12, 13, 14
FAILURE: Final = 0x80
STAMP_BYTES: Final = 8
BUCKETS: Final = 2304
LATENCY_NS_MAX: Final = 3600 * 1_000_000_000
PACKET_ID_MAX: Final = 65535

NumberField = tuple[int, int, int, int]
"""A decimal number inside a topic: offset in the packet, width, modulus, stride."""


def bucket_of(nanoseconds: int) -> int:
    """Log-linear: 64 buckets for every power of two, so a value is known to 1.6 %."""
    if nanoseconds < 128:
        return max(nanoseconds, 0)
    shift = nanoseconds.bit_length() - 7
    return min(64 * shift + (nanoseconds >> shift), BUCKETS - 1)


def _header(packet: bytearray, at: int, end: int) -> tuple[int, int]:
    """Where the variable header begins and how long the rest is; (-1, 0) while the fixed header is incomplete."""
    length = 0
    for place in range(4):
        if at + 1 + place >= end:
            return -1, 0
        byte = packet[at + 1 + place]
        length |= (byte & 127) << 7 * place
        if byte < FAILURE:
            return at + 2 + place, length
    raise ValueError("a remaining length of more than four bytes")


def _answer(head: int, packet: bytearray, at: int) -> bytes:
    return bytes((head, 2, packet[at], packet[at + 1]))


class Latencies:
    """How often each latency was seen, in buckets: constant memory for any number of messages."""

    __slots__ = ("_buckets", "highest")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._buckets = [0] * BUCKETS
        self.highest = 0

    def record(self, nanoseconds: int, times: int) -> None:
        self._buckets[bucket_of(nanoseconds)] += times
        self.highest = max(self.highest, nanoseconds)

    def counts(self) -> list[int]:
        return list(self._buckets)


class Inbox:
    """What one client of the tool has received: counters, and the unfinished packet at the end."""

    __slots__ = (
        "_rest", "acknowledged", "closed_with", "connack", "denied", "duplicates", "granted", "latencies", "pings",
        "received", "received_bytes", "refused", "version",
    )  # fmt: skip

    def __init__(self, version: int, latencies: Latencies) -> None:
        self.version = version
        self.latencies = latencies
        self.received = self.received_bytes = self.duplicates = 0
        self.acknowledged = self.refused = 0
        self.granted = self.denied = self.pings = 0
        self.closed_with = -1
        self.connack: bytes | None = None
        self._rest = b""

    def restore(self, buffer: bytearray) -> int:
        """Put what was left over to the front of the shared buffer; the next read goes behind it."""
        buffer[: len(self._rest)] = self._rest
        return len(self._rest)

    def feed(self, buffer: bytearray, end: int, now: int) -> bytes | None:
        """Take the packets in ``buffer[:end]``; the bytes to answer with, in the order of arrival, or None."""
        at = 0
        answers = bytearray()
        while end - at >= 2:
            body, length = _header(buffer, at, end)
            if body < 0 or body + length > end:
                break
            kind = buffer[at] >> 4
            if kind == PUBLISH:
                self._count_message(buffer, at, body, body + length, now)
                if buffer[at] & 6:
                    packet_id = body + 2 + int.from_bytes(buffer[body : body + 2])
                    answers += _answer((PUBACK if buffer[at] & 2 else PUBREC) << 4, buffer, packet_id)
            elif PUBACK <= kind <= PUBCOMP:
                answers += self._count_acknowledgement(kind, buffer, body, length)
            elif kind == CONNACK:
                self.connack = bytes(buffer[body : body + length])
            elif kind == SUBACK:
                self._count_grants(buffer, body, body + length)
            elif kind == PINGRESP:
                self.pings += 1
            elif kind == DISCONNECT:
                self.closed_with = buffer[body] if length else 0
            at = body + length
        self._rest = bytes(buffer[at:end])
        return bytes(answers) if answers else None

    def _count_message(self, packet: bytearray, at: int, body: int, stop: int, now: int) -> None:
        if stop - body < 2:
            raise ValueError("a PUBLISH without a topic")
        payload = body + 2 + int.from_bytes(packet[body : body + 2])
        if packet[at] & 6:
            payload += 2
        if self.version == 5:
            if payload >= stop:
                raise ValueError("a PUBLISH without properties")
            # The byte before the property length stands where the packet type would be.
            payload, length = _header(packet, payload - 1, stop)
            payload = payload + length if payload >= 0 else stop + 1
        if payload > stop:
            raise ValueError("a PUBLISH that ends before its payload")
        self.received += 1
        self.received_bytes += stop - payload
        if packet[at] & 8:
            self.duplicates += 1
        if stop - payload >= STAMP_BYTES:
            stamp = int.from_bytes(packet[payload : payload + STAMP_BYTES])
            if stamp > 0 and 0 <= now - stamp <= LATENCY_NS_MAX:
                self.latencies.record(now - stamp, 1)

    def _count_acknowledgement(self, kind: int, packet: bytearray, body: int, length: int) -> bytes:
        if length < 2:
            raise ValueError("an acknowledgement without a packet id")
        if kind == PUBREL:
            return _answer(PUBCOMP << 4, packet, body)
        if length > 2 and packet[body + 2] >= FAILURE:
            self.refused += 1
        elif kind == PUBREC:
            return _answer(PUBREL << 4 | 2, packet, body)
        self.acknowledged += 1
        return b""

    def _count_grants(self, packet: bytearray, at: int, stop: int) -> None:
        if stop - at < 3:
            raise ValueError("a SUBACK without a reason code")
        at += 2
        if self.version == 5:
            at, length = _header(packet, at - 1, stop)
            if at < 0:
                raise ValueError("a SUBACK that ends in its properties")
            at += length
        failures = sum(code >= FAILURE for code in packet[at:stop])
        self.denied += failures
        self.granted += max(stop - at, 0) - failures


class PublishBlock:
    """Copies of one PUBLISH packet in a row, patched in place before each write.

    ``id_offset`` and ``stamp_offset`` are places inside the packet, -1 for none. ``first`` and ``second`` are decimal
    numbers in the topic, as (offset, width, modulus, stride): packet number *n* shows ``n * stride % modulus``.
    """

    __slots__ = ("_first", "_id_offset", "_next_id", "_second", "_stamp_offset", "capacity", "data", "packet_length",
                 "serial")  # fmt: skip

    def __init__(
        self,
        packet: bytes,
        capacity: int,
        id_offset: int = -1,
        stamp_offset: int = -1,
        first: NumberField | None = None,
        second: NumberField | None = None,
    ) -> None:
        self.data = bytearray(packet * capacity)
        self.packet_length = len(packet)
        self.capacity = capacity
        self.serial = 0
        self._id_offset = id_offset
        self._stamp_offset = stamp_offset
        self._first = first
        self._second = second
        self._next_id = 1

    def fill(self, count: int, stamp: int) -> int:
        """Make the first ``count`` packets new ones; how many bytes they are."""
        if not 0 <= count <= self.capacity:
            raise ValueError("more packets than the block holds")
        stamp_bytes = stamp.to_bytes(STAMP_BYTES)
        for base in range(0, count * self.packet_length, self.packet_length):
            if self._id_offset >= 0:
                self._patch(base + self._id_offset, self._next_id.to_bytes(2))
                self._next_id = self._next_id % PACKET_ID_MAX + 1
            if self._stamp_offset >= 0:
                self._patch(base + self._stamp_offset, stamp_bytes)
            if self._first is not None:
                offset, width, modulus, stride = self._first
                self._patch(base + offset, b"%0*d" % (width, self.serial * stride % modulus))
            if self._second is not None:
                offset, width, modulus, _ = self._second
                self._patch(base + offset, b"%0*d" % (width, self.serial % modulus))
            self.serial += 1
        return count * self.packet_length

    def _patch(self, offset: int, content: bytes) -> None:
        self.data[offset : offset + len(content)] = content


class NullInbox:
    """One connection of the null broker: says yes to everything and forwards nothing."""

    __slots__ = ("_rest", "_version", "received")

    def __init__(self) -> None:
        self.received = 0
        self._rest = b""
        self._version = 4

    def restore(self, buffer: bytearray) -> int:
        buffer[: len(self._rest)] = self._rest
        return len(self._rest)

    def feed(self, buffer: bytearray, end: int) -> bytes | None:
        at = 0
        answers = bytearray()
        while end - at >= 2:
            body, length = _header(buffer, at, end)
            if body < 0 or body + length > end:
                break
            answers += self._answers_to(buffer, at, body, length)
            at = body + length
        self._rest = bytes(buffer[at:end])
        return bytes(answers) if answers else None

    def _answers_to(self, packet: bytearray, at: int, body: int, length: int) -> bytes:
        kind = packet[at] >> 4
        if kind == PUBLISH:
            self.received += 1
            if packet[at] & 6:
                packet_id = body + 2 + int.from_bytes(packet[body : body + 2])
                if packet_id + 2 > body + length:
                    raise ValueError("a PUBLISH without a packet id")
                return _answer((PUBACK if packet[at] & 2 else PUBREC) << 4, packet, packet_id)
        elif kind == PUBREL and length >= 2:
            return _answer(PUBCOMP << 4, packet, body)
        elif kind == CONNECT and length >= 10:
            self._version = packet[body + 2 + packet[body + 1]]
            return b"\x20\x03\0\0\0" if self._version == 5 else b"\x20\x02\0\0"
        elif kind == SUBSCRIBE:
            # Granted for the first filter only: the tool's own self-test asks for no more.
            codes = b"\0\0" if self._version == 5 else b"\0"
            return bytes((SUBACK << 4, 2 + len(codes), packet[body], packet[body + 1])) + codes
        elif kind == PINGREQ:
            return b"\xd0\0"
        return b""

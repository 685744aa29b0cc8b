"""The input of the fuzz target: a small program of things that peers, network and clock do to a broker.

    input     = three bytes of configuration, operations
    operation = kind (1 byte), place (1 byte), size (2 bytes), data

Every sequence of bytes is a program: kinds and places wrap around, an operation that is cut short has less data. So the
fuzzer can change anything anywhere, and a mutator that knows the operations can move them about as wholes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

CONFIGURATION_SIZE = 3
PLACES = 4  # connections at a time
SAME_TURN = 0x80  # in the place: the next operation happens in the same turn of the loop
SIZE_MAX = 0xFFFF
REPEAT_BYTES_MAX = 2048
OPERATIONS_MAX = 48  # what is behind is not looked at: one input takes milliseconds


class Kind(IntEnum):
    """What happens. The numbers are part of the corpus: new kinds go to the end."""

    BYTES = 0  # the data arrives in one piece
    PIECES = 1  # first byte: size of a piece; the rest arrives in such pieces
    FRAME = 2  # first byte: first byte of a packet; the rest is its body, the length is put in between
    REPEAT = 3  # first byte: how often, in steps of 4; the rest is a packet as in FRAME
    OPEN = 4  # a new connection; one that was there is lost
    DROP = 5  # the connection is lost
    TIME = 6  # tenths of seconds (2 bytes) pass
    BLOCK = 7  # the peer does not read any more
    UNBLOCK = 8  # the peer reads again
    ACKNOWLEDGE = 9  # first byte: how many of the acknowledgements that it owes the peer sends
    ANSWER = 10  # what waits for a plugin gets its answer
    END = 11  # the server ends the connection


class Operation(NamedTuple):
    kind: int
    place: int
    data: bytes = b""


class Program(NamedTuple):
    configuration: bytes
    operations: list[Operation]


def parse(data: bytes) -> Program:
    configuration = data[:CONFIGURATION_SIZE].ljust(CONFIGURATION_SIZE, b"\0")
    operations: list[Operation] = []
    at = CONFIGURATION_SIZE
    while at < len(data) and len(operations) < OPERATIONS_MAX:
        head = data[at : at + 4].ljust(4, b"\0")
        at += 4
        size = int.from_bytes(head[2:], "big")
        operations.append(Operation(head[0] % len(Kind), head[1], data[at : at + size]))
        at += size
    return Program(configuration, operations)


def build(configuration: bytes, operations: Iterable[Operation]) -> bytes:
    """The bytes of a program; the opposite of `parse`."""
    parts = [configuration[:CONFIGURATION_SIZE].ljust(CONFIGURATION_SIZE, b"\0")]
    for kind, place, data in operations:
        data = data[:SIZE_MAX]
        parts.append(bytes((kind, place)) + len(data).to_bytes(2, "big") + data)
    return b"".join(parts)


def framed(data: bytes) -> bytes:
    """``first byte, body`` as a packet."""
    if not data:
        return b""
    size = len(data) - 1
    out = bytearray(data[:1])
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out) + data[1:]


def repeated(data: bytes) -> bytes:
    packet = framed(data[1:])
    return packet * min(4 * data[0] + 1, REPEAT_BYTES_MAX // len(packet)) if packet else b""


def unframed(packet: bytes) -> bytes | None:
    """``first byte, body`` of exactly one whole packet; None for anything else."""
    for at in range(1, min(5, len(packet))):
        if packet[at] < 0x80:
            data = packet[:1] + packet[at + 1 :]
            return data if framed(data) == packet else None
    return None

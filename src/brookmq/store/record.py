"""The header that every record of a log begins with.

| bytes | field  |                                                                                      |
|-------|--------|--------------------------------------------------------------------------------------|
| 1     | format | 1; a reader refuses newer ones by name                                               |
| 1     | kind   | 1 ownership, 2 data; 16 and above are the caller's                                   |
| 8     | term   | the sequence of the ownership record under which it was appended                     |
| 8     | number | 1, 2, 3 … within the term; 0 in the ownership record                                 |

All numbers are big endian; the body follows. Since only its owner appends to a log, and always right after the last
record, a record's sequence is its term plus its number. That is how an appender recognises its own records.

An ownership record is written before its sequence, the new term, is known: its term field is the term that it ends (0
when there was none). Its body is the seizer's token (16 random bytes, new for each seizing, by which an answer that was
lost is made up for) and a label that names the owner to people.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from brookmq.store.errors import BadRecord

FORMAT: Final = 1
OWNERSHIP: Final = 1
DATA: Final = 2
CALLER_KIND_MIN: Final = 16
TOKEN_BYTES: Final = 16

_HEADER: Final = struct.Struct(">BBQQ")
HEADER_BYTES: Final = _HEADER.size


class Header(NamedTuple):
    """Who appended a record, and as which one of theirs."""

    kind: int
    term: int
    number: int


def encode_record(kind: int, term: int, number: int, body: bytes) -> bytes:
    """A record as it is stored."""
    return _HEADER.pack(FORMAT, kind, term, number) + body


def decode_header(record: bytes, sequence: int) -> Header:
    """The header of the record at a sequence; the body begins at ``HEADER_BYTES``."""
    if len(record) < HEADER_BYTES:
        raise BadRecord(f"the record at {sequence} has {len(record)} bytes and no header")
    format_number, kind, term, number = _HEADER.unpack_from(record)
    if format_number != FORMAT:
        raise BadRecord(f"the record at {sequence} has format {format_number}, which is not known here ({FORMAT} is)")
    if kind == OWNERSHIP and number == 0 and term < sequence:
        return Header(kind, sequence, 0)
    if kind == OWNERSHIP or number == 0 or term + number != sequence:
        raise BadRecord(f"the record at {sequence} says that it is number {number} of term {term}, kind {kind}")
    return Header(kind, term, number)


def encode_ownership(token: bytes, label: bytes) -> bytes:
    """The body of an ownership record."""
    if len(token) != TOKEN_BYTES:
        raise BadRecord(f"a token has {TOKEN_BYTES} bytes, not {len(token)}")
    return token + label


def decode_ownership(record: bytes) -> tuple[bytes, bytes]:
    """Token and label of a stored ownership record."""
    if len(record) < HEADER_BYTES + TOKEN_BYTES:
        raise BadRecord("an ownership record without a token")
    return record[HEADER_BYTES : HEADER_BYTES + TOKEN_BYTES], record[HEADER_BYTES + TOKEN_BYTES :]

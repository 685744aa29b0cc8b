"""How a table is written: records of changes in its log, and messages of its snapshots. All numbers are big endian.

A record of changes (the body of a log's record, see ``store/record.py``):

| bytes | field  |                                                                                     |
|-------|--------|-------------------------------------------------------------------------------------|
| 1     | format | 1; a reader refuses others by name                                                  |
| 1     | form   | 0 whole changes; 1 the first piece of a large change, 2 a middle one, 3 the last;   |
|       |        | 4 a marker (see ``digests``)                                                        |
| …     |        | the changes, each: part (2), length of key (4), length of op (4), key, op           |

The part stands there so that a start sorts changes without hashing every key. The pieces of a large change, put
together, are what a record of it alone would be; they follow each other. A change without its last piece was never said
to be stored; one without its first was purged in part, which is done only when a snapshot covers it.

A marker has no changes of its own: sequence of the marker before it (8, 0 when there is none), whether it is a digest
(1), whether the rest is compressed (1); in a digest then each record behind that marker: sequence (8), length of its
body (4; 2^32 - 1 for a record of ownership), body.

A message of the stream of snapshots:

| bytes | field  |                                                                                     |
|-------|--------|-------------------------------------------------------------------------------------|
| 1     | format | 1                                                                                   |
| 1     | kind   | 1 head, 2 chunk, 3 fence                                                            |
| 1     | packed | 1 when its content is compressed (LZ4 block with its size in front)                 |

A *head* (subject ``NAME_parts.PPPP``) is a snapshot's last message and the only one that counts: part (2), term (8) and
number (8) name the snapshot, covered (8) is the log's sequence up to which all changes of the part are in it, chunks
(4) says how many chunks it has; then content. A *chunk* (subject ``NAME_parts.PPPP.TERM_NUMBER.K``) is its index (4),
K, and content. The contents of chunks 0, 1, 2 … and then of the head, put together, are the entries: length of key (4),
length of state (4), key, state. A *fence* (subject ``NAME_parts.fence``) is a term (8).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import lz4.block

from brookmq.store.errors import BadRecord
from brookmq.store.table.interface import Entry

FORMAT: Final = 1

WHOLE: Final = 0
FIRST_PIECE: Final = 1
PIECE: Final = 2
LAST_PIECE: Final = 3
MARKER: Final = 4

HEAD: Final = 1
CHUNK: Final = 2
FENCE: Final = 3

_START: Final = struct.Struct(">BB")
_CHANGE: Final = struct.Struct(">HII")
_MARKER: Final = struct.Struct(">QBB")
_REPEATED: Final = struct.Struct(">QI")
_NO_BODY: Final = 0xFFFF_FFFF
_MESSAGE: Final = struct.Struct(">BBB")
_HEAD: Final = struct.Struct(">HQQQI")
_CHUNK: Final = struct.Struct(">I")
_FENCE: Final = struct.Struct(">Q")
_ENTRY: Final = struct.Struct(">II")

CHANGE_HEADER_BYTES: Final = _CHANGE.size
PACKED_BYTES_MIN: Final = 512  # less is not worth the time

change_header = _CHANGE.pack
entry_header = _ENTRY.pack

RECORD_STARTS: Final = {form: _START.pack(FORMAT, form) for form in (WHOLE, FIRST_PIECE, PIECE, LAST_PIECE, MARKER)}


class Marker(NamedTuple):
    """The end of a range of records; a digest repeats them."""

    previous: int
    digest: bool
    bodies: list[tuple[int, bytes | None]]


class Head(NamedTuple):
    """What a snapshot says of itself."""

    part: int
    term: int
    number: int
    covered: int
    chunks: int

    @property
    def identity(self) -> str:
        """The part of its chunks' subjects that no other snapshot has."""
        return f"{self.term}_{self.number}"


class Message(NamedTuple):
    """A message of the stream of snapshots."""

    kind: int
    head: Head | None
    number: int  # a chunk's index, a fence's term
    content: bytes


def form_of(body: bytes, where: str) -> int:
    """The form of a record of changes; ``where`` names it if it can't be read."""
    if len(body) < _START.size:
        raise BadRecord(f"{where}: {len(body)} bytes are no record of changes")
    format_number, form = _START.unpack_from(body)
    if format_number != FORMAT:
        raise BadRecord(f"{where}: changes of format {format_number}, which is not known here ({FORMAT} is)")
    if form not in RECORD_STARTS:
        raise BadRecord(f"{where}: changes of form {form}, which is not known here")
    return int(form)


def content_of(body: bytes) -> bytes:
    """What stands behind the start of a record of changes."""
    return body[_START.size :]


def split_changes(changes: bytes, sequence: int, tail: dict[int, list[tuple[int, bytes]]], where: str) -> set[int]:
    """Sorts changes into the tail by part, each as it is written, with the sequence; returns the parts."""
    offset, end = 0, len(changes)
    unpack, header_bytes = _CHANGE.unpack_from, CHANGE_HEADER_BYTES
    parts = set()
    while offset + header_bytes <= end:
        part, key_bytes, op_bytes = unpack(changes, offset)
        following = offset + header_bytes + key_bytes + op_bytes
        if part in tail:
            tail[part].append((sequence, changes[offset:following]))
        else:
            tail[part] = [(sequence, changes[offset:following])]
        parts.add(part)
        offset = following
    if offset != end:
        raise BadRecord(f"{where}: its changes do not end where it ends")
    return parts


def entry_of(change: bytes) -> Entry:
    """Key and op of one change as it is written."""
    _, key_bytes, _ = _CHANGE.unpack_from(change)
    key_end = CHANGE_HEADER_BYTES + key_bytes
    return change[CHANGE_HEADER_BYTES:key_end], change[key_end:]


def encode_change(part: int, key: bytes, op: bytes) -> bytes:
    """One change as it is written."""
    return change_header(part, len(key), len(op)) + key + op


def encode_marker(marker: Marker) -> bytes:
    """The body of a marker's record."""
    pieces: list[bytes] = []
    for sequence, body in marker.bodies if marker.digest else ():
        pieces += (_REPEATED.pack(sequence, _NO_BODY if body is None else len(body)), body or b"")
    packed, content = _pack(b"".join(pieces))
    return RECORD_STARTS[MARKER] + _MARKER.pack(marker.previous, marker.digest, packed) + content


def decode_marker(body: bytes, where: str) -> Marker:
    """The marker in a record of that form."""
    bodies: list[tuple[int, bytes | None]] = []
    try:
        previous, digest, packed = _MARKER.unpack_from(body, _START.size)
        content = _unpack(packed, body[_START.size + _MARKER.size :])
        offset = 0
        while offset < len(content):
            sequence, size = _REPEATED.unpack_from(content, offset)
            offset += _REPEATED.size
            if size == _NO_BODY:
                bodies.append((sequence, None))
            else:
                bodies.append((sequence, content[offset : offset + size]))
                offset += size
    except (struct.error, lz4.block.LZ4BlockError) as error:
        raise BadRecord(f"{where}: a damaged marker: {error}") from None
    if offset != len(content):
        raise BadRecord(f"{where}: a damaged marker: its records do not end where it ends")
    return Marker(previous, bool(digest), bodies)


def encode_head(head: Head, content: bytes) -> bytes:
    """The message that makes a snapshot count."""
    packed, content = _pack(content)
    return _MESSAGE.pack(FORMAT, HEAD, packed) + _HEAD.pack(*head) + content


def encode_chunk(index: int, content: bytes) -> bytes:
    """A message that belongs to the snapshot whose head comes later."""
    packed, content = _pack(content)
    return _MESSAGE.pack(FORMAT, CHUNK, packed) + _CHUNK.pack(index) + content


def encode_fence(term: int) -> bytes:
    """The message that a new owner writes before it reads."""
    return _MESSAGE.pack(FORMAT, FENCE, 0) + _FENCE.pack(term)


def decode_message(message: bytes, where: str) -> Message:
    """A message of the stream of snapshots; ``where`` names it if it can't be read."""
    if len(message) < _MESSAGE.size:
        raise BadRecord(f"{where}: {len(message)} bytes are no message of a snapshot")
    format_number, kind, packed = _MESSAGE.unpack_from(message)
    if format_number != FORMAT:
        raise BadRecord(f"{where}: a snapshot of format {format_number}, which is not known here ({FORMAT} is)")
    rest = message[_MESSAGE.size :]
    try:
        if kind == HEAD:
            return Message(kind, Head(*_HEAD.unpack_from(rest)), 0, _unpack(packed, rest[_HEAD.size :]))
        if kind == CHUNK:
            return Message(kind, None, _CHUNK.unpack_from(rest)[0], _unpack(packed, rest[_CHUNK.size :]))
        if kind == FENCE:
            return Message(kind, None, _FENCE.unpack(rest)[0], b"")
    except (struct.error, lz4.block.LZ4BlockError) as error:
        raise BadRecord(f"{where}: a damaged message of a snapshot: {error}") from None
    raise BadRecord(f"{where}: a message of kind {kind}, which is not known here")


def decode_entries(content: bytes, where: str) -> Iterator[Entry]:
    """Keys and states of a whole snapshot."""
    offset, end = 0, len(content)
    while offset + _ENTRY.size <= end:
        key_bytes, state_bytes = _ENTRY.unpack_from(content, offset)
        offset += _ENTRY.size
        key_end = offset + key_bytes
        following = key_end + state_bytes
        yield content[offset:key_end], content[key_end:following]
        offset = following
    if offset != end:
        raise BadRecord(f"{where}: the entries of a snapshot do not end where it ends")


def _pack(content: bytes) -> tuple[int, bytes]:
    if len(content) >= PACKED_BYTES_MIN:
        packed: bytes = lz4.block.compress(content)
        if len(packed) < len(content):
            return 1, packed
    return 0, content


def _unpack(packed: int, content: bytes) -> bytes:
    unpacked: bytes = lz4.block.decompress(content) if packed else content
    return unpacked

"""The file of a backup: a head, sections of records, an end. Written and read as a stream, in either direction.

    magic, format number (2 bytes), length (4) and JSON: what wrote it, when, and how much to expect
    section: kind (1), then frames: length (4), records; ended by a length of 0, the number of records (8), SHA-256
    …
    end: kind 0

A record is the lengths of key and value (4 each), then both. The checksum of a section is over its records alone, so
that two exports of the same data have the same checksum, however they were cut into frames.

A file of another format is refused by its number before anything else of it is looked at. A reader is given pieces of
any size and gives back what is complete; a file that ends early has no end, and ``finish`` says so.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from brookmq.base.errors import OperationError

MAGIC: Final = b"BROOKMQ-DATA\n"
FORMAT: Final = 1
FRAME_BYTES: Final = 64 * 1024  # of records, about: what is gathered before it is sent
FRAME_BYTES_MAX: Final = 512 * 1024 * 1024  # a record may be a message of the largest packet that MQTT has

END: Final = 0
CONFIGURATION: Final = 1
VALUES: Final = 2
SESSIONS: Final = 3
JOURNAL: Final = 4
PIPELINE: Final = 5
NAMES: Final = {
    CONFIGURATION: "configuration",
    VALUES: "values",
    SESSIONS: "sessions",
    JOURNAL: "journal",
    PIPELINE: "pipeline",
}

_NUMBER: Final = struct.Struct(">H")
_LENGTH: Final = struct.Struct(">I")
_RECORD: Final = struct.Struct(">II")
_SECTION_END: Final = struct.Struct(">Q32s")

Record = tuple[bytes, bytes]


class BadBackup(OperationError):  # noqa: N818 - named by what it is
    """Not a backup, one of another format, or one that is damaged."""


class Head(NamedTuple):
    """What a file says of itself."""

    about: dict[str, Any]


class Records(NamedTuple):
    """Some records of a section."""

    kind: int
    records: list[Record]


class SectionEnd(NamedTuple):
    """A section is complete, and its checksum was right."""

    kind: int
    records: int
    checksum: str


class End(NamedTuple):
    """The file is complete."""


Event = Head | Records | SectionEnd | End


# -- writing


def head(about: dict[str, Any]) -> bytes:
    """How a file begins."""
    text = json.dumps(about).encode()
    return MAGIC + _NUMBER.pack(FORMAT) + _LENGTH.pack(len(text)) + text


class SectionWriter:
    """One section. ``begin``, any number of ``put``, ``end``: each gives the next bytes of the file."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.count = 0
        self._hash = hashlib.sha256()
        self._gathered: list[bytes] = []
        self._bytes = 0

    def begin(self) -> bytes:
        return bytes((self.kind,))

    def put(self, records: Iterable[Record]) -> bytes:
        """A frame, or nothing as long as too little is gathered."""
        for key, value in records:
            self._gathered += (_RECORD.pack(len(key), len(value)), key, value)
            self._bytes += _RECORD.size + len(key) + len(value)
            self.count += 1
        return self._frame() if self._bytes >= FRAME_BYTES else b""

    def end(self) -> bytes:
        last = self._frame() if self._bytes else b""
        return last + _LENGTH.pack(0) + _SECTION_END.pack(self.count, self._hash.digest())

    def _frame(self) -> bytes:
        body = b"".join(self._gathered)
        self._gathered.clear()
        self._bytes = 0
        self._hash.update(body)
        return _LENGTH.pack(len(body)) + body


def end() -> bytes:
    """How a file ends."""
    return bytes((END,))


# -- reading


class BackupReader:
    """Give it pieces with ``feed``; it gives events in the order of the file, or raises BadBackup."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._kind = -1  # of the section that is open; -1: the head comes, 0: between sections
        self._hash = hashlib.sha256()
        self._count = 0
        self.complete = False

    def feed(self, piece: bytes) -> Iterator[Event]:
        """The events that are complete with this piece."""
        self._buffer += piece
        while (event := self._next()) is not None:
            yield event
        if self.complete and self._buffer:
            raise BadBackup("the backup goes on behind its end")

    @property
    def waiting_bytes(self) -> int:
        """Of what was fed, what no event has told of yet."""
        return len(self._buffer)

    def finish(self) -> None:
        """Nothing more comes: was that all?"""
        if not self.complete:
            where = NAMES.get(self._kind, "head" if self._kind < 0 else "sections")
            raise BadBackup(f"the backup is cut off within its {where}: it was not written to its end")

    def _next(self) -> Event | None:
        if self.complete:
            return None
        if self._kind < 0:
            return self._head()
        if self._kind == END:
            return self._between()
        return self._frame()

    def _head(self) -> Event | None:
        buffer = self._buffer
        known = len(MAGIC) + _NUMBER.size
        if bytes(buffer[: len(MAGIC)]) != MAGIC[: len(buffer)]:
            raise BadBackup("this is not a backup of BrookMQ")
        if len(buffer) < known:
            return None
        (number,) = _NUMBER.unpack_from(buffer, len(MAGIC))
        if number != FORMAT:
            raise BadBackup(
                f"the backup has format {number}, and this BrookMQ knows format {FORMAT} alone: "
                "import it with the version that wrote it"
            )
        body = self._sized(known)
        if body is None:
            return None
        try:
            about = json.loads(body)
        except ValueError:
            raise BadBackup("the head of the backup is damaged") from None
        self._kind = END
        return Head(about)

    def _between(self) -> Event | None:
        if not self._buffer:
            return None
        kind = self._buffer.pop(0)
        if kind == END:
            self.complete = True
            return End()
        if kind not in NAMES:
            raise BadBackup(f"the backup has a section of kind {kind}, which is not known here")
        self._kind, self._count, self._hash = kind, 0, hashlib.sha256()
        return Records(kind, [])

    def _frame(self) -> Event | None:
        if self._buffer[: _LENGTH.size] == bytes(_LENGTH.size):
            return self._section_end()
        body = self._sized(0)
        if body is None:
            return None
        self._hash.update(body)
        records: list[Record] = []
        at = 0
        while at < len(body):
            if at + _RECORD.size > len(body):
                raise BadBackup(f"the section {NAMES[self._kind]} of the backup is damaged")
            key, value = _RECORD.unpack_from(body, at)
            at += _RECORD.size + key + value
            records.append((body[at - value - key : at - value], body[at - value : at]))
        if at != len(body):
            raise BadBackup(f"the section {NAMES[self._kind]} of the backup is damaged")
        self._count += len(records)
        return Records(self._kind, records)

    def _section_end(self) -> Event | None:
        size = _LENGTH.size + _SECTION_END.size
        if len(self._buffer) < size:
            return None
        count, checksum = _SECTION_END.unpack_from(self._buffer, _LENGTH.size)
        del self._buffer[:size]
        kind, self._kind = self._kind, END
        if count != self._count or checksum != self._hash.digest():
            raise BadBackup(
                f"the section {NAMES[kind]} of the backup is damaged: its checksum is not that of its content"
            )
        return SectionEnd(kind, count, checksum.hex())

    def _sized(self, at: int) -> bytes | None:
        """What follows a length at ``at``, taken out with all before it; None: it is not all there."""
        buffer = self._buffer
        if len(buffer) < at + _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(buffer, at)
        if length > FRAME_BYTES_MAX:
            raise BadBackup("the backup is damaged: a length that nothing in it can have")
        end_at = at + _LENGTH.size + length
        if len(buffer) < end_at:
            return None
        body = bytes(buffer[at + _LENGTH.size : end_at])
        del buffer[:end_at]
        return body

"""A summary: for one part of the filter ids, which batches of a range hold them. Its form in the store and in memory.

| field          | size      |                                                                               |
|----------------|-----------|-------------------------------------------------------------------------------|
| format         | 1         | 1; a reader refuses others by name                                            |
| part           | 1         | the ids in it are those with ``id % 64 == part``                              |
| reserved       | 2         | 0                                                                             |
| batches        | 4         | how many it names: ``n``                                                      |
| everything     | 4         | how many of them were matched for all: ``m``                                  |
| ids            | 4         | ``k``                                                                         |
| start, end     | 8 + 8     | the offsets that it covers                                                    |
| first, next    | 8 + 8     | the sequences between which their batches are                                 |
| bases          | 4 n       | of the batches, from ``start``                                                |
| counts         | 4 n       | messages in each                                                              |
| sequences      | 4 n       | of their records, from ``first``                                              |
| everything     | 4 m       | places in the columns above                                                   |
| ids            | 4 k       | sorted                                                                        |
| ends           | 4 k       | where each id's list ends in ``lists``                                        |
| lists          |           | for each id its batches: places in the columns, each a varint from the one before |

Numbers are little endian. Columns of a fixed width instead of tighter ones, because thousands of sessions that come
back at once look into the same summaries: an id is found by bisection in the bytes as they came from the store.
"""

from __future__ import annotations

import struct
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from brookmq.base.errors import CallerError
from brookmq.store.errors import BadRecord
from brookmq.store.journal.postings import PARTS, read_list
from brookmq.store.record import CALLER_KIND_MIN

SUMMARY: Final = CALLER_KIND_MIN  # kind of its record
FORMAT: Final = 1
RANGE_MAX: Final = 1 << 32  # of offsets and of sequences: the columns have 32 bits

_HEADER: Final = struct.Struct("<BBHIIIQQQQ")
OBJECT_BYTES: Final = 900  # what a summary takes in memory beside its bytes


class Summary:
    """One summary as it is in the store: columns are views on its bytes."""

    __slots__ = (
        "_body", "_counts", "_ends", "_everything", "_ids", "_lists", "bases", "end", "first", "next", "part",
        "sequences", "size", "start",
    )  # fmt: skip

    def __init__(self, body: bytes, what: str) -> None:
        if body[:1] != bytes((FORMAT,)):
            raise BadRecord(f"{what}: format {body[0] if body else 'none'} is not known here ({FORMAT} is)")
        if len(body) < _HEADER.size:
            raise BadRecord(f"{what}: {len(body)} bytes are no summary")
        _, self.part, _, named, everything, ids, self.start, self.end, self.first, self.next = _HEADER.unpack_from(body)
        at = _HEADER.size
        self.bases, at = _column(body, at, named, what)
        self._counts, at = _column(body, at, named, what)
        self.sequences, at = _column(body, at, named, what)
        self._everything, at = _column(body, at, everything, what)
        self._ids, at = _column(body, at, ids, what)
        self._ends, self._lists = _column(body, at, ids, what)
        self._body = body
        self.size = len(body) + OBJECT_BYTES
        if self.part >= PARTS or self.end < self.start or (ids and self._lists + self._ends[ids - 1] != len(body)):
            raise BadRecord(f"{what}: its lists do not end where it does")

    def find(self, ids: Iterable[int], offset: int, end: int) -> list[tuple[int, int, int]]:
        """Batches that end behind ``offset`` and begin before ``end`` and hold one of these ids: base, end, sequence.

        They come in the order of the ids and may come more than once.
        """
        found: list[tuple[int, int, int]] = []
        bases, counts, sequences = self.bases, self._counts, self.sequences
        known, ends = self._ids, self._ends
        places: list[int] = list(self._everything)
        for one in ids:
            at = bisect_left(known, one)
            if at < len(known) and known[at] == one:
                start = self._lists + (ends[at - 1] if at else 0)
                places += read_list(self._body, start, self._lists + ends[at])
        for place in places:
            base = self.start + bases[place]
            if base < end and base + counts[place] > offset:
                found.append((base, base + counts[place], self.first + sequences[place]))
        return found


def encode_summary(
    part: int,
    covers: tuple[int, int],
    between: tuple[int, int],
    named: Sequence[tuple[int, int, int]],
    everything: Sequence[int],
    lists: tuple[bytes, bytes, bytes],
) -> bytes:
    """Its record's body: ``named`` are base, end and sequence of batches, ``lists`` what ``Postings.encode`` gave."""
    start, end = covers
    first, following = between
    if end - start >= RANGE_MAX or following - first >= RANGE_MAX:
        raise CallerError(f"a summary of {end - start} offsets and {following - first} sequences")
    count = len(named)
    header = _HEADER.pack(FORMAT, part, 0, count, len(everything), len(lists[0]) // 4, start, end, first, following)
    columns = struct.pack(
        f"<{3 * count + len(everything)}I",
        *(base - start for base, _, _ in named),
        *(ending - base for base, ending, _ in named),
        *(sequence - first for _, _, sequence in named),
        *everything,
    )
    return b"".join((header, columns, *lists))


def _column(body: bytes, at: int, count: int, what: str) -> tuple[Sequence[int], int]:
    """A column of numbers at a place in the bytes, without copying it where the machine has them as they are."""
    end = at + 4 * count
    if end > len(body):
        raise BadRecord(f"{what}: it ends in the middle of a column")
    if sys.byteorder == "little":
        return memoryview(body)[at:end].cast("I"), end
    return struct.unpack(f"<{count}I", body[at:end]), end

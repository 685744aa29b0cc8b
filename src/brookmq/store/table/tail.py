"""Which changes the log still has to keep, and what to do so that they stay few: decisions alone.

A part is *dirty* from its first change that no snapshot covers. Changes before those of all dirty parts can be purged,
so the part whose such change is oldest is what keeps the tail long: its snapshot is written next. Nothing is written
while the tail is short: the later a part is written, the more of its changes one snapshot makes up for.

Order: a part's snapshot *begins* at a moment when all stored changes are done (its states have them), covers what was
stored then, and *ends* when its last message is stored. What was appended in between keeps the part dirty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from brookmq.base.errors import InvariantError
from brookmq.store.table.limits import TableLimits

NOTHING: Final = 0


class Kept(NamedTuple):
    """A record in the log."""

    sequence: int
    size: int


class Tail:
    """The records of the log that were not purged."""

    def __init__(self, limits: TableLimits) -> None:
        self.bytes = 0  # of all records in ``_records``
        self._limits = limits
        self._records: deque[Kept] = deque()  # by sequence
        self.dirty: dict[int, int] = {}  # part → sequence of its first change that no snapshot covers
        self._part: int | None = None  # whose snapshot is being written
        self._covered = 0  # by it
        self._after = NOTHING  # the first change of that part behind ``_covered``

    @property
    def long(self) -> bool:
        """Whether snapshots have to make it shorter."""
        return self.bytes > self._limits.tail_bytes or len(self._records) > self._limits.tail_records

    @property
    def too_long(self) -> bool:
        """Whether whoever causes changes has to wait for snapshots."""
        return self.bytes > self._limits.tail_bytes_max or len(self._records) > 2 * self._limits.tail_records

    def appended(self, sequence: int, size: int, parts: Iterable[int]) -> None:
        """A record is in the log."""
        if self._records and sequence <= self._records[-1].sequence:
            raise InvariantError(f"{sequence} was appended behind {self._records[-1].sequence}")
        self._records.append(Kept(sequence, size))
        self.bytes += size
        dirty = self.dirty
        for part in parts:
            if part not in dirty:
                dirty[part] = sequence
            elif part == self._part and not self._after:
                self._after = sequence

    def covered(self, part: int, sequence: int, changed: bool) -> None:
        """A snapshot was found that covers a part up to a sequence; ``changed`` says whether changes follow it."""
        if not changed:
            self.dirty.pop(part, None)
        elif self.dirty.get(part, sequence + 1) <= sequence:
            self.dirty[part] = sequence + 1

    def next_part(self) -> int | None:
        """The part whose snapshot would free the log, if one is due and none is being written."""
        if self._part is not None or not self.dirty or not self.long:
            return None
        return min(self.dirty, key=self.dirty.__getitem__)

    def begin(self, part: int) -> int:
        """Its states are about to be encoded, with all changes in them that are in the log; returns up to where."""
        if self._part is not None:
            raise InvariantError(f"a snapshot of part {part} while that of {self._part} is being written")
        self._part, self._after = part, NOTHING
        self._covered = self._records[-1].sequence
        return self._covered

    def end(self) -> None:
        """The snapshot is stored."""
        if self._part is None:
            raise InvariantError("the end of a snapshot that did not begin")
        if self._after:
            self.dirty[self._part] = self._after
        else:
            self.dirty.pop(self._part, None)
        self._part = None

    def purgeable(self) -> int:
        """The first sequence that has to stay, if what is before it is worth a purge; else 0.

        The last record always stays: by it the log's owner knows how far it got.
        """
        if len(self._records) < 2:
            return NOTHING
        keep = min(self.dirty.values(), default=self._records[-1].sequence)
        keep = min(keep, self._records[-1].sequence)
        size = 0
        bytes_min = self._limits.tail_bytes * self._limits.purge_share
        count_min = self._limits.tail_records * self._limits.purge_share
        for count, record in enumerate(self._records, 1):
            if record.sequence >= keep:
                return NOTHING
            size += record.size
            if size >= bytes_min or count >= count_min:
                return keep
        raise InvariantError(f"nothing is left behind {keep}")

    def purged(self, before: int) -> None:
        """The store has removed the records before a sequence."""
        records = self._records
        while records and records[0].sequence < before:
            self.bytes -= records.popleft().size

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        sequences = [record.sequence for record in self._records]
        first = sequences[0] if sequences else 0
        rules = {
            "in order": sequences == sorted(set(sequences)),
            "counted": self.bytes == sum(record.size for record in self._records),
            "no change is purged that no snapshot covers": all(first <= place for place in self.dirty.values()),
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError("; ".join(broken))

"""What a start finds of a table: its log's records, sorted by part, before any part is loaded."""

from __future__ import annotations

from typing import Final

from brookmq.base.errors import InvariantError
from brookmq.store.table.format import FIRST_PIECE, LAST_PIECE, MARKER, WHOLE, content_of, form_of, split_changes
from brookmq.store.table.interface import META_PART
from brookmq.store.table.loading import Change, Snapshot

# What the store adds to each record: our header, its own, checksum and subject.
RECORD_OVERHEAD_BYTES: Final = 64


class FoundTable:
    """Filled with ``take`` for each record in order, then with what there is of snapshots."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sequence = 0  # of the last record
        self.changes: dict[int, list[Change]] = {}  # part → its changes
        self.records: list[tuple[int, int, set[int]]] = []  # sequence, size, parts
        self.snapshotted: set[int] = set()  # parts that have a snapshot
        self.meta: Snapshot | None = None
        self.marker = 0  # the sequence of the last marker
        self.unmarked: list[tuple[int, bytes | None]] = []  # the records behind it
        self._pieces: list[bytes] = []
        self._pieces_began = 0  # index in ``records``

    def take(self, sequence: int, body: bytes | None) -> None:
        """The next record; without a body it is one of ownership."""
        if sequence <= self.sequence:
            raise InvariantError(f"{self.name}: {sequence} was read behind {self.sequence}")
        parts: set[int] = set()
        size = RECORD_OVERHEAD_BYTES + (len(body) if body is not None else 0)
        self.sequence = sequence
        self.records.append((sequence, size, parts))
        self.unmarked.append((sequence, body))
        if body is None:  # an owner that died between pieces has left nothing that counts
            self._pieces.clear()
            return
        where = f"{self.name}, record {sequence}"
        form = form_of(body, where)
        if form == WHOLE:
            parts |= split_changes(content_of(body), sequence, self.changes, where)
            return
        if form == MARKER:
            self.marker = sequence
            self.unmarked.clear()
            return
        if form == FIRST_PIECE:
            self._pieces.clear()
            self._pieces_began = len(self.records) - 1
        elif not self._pieces:  # its first was purged: a snapshot covers it
            return
        self._pieces.append(content_of(body))
        if form == LAST_PIECE:
            changed = split_changes(b"".join(self._pieces), sequence, self.changes, where)
            for _, _, touched in self.records[self._pieces_began :]:  # the first of them must not be purged either
                touched |= changed
            self._pieces.clear()

    def meta_state(self) -> tuple[Snapshot | None, list[Change]]:
        """The snapshot of the meta part, and the changes that it does not cover."""
        covered = self.meta.covered if self.meta is not None else 0
        return self.meta, [change for change in self.changes.get(META_PART, []) if change[0] > covered]

"""Writing the snapshots that keep a table's log short, one at a time, and purging what they cover.

A snapshot shows nothing that is not stored: its states are encoded with changes in them that may still be on their way
to the log, so it is written when those have arrived. Else a crash could leave one part newer than another, although
the change of the other was made before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Final

from brookmq.base import faults
from brookmq.store.errors import StoreError
from brookmq.store.table.commit import CallLater, Clock, GroupCommit
from brookmq.store.table.format import entry_header
from brookmq.store.table.interface import EncodePart, Entry
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.loading import Loading
from brookmq.store.table.tail import Tail

Ended = Callable[[StoreError | None], None]
PutPart = Callable[[int, int, list[bytes], Ended], None]  # part, covered, contents of its messages; answers later
Purge = Callable[[int, Ended], None]  # the first sequence that stays; answers later

ENTRIES_PER_LOOK: Final = 16  # at the clock


class Step(Enum):
    """What is being done."""

    IDLE = auto()
    LOADING = auto()
    ENCODING = auto()
    STORING = auto()  # the changes that the states have in them
    WRITING = auto()
    PURGING = auto()


class Snapshots:
    """``advance`` does what ``Tail`` decides; it is called whenever something may have become possible."""

    def __init__(
        self,
        tail: Tail,
        commit: GroupCommit,
        loading: Loading,
        encode_part: EncodePart,
        put_part: PutPart,
        purge: Purge,
        call_later: CallLater,
        clock: Clock,
        limits: TableLimits,
        on_purged: Callable[[], None],
        on_failed: Callable[[StoreError], None],
    ) -> None:
        self.written = 0
        self.bytes_written = 0  # before they were compressed
        self.step = Step.IDLE
        self._tail = tail
        self._commit = commit
        self._loading = loading
        self._encode_part = encode_part
        self._put_part = put_part
        self._purge = purge
        self._call_later = call_later
        self._clock = clock
        self._limits = limits
        self._on_purged = on_purged
        self._on_failed = on_failed
        self._part = 0
        self._covered = 0
        self._entries: Iterator[Entry] = iter(())
        self._contents: list[bytes] = []  # of the messages that are full
        self._pieces: list[bytes] = []  # of the next one
        self._pieces_bytes = 0
        self._needed = 0  # so many changes have to be stored before the snapshot may be written
        self._purging = 0
        self._ended = False

    def end(self) -> None:
        """Does nothing more; what is under way may still be written."""
        self._ended = True

    def advance(self) -> None:
        """Goes on, if there is something to do and nothing to wait for."""
        if self._ended:
            return
        if self.step is Step.IDLE:
            self._begin()
        elif self.step is Step.STORING and self._commit.done >= self._needed:
            self.step = Step.WRITING
            contents, self._contents = self._contents, []
            self.written += 1
            self.bytes_written += sum(map(len, contents))
            self._put_part(self._part, self._covered, contents, self._put)

    def _begin(self) -> None:
        before = self._tail.purgeable()
        if before:
            self.step = Step.PURGING
            self._purging = before
            if faults.armed:
                faults.hit("snapshot.purge")
            self._purge(before, self._purged)
            return
        part = self._tail.next_part()
        if part is None or not self._commit.settled:
            return
        if not self._loading.loaded(part):
            self.step = Step.LOADING
            self._loading.load(part, self._again)
            return
        self.step = Step.ENCODING
        self._part = part
        self._covered = self._tail.begin(part)
        self._entries = iter(self._encode_part(part))
        self._slice()

    def _slice(self) -> None:
        """Encodes for a moment."""
        if self._ended:
            return
        ends_at = self._clock() + self._limits.slice_s
        pieces = self._pieces
        for count, (key, state) in enumerate(self._entries, 1):
            pieces += (entry_header(len(key), len(state)), key, state)
            self._pieces_bytes += len(key) + len(state) + 8
            if self._pieces_bytes >= self._limits.chunk_bytes_max:
                self._cut()
            if count % ENTRIES_PER_LOOK == 0 and self._clock() >= ends_at:
                self._call_later(0.0, self._slice)
                return
        self._contents.append(b"".join(pieces))
        pieces.clear()
        self._pieces_bytes = 0
        self._needed = self._commit.taken
        self.step = Step.STORING
        self.advance()

    def _cut(self) -> None:
        """Full messages leave; a state may be larger than one."""
        content = b"".join(self._pieces)
        size = self._limits.chunk_bytes_max
        whole = len(content) // size * size
        self._contents.extend(content[start : start + size] for start in range(0, whole, size))
        self._pieces[:] = [content[whole:]]
        self._pieces_bytes = len(content) - whole

    def _put(self, error: StoreError | None) -> None:
        if self._failed(error):
            return
        self._tail.end()
        self._again()

    def _purged(self, error: StoreError | None) -> None:
        if self._failed(error):
            return
        self._tail.purged(self._purging)
        self._on_purged()
        self._again()

    def _again(self) -> None:
        """On to the next, in another turn."""
        self.step = Step.IDLE
        self._call_later(0.0, self.advance)

    def _failed(self, error: StoreError | None) -> bool:
        if error is None or self._ended:
            return self._ended
        self._ended = True
        self._on_failed(error)
        return True

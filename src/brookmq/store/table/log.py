"""A table kept as a log of changes, with snapshots of its parts (see ``interface`` for what its owner sees).

Put together here: group commit of the changes (``commit``), what the log has to keep (``tail``), loading (``loading``)
and snapshots (``snapshots``). Nothing in it reads a clock or a socket: the log, the snapshots' store, time and turns
come in as functions, so that a simulation runs all of it from a seed. ``opening.open_table`` makes one over a store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from brookmq.store.errors import StoreError
from brookmq.store.table.commit import Append, CallLater, Clock, GroupCommit
from brookmq.store.table.digests import Ranges
from brookmq.store.table.format import entry_of
from brookmq.store.table.found import RECORD_OVERHEAD_BYTES, FoundTable
from brookmq.store.table.interface import META_PART, EncodePart, Entry, OnPart, part_of
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.loading import GetParts, Loading
from brookmq.store.table.snapshots import Purge, PutPart, Snapshots
from brookmq.store.table.tail import Tail


class TableLog:
    """One table. Another owner of its log, or a refusal for good, *fails* it: it forgets the changes that it is given,
    is full for ever, and says why in ``failed`` and once to ``on_failed``; open it again."""

    on_part: OnPart
    encode_part: EncodePart

    def __init__(
        self,
        name: str,
        found: FoundTable,
        append: Append,
        get_parts: GetParts,
        put_part: PutPart,
        purge: Purge,
        call_later: CallLater,
        clock: Clock,
        limits: TableLimits | None = None,
        end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self.limits = limits = limits if limits is not None else TableLimits()
        self.failed: StoreError | None = None
        self.on_failed: Callable[[StoreError], None] | None = None
        self.tail = Tail(limits)
        for sequence, size, parts in found.records:
            self.tail.appended(sequence, size, parts)
        self.commit = GroupCommit(
            append, call_later, clock, limits, found.sequence, self._appended, self._done, self.fail
        )
        self.loading = Loading(
            get_parts, self._take_part, self.fail, call_later, clock, limits.slice_s, found.snapshotted,
            found.changes,
        )  # fmt: skip
        self.snapshots = Snapshots(
            self.tail, self.commit, self.loading, self._encode, put_part, purge, call_later, clock, limits,
            self._let_in, self.fail,
        )  # fmt: skip
        self.ranges = Ranges(limits, found.marker)
        for sequence, body in found.unmarked:
            self.ranges.appended(sequence, body)
        self._meta = found.meta_state()
        if found.meta is not None:
            self.tail.covered(META_PART, found.meta.covered, bool(self._meta[1]))
        self._call_later = call_later
        self._waiters: list[Callable[[], None]] = []
        self._flushed: asyncio.Future[None] | None = None
        self._end = end

    # What the owner uses

    @property
    def waiting_bytes(self) -> int:
        return self.commit.waiting_bytes

    @property
    def full(self) -> bool:
        return (
            self.commit.waiting_bytes > self.limits.waiting_bytes_max or self.tail.too_long or self.failed is not None
        )

    @property
    def all_loaded(self) -> bool:
        return self.loading.all_loaded

    def change(self, key: bytes, op: bytes, done: Callable[[], None] | None = None) -> None:
        if self.failed is not None:  # nobody is told that it is done; kept, these would grow for ever
            return
        part = part_of(key)
        if not self.loading.loaded(part):
            self.loading.note(part, key, op)
        self.commit.change(part, key, op, done)

    def oldest_waiting(self, now: float) -> float:
        return self.commit.oldest_waiting(now)

    def wait(self, callback: Callable[[], None]) -> None:
        self._waiters.append(callback)
        if not self.full:
            self._call_later(0.0, self._let_in)

    def part_of(self, key: bytes) -> int:
        return part_of(key)

    def loaded(self, part: int) -> bool:
        return self.loading.loaded(part)

    def load(self, part: int, wake: Callable[[], None]) -> None:
        self.loading.load(part, wake)

    def meta_state(self) -> tuple[bytes, list[bytes]]:
        snapshot, changes = self._meta
        states = snapshot.states(f"the meta part of {self.name}") if snapshot is not None else []
        return states[0][1] if states else b"", [entry_of(change)[1] for _, change in changes]

    def begin_loading(self) -> None:
        self.loading.begin()
        self._call_later(0.0, self.snapshots.advance)  # a tail that was found long

    async def close(self, wait_s: float = 10.0) -> None:
        """Stores what waits, if the store takes it within the time, and ends. What was not done then was never said
        to be, and may be stored or not."""
        self.loading.end()
        self.snapshots.end()
        if not self.commit.idle and self.failed is None:
            self._flushed = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._flushed], timeout=wait_s)
        if self._end is not None:
            await self._end()

    def fail(self, error: StoreError) -> None:
        """Nothing is stored any more. Called by what the table runs on."""
        if self.failed is not None:
            return
        self.failed = error
        self.loading.end()
        self.snapshots.end()
        if self._flushed is not None and not self._flushed.done():
            self._flushed.set_result(None)
        if self.on_failed is not None:
            self.on_failed(error)

    # Inside

    def _appended(self, sequence: int, body: bytes, parts: set[int]) -> bytes | None:
        self.tail.appended(sequence, len(body) + RECORD_OVERHEAD_BYTES, parts)
        return self.ranges.appended(sequence, body)

    def _done(self) -> None:
        if self._flushed is not None and self.commit.idle and not self._flushed.done():
            self._flushed.set_result(None)
        self._let_in()
        self.snapshots.advance()

    def _take_part(self, part: int, covered: int, states: list[Entry], ops: list[Entry]) -> Iterator[object] | None:
        self.tail.covered(part, covered, bool(ops))
        return self.on_part(part, states, ops)

    def _encode(self, part: int) -> Iterable[Entry]:
        return self.encode_part(part)

    def _let_in(self) -> None:
        if self._waiters and not self.full:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                waiter()

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        self.commit.check_invariants()
        self.tail.check_invariants()
        assert self.loading.loaded(META_PART)

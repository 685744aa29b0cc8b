"""The twin of a table in memory: for tests of the broker, which stop it, crash it and open it again.

A new one is empty, so everything is loaded. Changes are stored, and done, in the next turn (``call_soon``); after
``hold`` only when ``release`` says so. ``reopened`` is the table as the next process finds it after a crash: what was
done is there, and of the rest as many changes as the test wants, since the store may have had them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from brookmq.store.table.interface import META_KEY, META_PART, PARTS, EncodePart, Entry, OnPart, part_of

WAITING_BYTES_MAX: Final = 4 * 1024 * 1024


class Waiting(NamedTuple):
    """A change that is not stored."""

    key: bytes
    op: bytes
    done: Callable[[], None] | None
    since: float


class MemoryTable:
    """See ``interface.Table``."""

    on_part: OnPart
    encode_part: EncodePart

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float] = lambda: 0.0,
        *,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self.waiting_bytes = 0
        self.failed: Exception | None = None
        self.states: dict[int, list[Entry]] = {}  # of each part's snapshot
        self.changes: dict[int, list[Entry]] = {}  # of each part since then, stored
        self._waiting: deque[Waiting] = deque()
        self._unloaded: set[int] = set()
        self._given: dict[int, tuple[list[Entry], Iterator[object]]] = {}  # parts that are taken step by step
        self._waiters: list[Callable[[], None]] = []
        self._held = False
        self._storing = False  # a turn that stores is under way
        self._call_soon = call_soon
        self._clock = clock
        self._waiting_bytes_max = waiting_bytes_max

    # What the broker uses

    @property
    def full(self) -> bool:
        return self.waiting_bytes > self._waiting_bytes_max

    @property
    def all_loaded(self) -> bool:
        return not self._unloaded

    def change(self, key: bytes, op: bytes, done: Callable[[], None] | None = None) -> None:
        self._waiting.append(Waiting(key, op, done, self._clock()))
        if (part := part_of(key)) in self._given:
            self._given[part][0].append((key, op))
        self.waiting_bytes += len(key) + len(op)
        self._store_soon()

    def oldest_waiting(self, now: float) -> float:
        return now - self._waiting[0].since if self._waiting else 0.0

    def wait(self, callback: Callable[[], None]) -> None:
        self._waiters.append(callback)
        if not self.full:
            self._call_soon(self._tell_room)

    def part_of(self, key: bytes) -> int:
        return part_of(key)

    def loaded(self, part: int) -> bool:
        return part not in self._unloaded

    def load(self, part: int, wake: Callable[[], None]) -> None:
        def step() -> None:
            if self._take(part):
                wake()
            else:
                self._call_soon(step)

        self._call_soon(step)

    def meta_state(self) -> tuple[bytes, list[bytes]]:
        states = self.states.get(META_PART, [])
        return states[0][1] if states else b"", [op for _, op in self.changes.get(META_PART, [])]

    def begin_loading(self) -> None:
        """One part in each turn, or one step of it."""
        if self._unloaded:
            self._take(min(self._unloaded))
            self._call_soon(self.begin_loading)

    async def close(self) -> None:
        self.release()

    # What a test does

    @property
    def unanswered(self) -> int:
        """How many changes are not stored."""
        return len(self._waiting)

    def hold(self) -> None:
        """From now on nothing is stored until ``release``."""
        self._held = True

    def release(self, count: int | None = None) -> None:
        """Stores the oldest ``count`` changes that wait and goes on holding; without a count all, and holds no more."""
        if count is None:
            self._held = False
        self._store(len(self._waiting) if count is None else count)

    def snapshot(self, part: int) -> None:
        """Writes the snapshot of a loaded part, as the real table does when its log has grown."""
        assert part not in self._unloaded, "only its owner's states make a snapshot"
        assert not self._waiting, "a snapshot shows nothing that is not stored: release first"
        self.states[part] = list(self.encode_part(part))
        self.changes.pop(part, None)

    def snapshot_all(self) -> None:
        """Writes the snapshots of all parts."""
        for part in range(PARTS + 1):
            self.snapshot(part)

    def reopened(self, unanswered: int = 0) -> MemoryTable:
        """The table after a crash; of what waits the first ``unanswered`` changes are stored. This one is dead then."""
        for change in list(self._waiting)[:unanswered]:
            self.changes.setdefault(part_of(change.key), []).append((change.key, change.op))
        self._waiting.clear()
        self._waiters.clear()
        twin = MemoryTable(self._call_soon, self._clock, waiting_bytes_max=self._waiting_bytes_max)
        twin.states, twin.changes = self.states, self.changes
        self.states, self.changes = {}, {}
        twin._unloaded = {part for part in (*twin.states, *twin.changes) if part != META_PART}
        return twin

    # Inside

    def _take(self, part: int) -> bool:
        """The owner takes a part, or a step of it; whether the part is loaded then."""
        if part not in self._unloaded:
            return True
        if part not in self._given:
            waiting = [(change.key, change.op) for change in self._waiting if part_of(change.key) == part]
            ops = self.changes.get(part, []) + waiting
            self._given[part] = ops, self.on_part(part, list(self.states.get(part, [])), ops) or iter(())
        for _ in self._given[part][1]:
            return False
        del self._given[part]
        self._unloaded.discard(part)
        return True

    def _store_soon(self) -> None:
        if self._waiting and not self._held and not self._storing:
            self._storing = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._storing = False
        if not self._held:
            self._store(len(self._waiting))

    def _store(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting))):
            if not self._waiting:  # what was done may have crashed the table
                return
            change = self._waiting.popleft()
            self.waiting_bytes -= len(change.key) + len(change.op)
            self.changes.setdefault(part_of(change.key), []).append((change.key, change.op))
            if change.done is not None:
                change.done()
        self._tell_room()

    def _tell_room(self) -> None:
        if self._waiters and not self.full:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                waiter()

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        assert self.waiting_bytes == sum(len(change.key) + len(change.op) for change in self._waiting)
        assert all(part_of(key) == part for part, ops in self.changes.items() for key, _ in ops)
        assert META_PART not in self._unloaded
        assert META_KEY not in {key for part, ops in self.changes.items() if part != META_PART for key, _ in ops}

"""A store, a loop and a clock that are none: a table runs on them from a seed, and crashes between any two events.

The store does one thing at a time for each request, after a while. At a crash, what was asked for and not answered may
have been done or not; of a snapshot in several messages some may be there.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator

from brookmq.store.table.digests import Walk
from brookmq.store.table.format import LAST_PIECE, MARKER, WHOLE, content_of, form_of
from brookmq.store.table.found import FoundTable
from brookmq.store.table.interface import META_PART
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.loading import Found, Snapshot
from brookmq.store.table.log import TableLog
from brookmq.store.table.snapshots import Ended

LIMITS = TableLimits(
    record_bytes=300,
    record_bytes_max=600,
    piece_bytes_max=400,
    waiting_bytes_max=2_000,
    tail_bytes=4_000,
    tail_records=40,
    tail_bytes_max=6_000,
    range_records=6,
    digest_bytes_max=900,
    chunk_bytes_max=150,
)


class Loop:
    """Time that passes from event to event."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._number = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, callback))

    def step(self) -> bool:
        if not self._events:
            return False
        self.now, _, callback = heapq.heappop(self._events)
        callback()
        return True


class Store:
    """What survives a crash: the log's records, and the messages of snapshots."""

    def __init__(self, chance: random.Random) -> None:
        self.records: dict[int, bytes | None] = {1: None}  # sequence → body, None for ownership
        self.last = 1
        self.changes = 0  # how many whole changes were ever appended
        self._pieces = b""
        self.heads: dict[int, tuple[int, int, int, bytes]] = {}  # part → covered, identity, chunks, content
        self.chunks: dict[tuple[int, int], bytes] = {}  # identity and index → content
        self.under_way: list[Callable[[], None]] = []  # what a crash may leave done or not
        self.snapshots = 0
        self.purges = 0
        self._identity = 0
        self._chance = chance

    def crash(self) -> None:
        for effect in self.under_way:
            if self._chance.random() < 0.5:
                effect()
        self.under_way.clear()

    def append(self, body: bytes) -> int:
        self.last += 1
        self.records[self.last] = body
        if form_of(body, "") == MARKER:
            assert not self._pieces, "pieces stay together"
            return self.last
        self._pieces += content_of(body)
        if form_of(body, "") in (WHOLE, LAST_PIECE):
            self.changes += count_changes(self._pieces)
            self._pieces = b""
        return self.last

    def seize(self) -> None:
        self.last += 1
        self.records[self.last] = None
        self._pieces = b""

    def messages(self, part: int, covered: int, contents: list[bytes]) -> Iterator[Callable[[], None]]:
        """What writing a snapshot does, message by message."""
        self._identity += 1
        identity = self._identity
        for index, content in enumerate(contents[:-1]):
            yield lambda index=index, content=content: self.chunks.__setitem__((identity, index), content)
        head = (covered, identity, len(contents) - 1, contents[-1])

        def commit() -> None:
            self.heads[part] = head
            self.snapshots += 1

        yield commit

    def snapshot(self, part: int) -> Snapshot:
        covered, identity, chunks, content = self.heads[part]
        return Snapshot(covered, b"".join([*(self.chunks[identity, index] for index in range(chunks)), content]))

    def purge(self, before: int) -> None:
        self.purges += 1
        for sequence in [sequence for sequence in self.records if sequence < before]:
            del self.records[sequence]


def count_changes(content: bytes) -> int:
    count = offset = 0
    while offset < len(content):
        offset += (
            10 + int.from_bytes(content[offset + 2 : offset + 6]) + int.from_bytes(content[offset + 6 : offset + 10])
        )
        count += 1
    return count


class Process:
    """One process that owns the table, until it crashes."""

    def __init__(self, store: Store, loop: Loop, chance: random.Random) -> None:
        self.store = store
        self.loop = loop
        self.alive = True
        self._chance = chance
        store.seize()
        found = FoundTable("simulated")
        walk = Walk(min(store.records), store.last, window=2 * LIMITS.range_records)
        self.read = 0
        for first, last in walk.ranges():
            for sequence in range(first, last + 1):
                walk.take(sequence, store.records[sequence], "")
                self.read += 1
        for sequence, body in walk.records():
            found.take(sequence, body)
        assert found.sequence == store.last
        found.snapshotted = set(store.heads)
        if META_PART in found.snapshotted:
            found.meta = store.snapshot(META_PART)
        self.table = TableLog(
            "simulated",
            found,
            self._append,
            self._get,
            self._put,
            self._purge,
            self._call_later,
            lambda: loop.now,
            LIMITS,
        )

    def crash(self) -> None:
        self.alive = False
        self.store.crash()

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        self.loop.call_later(seconds, lambda: callback() if self.alive else None)

    def _soon(self, effect: Callable[[], None], answer: Callable[[], None]) -> None:
        """The store does something, and its answer comes later."""
        self.store.under_way.append(effect)

        def done() -> None:
            if self.alive:
                self.store.under_way.remove(effect)
                effect()
                self._call_later(self._chance.random() * 0.002, answer)

        self.loop.call_later(self._chance.random() * 0.004, done)

    def _append(self, body: bytes, done: Callable[[int], None]) -> None:
        sequences: list[int] = []
        self._soon(lambda: sequences.append(self.store.append(body)), lambda: done(sequences[0]))

    def _get(self, parts: list[int], done: Callable[[Found], None]) -> None:
        some = parts[: self._chance.randint(1, len(parts))]
        self._soon(lambda: None, lambda: done({part: self.store.snapshot(part) for part in some}))

    def _put(self, part: int, covered: int, contents: list[bytes], done: Ended) -> None:
        messages = deque(self.store.messages(part, covered, contents))

        def following() -> None:
            if messages:
                self._soon(messages.popleft(), following)
            else:
                done(None)

        following()

    def _purge(self, before: int, done: Ended) -> None:
        self._soon(lambda: self.store.purge(before), lambda: done(None))

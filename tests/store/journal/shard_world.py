"""A shard with a log in memory and a clock that stands still until it is told to go on."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.shard import Shard
from brookmq.store.memory_log import MemoryLog


class Clock:
    """Virtual time: ``call_later``, ``call_soon`` and the turns between."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._calls, (self.now + delay_s, self._number, callback))

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.call_later(0.0, callback)

    def end_turn(self) -> bool:
        """Makes the calls that are due; False: there was none."""
        due = []
        while self._calls and self._calls[0][0] <= self.now:
            due.append(heapq.heappop(self._calls)[2])
        for call in due:
            call()
        return bool(due)

    def settle(self) -> None:
        """Turns until nothing is due, without time passing."""
        while self.end_turn():
            pass

    def advance(self, seconds: float) -> None:
        """Time passes, and what becomes due is called in its moment."""
        until = self.now + seconds
        while self._calls and self._calls[0][0] <= until:
            self.now = max(self.now, self._calls[0][0])
            self.settle()
        self.now = until
        self.settle()


class World:
    """``story`` is what happened, in order: ``("stored", base, end)`` and ``(name, reason)`` for each ticket."""

    def __init__(self, limits: ShardLimits | None = None, head: int = 0) -> None:
        self.clock = Clock()
        self.log = MemoryLog(self.clock.call_soon)
        self.story: list[tuple[object, ...]] = []
        self.stored: list[Batch] = []
        self.shard = Shard(
            3, self.log.append, self.clock.call_later, self.clock.time, self._on_stored, limits, head
        )  # fmt: skip

    def _on_stored(self, batch: Batch) -> None:
        assert self.shard.stored == batch.end
        self.story.append(("stored", batch.base, batch.end))
        self.stored.append(batch)

    def add(self, group: Group, name: object = None) -> None:
        self.shard.add(group, None if name is None else NamedTicket(self.story, name))

    def batches(self) -> list[Batch]:
        """What is in the log."""
        return [decode_batch(3, sequence, record.body) for sequence, record in self.log.records.items()]


class NamedTicket:
    """Writes down how it was settled."""

    def __init__(self, story: list[tuple[object, ...]], name: object) -> None:
        self._story = story
        self._name = name

    def settle(self, reason: int) -> None:
        self._story.append((self._name, reason))

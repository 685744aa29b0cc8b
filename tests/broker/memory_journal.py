"""A journal in memory: the real shards on logs in memory, and everything that is stored within reach.

``crash`` is what a dead node leaves: the next journal has what was stored, and of what had no answer as much as the
test wants.
"""

from __future__ import annotations

from collections.abc import Callable

from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.shard import Shard
from brookmq.store.memory_log import MemoryLog

CallSoon = Callable[[Callable[[], None]], object]


class MemoryJournal:
    """As much of ``store.journal.Journal`` as a broker uses."""

    def __init__(
        self, call_soon: CallSoon, clock: Callable[[], float], logs: list[MemoryLog] | None = None, shards: int = 4
    ) -> None:
        self.logs = logs if logs is not None else [MemoryLog(call_soon) for _ in range(shards)]
        self.batches: list[list[Batch]] = []
        self.on_stored: Callable[[Batch], None] = lambda batch: None
        self.shards: list[Shard] = []
        self.unloaded = False  # nothing is in memory until ``load`` was asked for it
        self.loaded: set[tuple[int, int]] = set()
        self.firsts = [0] * len(self.logs)
        self._call_soon = call_soon
        for number, log in enumerate(self.logs):
            kept = [decode_batch(number, sequence, record.body) for sequence, record in log.records.items()]
            self.batches.append(kept)
            self.shards.append(
                Shard(
                    number,
                    log.append,
                    lambda delay, callback: call_soon(callback),
                    clock,
                    self._stored,
                    ShardLimits(linger_s=0.0),
                    kept[-1].end if kept else 0,
                )
            )

    def _stored(self, batch: Batch) -> None:
        self.batches[batch.shard].append(batch)
        self.on_stored(batch)

    def look(self, shard: int, offset: int, wanted: frozenset[int] | None) -> Batch | int | None:
        for batch in self.batches[shard]:
            if batch.end > offset and batch.base >= self.firsts[shard]:
                if wanted is not None and not batch.everything and wanted.isdisjoint(batch.filters):
                    continue
                if self.unloaded and (shard, batch.base) not in self.loaded:
                    return None
                return batch
        return self.shards[shard].stored

    def load(self, shard: int, offset: int, wanted: frozenset[int] | None, wake: Callable[[], None]) -> None:
        for batch in self.batches[shard]:
            if batch.end > offset and (wanted is None or batch.everything or not wanted.isdisjoint(batch.filters)):
                self.loaded.add((shard, batch.base))
                break
        self._call_soon(wake)

    def first_offset(self, shard: int) -> int:
        return self.firsts[shard]

    def find_time(self, shard: int, unix_time: float, callback: Callable[[int], None]) -> None:
        later = [batch.base for batch in self.batches[shard] if batch.last_time >= unix_time]
        offset = later[0] if later else self.shards[shard].stored
        self._call_soon(lambda: callback(offset))

    def crash(self, stored: Callable[[int], int]) -> list[MemoryLog]:
        """The logs as the next process finds them: ``stored`` says for each how many of its unanswered appends are
        there."""
        for log in self.logs:
            log.crash(stored(log.unanswered))
        return self.logs

"""A journal of a few figures behind :class:`brookmq.ops.pipeline_view.PipelineView`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from brookmq.base.errors import OperationError
from brookmq.ops.pipeline_view import (
    JournalInfo,
    ReaderInfo,
    RecordRun,
    ShardInfo,
    ShardPlan,
    SinkPosition,
    StoreAccess,
)

SHARDS = 2


class MemoryPipeline:
    def __init__(self) -> None:
        self.trouble = ""
        self.declared: dict[str, ReaderInfo] = {}
        self.rows: list[tuple[str, int, bytes]] = []
        self.planned: list[tuple[Mapping[int, tuple[int, int]], Sequence[str], tuple[float, float] | None]] = []

    def _check(self) -> None:
        if self.trouble:
            raise OperationError(self.trouble)

    async def journal(self, *, credential: bool) -> JournalInfo:
        self._check()
        shards = [ShardInfo(shard, f"JOURNAL_{shard}", f"journal_{shard}", 10, 20) for shard in range(SHARDS)]
        access = StoreAccess(["nats://127.0.0.1:4321"], "reader-1", "secret", 3600.0, "_INBOX.reader", None)
        return JournalInfo("brookmq", "0a1b", "n@h", ["a/#"], shards, access if credential else None)

    async def journal_plan(
        self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: tuple[float, float] | None
    ) -> Mapping[int, ShardPlan]:
        self._check()
        if any(shard >= SHARDS for shard in ranges):
            raise LookupError("there is no such shard")
        self.planned.append((ranges, filters, between))
        return {shard: ShardPlan([RecordRun(5, 6, *each)], shard) for shard, each in ranges.items()}

    async def journal_time(self, unix_time: float) -> Mapping[int, int]:
        self._check()
        return {shard: int(unix_time) + shard for shard in range(SHARDS)}

    async def sink_position(self, query: str, partition: int) -> SinkPosition:
        self._check()
        return SinkPosition(partition, len(self.rows) - 1)

    async def publish_rows(self, query: str, partition: int, body: bytes) -> SinkPosition:
        self._check()
        self.rows.append((query, partition, body))
        return await self.sink_position(query, partition)

    async def forget_sink(self, query: str) -> None:
        self._check()
        self.rows = [row for row in self.rows if row[0] != query]

    def readers(self) -> Sequence[ReaderInfo]:
        return [self.declared[name] for name in sorted(self.declared)]

    async def put_reader(
        self, name: str, position: Mapping[int, int], filters: Sequence[str], lost: int | None
    ) -> ReaderInfo:
        self._check()
        if any(shard >= SHARDS for shard in position):
            raise LookupError("there is no such shard")
        written = {str(shard): offset for shard, offset in position.items()}
        lag = sum(20 - offset for offset in position.values())
        self.declared[name] = ReaderInfo(name, "0a1b", written, filters, 1000.0, lag, lost or 0, True)
        return self.declared[name]

    async def reader_lost(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> ReaderInfo | None:
        self._check()
        if any(shard >= SHARDS for shard in ranges):
            raise LookupError("there is no such shard")
        before = self.declared.get(name)
        if before is None:
            return None
        lost = sum(end - start for found in ranges.values() for start, end in found)
        self.declared[name] = replace(before, lost=before.lost + lost)
        return self.declared[name]

    async def drop_reader(self, name: str) -> bool:
        self._check()
        return self.declared.pop(name, None) is not None

"""What programs that process the journal see of this node: the interface of ``ops.pipeline_view``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from brookmq.base.config import Config
from brookmq.base.errors import OperationError
from brookmq.mqtt.topics import check_filter
from brookmq.node.sink import Sink
from brookmq.node.storage import Storage
from brookmq.ops.pipeline_view import JournalInfo, RecordRun, ShardInfo, ShardPlan, SinkPosition
from brookmq.store.journal.journal import Journal
from brookmq.store.journal.seeking import batches_subject, stream_name

LOOK_S: Final = 0.02


class PipelineFacts:
    def __init__(self, config: Config, storage: Storage, sink: Sink) -> None:
        self._config = config
        self._storage = storage
        self._sink = sink

    async def _journal(self) -> Journal:
        """Once it is open: a node that starts needs a moment."""
        storage, loop = self._storage, asyncio.get_running_loop()
        deadline = loop.time() + float(self._config.store.wait)
        while (journal := storage.journal) is None and loop.time() < deadline:  # noqa: ASYNC110 - it is looked at once
            await asyncio.sleep(LOOK_S)
        if journal is None or storage.deposed:
            raise OperationError(f"the journal can't be read now: {storage.trouble or 'it is being opened'}")
        return journal

    async def journal(self, *, credential: bool) -> JournalInfo:
        journal = await self._journal()
        access = await self._storage.reader_access() if credential else None
        shards = [
            ShardInfo(
                shard.number,
                stream_name(shard.number),
                batches_subject(shard.number),
                min(journal.first_offset(shard.number), shard.stored),
                shard.stored,
            )
            for shard in journal.shards
        ]
        config = self._config
        return JournalInfo(
            config.cluster.name, journal.identity.name, config.node.name, config.journal.capture, shards, access
        )

    async def journal_plan(
        self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: tuple[float, float] | None
    ) -> Mapping[int, ShardPlan]:
        journal = await self._journal()
        for filter in filters:
            check_filter(filter)
        for shard in ranges:
            if shard >= len(journal.shards):
                raise LookupError(f"there is no shard {shard}: the journal has {len(journal.shards)}")
        plans = await asyncio.gather(
            *(journal.plan(shard, start, end, filters, between) for shard, (start, end) in ranges.items())
        )
        return {
            shard: ShardPlan([RecordRun(*run) for run in plan.runs], plan.lost)
            for shard, plan in zip(ranges, plans, strict=True)
        }

    async def journal_time(self, unix_time: float) -> Mapping[int, int]:
        journal = await self._journal()
        offsets = await asyncio.gather(*(journal.offset_at(shard.number, unix_time) for shard in journal.shards))
        return dict(enumerate(offsets))

    async def sink_position(self, query: str, partition: int) -> SinkPosition:
        return SinkPosition(*await self._sink.position(query, partition))

    async def publish_rows(self, query: str, partition: int, body: bytes) -> SinkPosition:
        return SinkPosition(*await self._sink.publish(query, partition, body))

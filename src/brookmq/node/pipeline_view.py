"""What programs that process the journal see of this node: the interface of ``ops.pipeline_view``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from brookmq.base.config import Config
from brookmq.base.errors import OperationError
from brookmq.mqtt.topics import check_filter
from brookmq.node.readers import DeclaredReaders
from brookmq.node.retention import Retention
from brookmq.node.sink import Sink
from brookmq.node.storage import Storage
from brookmq.ops.pipeline_view import JournalInfo, ReaderInfo, RecordRun, ShardInfo, ShardPlan, SinkPosition
from brookmq.store.journal.journal import Journal
from brookmq.store.journal.seeking import batches_subject, stream_name

LOOK_S: Final = 0.02


class PipelineFacts:
    def __init__(self, config: Config, storage: Storage, sink: Sink) -> None:
        self.declared: DeclaredReaders | None = None  # once what the node keeps is open
        self.retention: Retention | None = None
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

    async def forget_sink(self, query: str) -> None:
        await self._sink.forget(query)

    # -- declared readers

    def readers(self) -> Sequence[ReaderInfo]:
        return [] if self.declared is None or not self.declared.loaded else self.declared.all()

    async def put_reader(
        self, name: str, position: Mapping[int, int], filters: Sequence[str], lost: int | None
    ) -> ReaderInfo:
        for filter in filters:
            check_filter(filter)
        readers = await self._readers()
        is_new = readers.get(name) is None
        await self._stored(lambda done: readers.put(name, position, filters, lost, done))
        if is_new and self.retention is not None:
            self.retention.look_soon()
        found = readers.get(name)
        if found is None:
            raise OperationError(f"the reader {name} was dropped meanwhile")
        return found

    async def reader_lost(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> ReaderInfo | None:
        readers = await self._readers()
        if readers.get(name) is None:
            return None
        await self._stored(lambda done: readers.lose(name, ranges, done))
        return readers.get(name)

    async def drop_reader(self, name: str) -> bool:
        readers = await self._readers()
        if readers.get(name) is None:
            return False
        await self._stored(lambda done: readers.drop(name, done))
        if self.retention is not None:
            self.retention.look_soon()
        return True

    async def _readers(self) -> DeclaredReaders:
        await self._journal()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + float(self._config.store.wait)
        while (readers := self.declared) is None or not readers.loaded:
            if loop.time() > deadline:
                raise OperationError("the readers are not known yet: the store is not open")
            await asyncio.sleep(LOOK_S)
        return readers

    async def _stored(self, change: Callable[[Callable[[], None]], object]) -> None:
        stored = asyncio.get_running_loop().create_future()
        change(lambda: None if stored.done() else stored.set_result(None))
        try:
            async with asyncio.timeout(float(self._config.store.wait)):
                await stored
        except TimeoutError:
            raise OperationError("it could not be stored: the store does not answer") from None

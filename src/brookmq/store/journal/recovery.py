"""Opening the journal: its streams declared, its shards seized, and where each one stands found out.

After a shard is seized nobody else appends to it, so one look at the last record of each of its subjects tells all: the
last batch has the head, the last summary of each part how far the index reaches. Both come in one answer together with
our own ownership record, which proves that the replica that answered has everything before it.

What no summary covers is read again in the background, some hundred batches at most; until then readers read such
batches whole, so the time that a start takes does not depend on it.

A journal whose records have all aged away still must not give an offset twice: cursors of sessions name them. So the
stream's metadata has a *mark*, an offset with its sequence, and the head is then set behind what could have been
appended since.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Final

from brookmq.base import faults
from brookmq.base.errors import InvariantError
from brookmq.store.errors import Ambiguous
from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.cache import Cache
from brookmq.store.journal.index import Hole, ShardIndex
from brookmq.store.journal.journal import Journal, JournalSettings, OpenShard
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.log_appender import LogAppender
from brookmq.store.journal.postings import PARTS
from brookmq.store.journal.reading import ShardReading
from brookmq.store.journal.seeking import Seeker, batches_subject, stream_name, summaries_subject
from brookmq.store.journal.shard import Shard
from brookmq.store.journal.summarising import Summariser
from brookmq.store.journal.summary import SUMMARY, Summary
from brookmq.store.link import Link
from brookmq.store.log import AppendLog, ownership_subject
from brookmq.store.reader import STALE_PAUSE_S, Lanes
from brookmq.store.record import DATA, HEADER_BYTES, OWNERSHIP, decode_header
from brookmq.store.streams import Stream, declare

log = logging.getLogger("brookmq.store")

MESSAGES_PER_RECORD_MAX: Final = 65_536  # a batch has 256 KiB, or is one run of at most 500 messages
TAIL_TIME_LIMIT_S: Final = 10.0  # longer than an election
MARK: Final = "brookmq.mark"


@dataclass(slots=True)
class Tail:
    """The end of a shard, as its store has it."""

    head: int = 0
    last: int = 0  # sequence of the last batch
    summaries: list[Summary] = field(default_factory=list)  # the last one of each part that has any


async def open_journal(link: Link, settings: JournalSettings) -> Journal:
    """Opens the journal, or makes a new one. Raises ``StoreError``; try again then."""
    count = await shard_count(link, settings.shards)
    journal = Journal()
    opened: list[OpenShard] = []
    batches: Cache[Batch] = Cache(settings.cache_bytes_max // 2, count)
    summaries: Cache[Summary | Hole] = Cache(settings.cache_bytes_max // 4, count * PARTS)
    limits = settings.limits or ShardLimits(
        pending_bytes_max=settings.pending_bytes_max, recent_bytes_max=settings.cache_bytes_max // 4 // count
    )

    async def one(number: int) -> OpenShard:
        opener = _Opener(link, number, count, settings, journal)
        shard = await opener.open(limits, batches, summaries)
        opened.append(shard)
        return shard

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(count)]
    except ExceptionGroup as failures:
        for each in opened:
            await each.appender.log.leave()
            await each.reading.close()
        raise failures.exceptions[0] from None
    for task in tasks:
        journal.take(task.result())
    journal.start()
    return journal


async def shard_count(link: Link, wanted: int) -> int:
    """How many shards there are, or will be in a new journal: a topic never changes its shard."""
    names: set[str] = set()
    total = 1
    while len(names) < total:
        answer = await link.api("STREAM.NAMES", {"offset": len(names)})
        total = int(answer["total"])
        names.update(answer["streams"] or [])
        if not answer["streams"]:
            break
    there = 0
    while stream_name(there) in names:
        there += 1
    if there and there != wanted:
        log.warning("the journal has %d shards and stays so; the configuration says %d", there, wanted)
    return there or wanted


class _Opener:
    """Opens one shard."""

    def __init__(self, link: Link, number: int, count: int, settings: JournalSettings, journal: Journal) -> None:
        self._link = link
        self._number = number
        self._settings = settings
        self._journal = journal
        subject = batches_subject(number)
        self._stream = Stream(
            name=stream_name(number),
            subjects=(subject, ownership_subject(subject), summaries_subject(number, "*")),
            replicas=settings.replicas,
            max_age_s=settings.max_age_s,
            max_bytes=None if settings.max_bytes is None else settings.max_bytes // count,
        )

    async def open(self, limits: ShardLimits, batches: Cache[Batch], summaries: Cache[Summary | Hole]) -> OpenShard:
        await declare(self._link, self._stream)
        if faults.armed:
            faults.hit("journal.ownership")
        log_of_shard = AppendLog(self._link, self._stream.name, batches_subject(self._number))
        lanes = Lanes(self._link, self._stream.name)
        try:
            term = await log_of_shard.seize(self._settings.label)
            tail = await self._tail(lanes, term)
            head = tail.head if tail.last else max(tail.head, await self._marked(term))
            opened = await self._wire(LogAppender(log_of_shard), lanes, tail, head, limits, batches, summaries)
            await self._mark(head, term)
        except BaseException:
            await log_of_shard.leave()
            await lanes.close()
            raise
        return opened

    async def _wire(
        self,
        appender: LogAppender,
        lanes: Lanes,
        tail: Tail,
        head: int,
        limits: ShardLimits,
        batches: Cache[Batch],
        summaries: Cache[Summary | Hole],
    ) -> OpenShard:
        loop = asyncio.get_running_loop()
        seeker = Seeker(self._number, lanes, lambda: shard.stored)

        def call_later(delay: float, callback: object) -> object:
            return loop.call_later(delay, callback) if delay > 0.0 else loop.call_soon(callback)  # type: ignore[arg-type]

        def stored(batch: Batch) -> None:
            reading.stored(batch)
            summariser.due()
            self._journal.on_stored(batch)

        shard = Shard(self._number, appender.append, call_later, time.monotonic, stored, limits, head)
        seeker.last = tail.last
        oldest = await seeker.oldest()
        if oldest is None:
            raise InvariantError("a stream's first sequence is never 0")
        first_offset, first_sequence = oldest
        seeker.places.put(first_offset, first_sequence)
        index = ShardIndex(self._number, first_offset, summaries)
        for summary in tail.summaries:
            index.resume(summary)
            seeker.places.put(summary.end, summary.next)
        reading = ShardReading(shard, index, seeker, batches, first_offset)
        reading.first_sequence = first_sequence
        summariser = Summariser(self._number, index, appender.append)
        if min(index.covers) < head:
            reading.rebuild(max(min(index.covers), first_offset), head, summariser.due)
        return OpenShard(shard, reading, summariser, appender)

    async def _tail(self, lanes: Lanes, term: int) -> Tail:
        """The last records, from a replica that has our ownership record."""
        subject = batches_subject(self._number)
        subjects = [subject, ownership_subject(subject), summaries_subject(self._number, "*")]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TAIL_TIME_LIMIT_S
        while True:
            records = await lanes.last_of(subjects, PARTS + 2)
            tail = Tail()
            current = False
            for sequence, record in records:
                header = decode_header(record, sequence)
                if header.kind == DATA:
                    tail.head = decode_batch(self._number, sequence, record[HEADER_BYTES:]).end
                    tail.last = sequence
                elif header.kind == SUMMARY:
                    what = f"{self._stream.name}, the summary at {sequence}"
                    tail.summaries.append(Summary(record[HEADER_BYTES:], what))
                elif header.kind == OWNERSHIP:
                    current = sequence >= term
            if current:
                if not tail.last:
                    tail.head = max((summary.end for summary in tail.summaries), default=0)
                return tail
            if loop.time() > deadline:
                raise Ambiguous(f"{self._stream.name}: no replica has our ownership record, {term}")
            await asyncio.sleep(STALE_PAUSE_S)

    async def _marked(self, term: int) -> int:
        """Behind all offsets that can have been given, by the mark; 0 in a new journal."""
        config = (await self._link.api(f"STREAM.INFO.{self._stream.name}"))["config"]
        mark = (config.get("metadata") or {}).get(MARK, "")
        if not mark:
            return 0
        offset, sequence = (int(number) for number in mark.split())
        return offset + (term - sequence) * MESSAGES_PER_RECORD_MAX

    async def _mark(self, offset: int, sequence: int) -> None:
        config = (await self._link.api(f"STREAM.INFO.{self._stream.name}"))["config"]
        config["metadata"] = (config.get("metadata") or {}) | {MARK: f"{offset} {sequence}"}
        await self._link.api(f"STREAM.UPDATE.{self._stream.name}", config)

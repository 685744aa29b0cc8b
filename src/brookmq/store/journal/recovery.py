"""Opening the journal: its streams declared, its shards seized, and where each one stands found out.

What no summary covers is read again in the background, some hundred batches at most. Meanwhile everything works but
finding by filter id in those batches, which waits for it; so the time that a start takes does not depend on it.

A shard whose log ended by a refusal is seized again, and what was stored without an answer is told to receivers as if
the answer had come: its publishers were told that it is not known to be stored, so they repeat it. A log that another
appender has seized is not taken back, or two nodes would take it from each other for ever, unless whoever opened the
journal knows that it is still its own (``JournalSettings.entitled``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from brookmq.base import faults
from brookmq.base.errors import InvariantError
from brookmq.store.errors import Deposed, StoreError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.cache import Cache
from brookmq.store.journal.identity import settle_identity
from brookmq.store.journal.index import Hole, ShardIndex
from brookmq.store.journal.journal import Journal, JournalSettings, OpenShard
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.log_appender import LogAppender
from brookmq.store.journal.postings import PARTS
from brookmq.store.journal.reading import ShardReading
from brookmq.store.journal.seeking import Seeker, batches_subject, stream_name, summaries_subject
from brookmq.store.journal.shard import Shard
from brookmq.store.journal.summarising import Summariser
from brookmq.store.journal.summary import Summary
from brookmq.store.journal.tail import HELD, Tail, read_tail, write_first_mark
from brookmq.store.link import Link
from brookmq.store.log import AppendLog, ownership_subject
from brookmq.store.reader import Lanes
from brookmq.store.streams import Stream, declare, stream_names

log = logging.getLogger("brookmq.store")

SHARDS_MAX: Final = 64  # more than the configuration allows
REGAIN_PAUSE_S: Final = 1.0  # between two attempts, and before the first one


async def open_journal(link: Link, settings: JournalSettings) -> Journal:
    """Opens the journal, or makes a new one. Raises ``StoreError``; try again then."""
    count = await shard_count(link, settings.shards)
    journal = Journal()
    batches: Cache[Batch] = Cache(settings.cache_bytes_max // 2, count)
    summaries: Cache[Summary | Hole] = Cache(settings.cache_bytes_max // 4, count * PARTS)
    openers = [_Opener(link, number, count, settings, journal) for number in range(count)]
    outcomes = await asyncio.gather(*(one.open(batches, summaries) for one in openers), return_exceptions=True)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            continue
        journal.take(outcome)
    try:
        if failures:
            raise failures[0]
        journal.identity = await settle_identity(link, settings.capture, [shard.head for shard in journal.shards])
    except BaseException:
        await journal.abandon()
        raise
    journal.start()
    return journal


async def shard_count(link: Link, wanted: int) -> int:
    """How many shards there are, or will be in a new journal: a topic never changes its shard."""
    names = set(await stream_names(link))
    there = 0
    while stream_name(there) in names:
        there += 1
    beyond = [name for name in (stream_name(number) for number in range(there + 1, SHARDS_MAX)) if name in names]
    if beyond:  # with fewer shards topics would go elsewhere, and sessions would not find what they have to get
        raise StoreError(f"the journal has lost its stream {stream_name(there)}: {', '.join(beyond)} is there")
    if there and there != wanted:
        log.warning("the journal has %d shards and stays so; the configuration says %d", there, wanted)
    return there or wanted


class _Opener:
    """Opens one shard, and opens it again when its log ended."""

    def __init__(self, link: Link, number: int, count: int, settings: JournalSettings, journal: Journal) -> None:
        self._link = link
        self._number = number
        self._label = settings.label
        self._entitled = settings.entitled
        self._journal = journal
        self._limits = settings.limits or ShardLimits(
            pending_bytes_max=settings.pending_bytes_max, recent_bytes_max=settings.cache_bytes_max // 4 // count
        )
        subject = batches_subject(number)
        self._stream = Stream(
            name=stream_name(number),
            subjects=(subject, ownership_subject(subject), summaries_subject(number, "*")),
            replicas=settings.replicas,
            max_age_s=settings.max_age_s,
            max_bytes=None if settings.max_bytes is None else settings.max_bytes // count,
            ageless_mark=HELD,
        )

    async def open(self, batches: Cache[Batch], summaries: Cache[Summary | Hole]) -> OpenShard:
        await declare(self._link, self._stream)
        appender = LogAppender(AppendLog(self._link, self._stream.name, batches_subject(self._number)))
        lanes = Lanes(self._link, self._stream.name)
        try:
            term = await self._seize(appender)
            tail = await read_tail(lanes, self._number, term)
            opened = await self._wire(appender, lanes, tail, batches, summaries)
            await write_first_mark(self._link, self._stream.name, tail.head, term + 1)
        except BaseException:
            await appender.log.leave()
            await lanes.close()
            raise
        opened.shard.on_failed = lambda error: opened.reading.spawn(self._regain(opened, error))
        return opened

    async def _seize(self, appender: LogAppender) -> int:
        if faults.armed:
            faults.hit("journal.ownership")
        return await appender.log.seize(self._label)

    async def _wire(
        self,
        appender: LogAppender,
        lanes: Lanes,
        tail: Tail,
        batches: Cache[Batch],
        summaries: Cache[Summary | Hole],
    ) -> OpenShard:
        """Everything that a shard is made of."""
        loop = asyncio.get_running_loop()

        def call_later(delay_s: float, callback: Callable[[], None]) -> object:
            return loop.call_later(delay_s, callback) if delay_s > 0.0 else loop.call_soon(callback)

        shard = Shard(
            self._number,
            appender.append,
            call_later,
            time.monotonic,
            lambda batch: self._stored(opened, batch),
            self._limits,
            tail.head,
        )
        seeker = Seeker(self._number, lanes, lambda: shard.stored)
        seeker.last = tail.last
        oldest = await seeker.oldest()
        if oldest is None:
            raise InvariantError(f"{self._stream.name} begins at sequence 0")
        first_offset, first_sequence = oldest
        seeker.places.put(first_offset, first_sequence)
        index = ShardIndex(self._number, first_offset, summaries)
        for summary in tail.summaries:
            index.resume(summary)
            seeker.places.put(summary.end, summary.next)
        reading = ShardReading(shard, index, seeker, batches, first_offset, first_sequence)
        summariser = Summariser(self._number, index, appender.append)
        opened = OpenShard(shard, reading, summariser, appender)
        if min(index.covers) < tail.head:
            reading.rebuild(min(index.covers), tail.head, summariser.due)
        return opened

    def _stored(self, opened: OpenShard, batch: Batch) -> None:
        opened.reading.stored(batch)
        opened.summariser.due()
        self._journal.on_stored(batch)

    async def _regain(self, opened: OpenShard, error: StoreError) -> None:
        """The log has ended: seizes it again, until that works, unless it is another's now."""
        shard, seeker, stream = opened.shard, opened.reading.seeker, self._stream.name
        log.error("%s takes no messages: %s", stream, error)
        deposed = isinstance(error, Deposed)
        while shard.failed is not None:
            await asyncio.sleep(REGAIN_PAUSE_S)
            try:
                if not opened.appender.log.owned:
                    if deposed and not (self._entitled is not None and await self._entitled()):
                        log.error("%s is left to its new owner", stream)
                        return
                    await self._seize(opened.appender)
                tail = await read_tail(seeker.lanes, self._number, opened.appender.log.term)
                missed: list[Batch] = []
                while (last := missed[-1].sequence if missed else seeker.last) < tail.last:
                    more = await seeker.named([last + 1, tail.last])
                    missed += more
                    if not more:  # gone by now
                        break
            except StoreError as trouble:
                log.warning("%s was not regained: %s", stream, trouble)
                continue
            if tail.head < shard.stored:
                log.error("%s: the store has lost offsets %d to %d; restart the node", stream, tail.head, shard.stored)
                return
            shard.restart(tail.head)
            for batch in missed:
                self._stored(opened, batch)
            log.warning("%s takes messages again", stream)

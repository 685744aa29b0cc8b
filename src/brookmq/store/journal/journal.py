"""The journal of a node: its shards, and one way to read them all.

``recovery.open_journal`` makes it. Appending goes through ``shards[shard_of(topic)].add``; what is stored comes back
through ``on_stored``, in order for each shard. Readers have a cursor for each shard and ask ``look`` at each step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from brookmq.base.ending import end
from brookmq.store.errors import StoreError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.identity import JournalIdentity
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.log_appender import LogAppender
from brookmq.store.journal.reading import ShardReading, Wake
from brookmq.store.journal.runs import Run, ShardRuns, bounded, joined
from brookmq.store.journal.shard import Shard
from brookmq.store.journal.sharding import shard_hash
from brookmq.store.journal.summarising import Summariser
from brookmq.store.journal.tail import hold_age, write_mark
from brookmq.store.streams import purge

log = logging.getLogger("brookmq.store")

RETENTION_POLL_S: Final = 5.0  # how long a reader may take what retention removed for still there
MARK_EVERY_S: Final = 3600.0
CLOSE_TIME_LIMIT_S: Final = 3.0  # for summaries that only make the next start quicker
TIME_SLACK_S: Final = 10.0  # by which messages may stand out of the order of their times: a clock that was set back

DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """What the configuration says about the journal."""

    shards: int = 4  # for a new journal; one that is there has its number already
    replicas: int = 1
    max_age_s: float | None = 7 * DAY_S
    max_bytes: int | None = None  # over all shards
    cache_bytes_max: int = 64 * 1024 * 1024
    pending_bytes_max: int = 4 * 1024 * 1024  # of one shard
    capture: tuple[str, ...] = ()  # filters by which batches will be found
    label: bytes = b""  # names the owner to people
    # After another owner: whether the journal is this one's all the same. Raises ``StoreError``: it can't be said now.
    entitled: Callable[[], Awaitable[bool]] | None = None
    limits: ShardLimits | None = field(default=None)  # instead of what follows from the above


@dataclass(slots=True)
class OpenShard:
    """A shard with all that belongs to it."""

    shard: Shard
    reading: ShardReading
    summariser: Summariser
    appender: LogAppender
    marked: int = -1  # ``stored`` when the stream's mark was written


class Plan(NamedTuple):
    """What a reader outside of the node has to fetch of a shard; ``lost``: offsets of its range that are gone."""

    runs: list[Run]
    lost: int


class Journal:
    """All shards. ``on_stored`` is called with each batch that was stored, before its tickets are settled."""

    def __init__(self) -> None:
        self.shards: list[Shard] = []
        self.on_stored: Callable[[Batch], None] = _nobody
        self.identity = JournalIdentity("", None, ())  # until it is open
        self._held: bool | None = None  # what the streams say about the age limit; None: not known yet
        self._open: list[OpenShard] = []
        self._readings: list[ShardReading] = []
        self._tending: asyncio.Task[None] | None = None

    def take(self, opened: OpenShard) -> None:
        """Adds the next shard; for who opens the journal."""
        self._open.append(opened)
        self.shards.append(opened.shard)
        self._readings.append(opened.reading)

    def start(self) -> None:
        """All shards are there."""
        self._tending = asyncio.get_running_loop().create_task(self._tend())

    def shard_of(self, topic: bytes) -> int:
        """The shard of a topic."""
        return shard_hash(topic) % len(self.shards)

    # Reading

    def look(self, shard: int, offset: int, wanted: frozenset[int] | None) -> Batch | int | None:
        """The first batch that ends behind an offset and may hold something for these filter ids (None: any); or an
        offset: nothing wanted below it (``stored``: the reader is at the head); or None: ask ``load`` for it."""
        return self._readings[shard].look(offset, wanted)

    def load(self, shard: int, offset: int, wanted: frozenset[int] | None, wake: Wake) -> None:
        """Reads what ``look`` lacks, for as long as it takes, and calls ``wake`` once."""
        self._readings[shard].load(offset, wanted, wake)

    def first_offset(self, shard: int) -> int:
        """The oldest offset that is still there; who is below it has lost what is between."""
        return self._readings[shard].first_offset

    def find_time(self, shard: int, unix_time: float, callback: Callable[[int], None]) -> None:
        """Calls back with the offset of the first message that was published at this time or later."""
        self._readings[shard].find_time(unix_time, callback)

    async def offset_at(self, shard: int, unix_time: float) -> int:
        """The same in one attempt: raises ``StoreError``."""
        reading = self._readings[shard]
        return max(await reading.seeker.at_time(unix_time), reading.first_offset)

    async def plan(
        self, shard: int, start: int, end: int, filters: Sequence[str], between: tuple[float, float] | None = None
    ) -> Plan:
        """The records that may hold something captured from ``start`` to before ``end``, for these filters (none: for
        all), published between two times (unix seconds, the later one excluded). One attempt: raises ``StoreError``."""
        reading = self._readings[shard]
        end = min(end, self.shards[shard].stored)
        if reading.index.place_of(start) is None:
            await reading.refresh_first()  # so old that retention may be near
        first = min(max(start, reading.first_offset), max(start, end))
        lost = first - start
        if between is not None and first < end:
            after = await reading.seeker.at_time(between[1] + TIME_SLACK_S)
            first, end = max(first, await reading.seeker.at_time(between[0] - TIME_SLACK_S)), min(end, after)
        making = ShardRuns(reading.index, reading.seeker)
        wanted = self.identity.ids_for(filters) if filters else None
        if wanted is None:
            return Plan(await making.whole(first, end), lost)
        since = max(first, self.identity.since[shard])
        runs = await making.whole(first, min(since, end)) + await making.some(since, end, wanted)
        return Plan(bounded(joined(runs)), lost)

    async def scan(self, shard: int, offset: int) -> list[Batch]:
        """The batches from the one with this offset on, some of them; none at the head. Go on behind the last one."""
        reading = self._readings[shard]
        offset = max(offset, reading.first_offset)
        if offset >= self.shards[shard].stored:
            return []
        found: list[Batch] = []

        async def bring() -> None:
            found[:] = (await reading.seeker.run(offset))[0]

        await reading.persist(bring)
        return found

    # Retention

    async def hold_age(self, held: bool, max_age_s: float) -> None:
        """Whether the age limit is left to who calls ``remove_below``. One attempt: raises ``StoreError``."""
        if held != self._held:
            for reading in self._readings:
                lanes = reading.seeker.lanes
                await hold_age(lanes.link, lanes.stream, held, max_age_s)
            self._held = held

    async def remove_below(self, shard: int, offset: int) -> None:
        """Removes the batches that end at or below an offset. One attempt: raises ``StoreError``."""
        reading = self._readings[shard]
        offset = min(offset, self.shards[shard].stored)
        if offset <= reading.first_offset:
            return
        seeker = reading.seeker
        if offset >= self.shards[shard].stored:
            before = seeker.last + 1
        else:
            rows = await seeker.rows(offset)
            if not rows:
                return
            before = rows[0].sequence
        await purge(seeker.lanes.link, seeker.lanes.stream, before)
        await reading.refresh_first()

    # How it is

    @property
    def bytes_read(self) -> int:
        """Of batches and summaries, from the store."""
        return sum(reading.seeker.lanes.bytes_read for reading in self._readings)

    @property
    def batches_read(self) -> int:
        """From the store."""
        return sum(reading.seeker.batches_read for reading in self._readings)

    @property
    def batches_lost(self) -> int:
        """That the store should have and has not."""
        return sum(reading.batches_lost for reading in self._readings)

    @property
    def trouble(self) -> str:
        """Why appends or reads wait, for people; empty when they don't."""
        for opened in self._open:
            if opened.shard.failed is not None:
                return f"shard {opened.shard.number} takes no messages: {opened.shard.failed}"
            if trouble := (opened.appender.log.trouble or opened.reading.trouble):
                return trouble
        return ""

    async def close(self) -> None:
        """Writes what makes the next start quick, and leaves; nothing is added any more."""
        try:
            async with asyncio.timeout(CLOSE_TIME_LIMIT_S):
                await asyncio.gather(*(opened.summariser.finish() for opened in self._open))
        except (StoreError, TimeoutError) as error:
            log.info("the journal was closed without its last summaries, the next start reads more of it: %r", error)
        await self.abandon()

    async def abandon(self) -> None:
        """Leaves at once."""
        if self._tending is not None:
            await end([self._tending])
        for opened in self._open:
            opened.shard.on_failed = None  # what is added from now on is refused, and no reason to seize the log again
        for opened in self._open:
            await opened.appender.log.leave()
            await opened.reading.close()

    async def _tend(self) -> None:
        """Looks how far retention has come, and moves the marks now and then."""
        loop = asyncio.get_running_loop()
        marks_due = loop.time() + MARK_EVERY_S
        while True:
            await asyncio.sleep(RETENTION_POLL_S)
            try:
                for reading in self._readings:
                    await reading.refresh_first()
                if loop.time() >= marks_due:
                    await self._write_marks()
                    marks_due = loop.time() + MARK_EVERY_S
            except StoreError as error:
                log.debug("how far retention came is not known: %s", error)

    async def _write_marks(self) -> None:
        for opened in self._open:
            seeker = opened.reading.seeker
            if opened.shard.stored != opened.marked:
                stored, opened.marked = opened.shard.stored, opened.shard.stored
                await write_mark(seeker.lanes.link, seeker.lanes.stream, stored, seeker.last + 1)


def _nobody(_: Batch) -> None:
    """Before somebody listens."""

"""Reading one shard: ``look`` answers from memory at once, ``load`` brings what was not there and wakes who wanted it.

What is read is shared: whoever wants a batch or a part of the index that is under way already waits for the same
request (a *flight*). A flight is tried until the store answers, however long that takes; its waiters are woken once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from brookmq.base.ending import end
from brookmq.store.errors import BadRecord, StoreError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.cache import Cache
from brookmq.store.journal.index import Missing, ShardIndex
from brookmq.store.journal.plans import Blind, Plan, Plans
from brookmq.store.journal.seeking import Seeker
from brookmq.store.journal.shard import Shard
from brookmq.store.streams import look as look_at_stream

log = logging.getLogger("brookmq.store")

PREFETCH: Final = 8  # batches of a plan that are read ahead, the wanted one included
PLACE_EVERY: Final = 64  # batches between two boundaries that the writer leaves in memory
WAKES_PER_TURN: Final = 32  # a thousand sessions may wait for the same batch; others have their turn between them
PAUSE_FIRST_S: Final = 0.02
PAUSE_MAX_S: Final = 0.5
PAUSE_BAD_S: Final = 5.0  # a record that this version can't read: it stays so, and nobody may pass over it silently

Wake = Callable[[], None]
Key = tuple[str, int]  # a kind of flight, and what it brings
REBUILD: Final[Key] = ("rebuild", 0)


class ShardReading:
    """What readers see of one shard. ``first_offset``: the oldest offset that is still there."""

    def __init__(
        self,
        shard: Shard,
        index: ShardIndex,
        seeker: Seeker,
        cache: Cache[Batch],
        first_offset: int,
        first_sequence: int,
    ) -> None:
        self.first_offset = first_offset
        self.first_sequence = first_sequence  # where the stream began when ``first_offset`` was found
        self.trouble = ""  # why nothing could be read last time; empty when it could
        self.batches_lost = 0  # gone from the middle of the stream
        self.index = index
        self.seeker = seeker
        self._shard = shard
        self._line = shard.number
        self._cache = cache
        self._plans = Plans(index)
        self._flights: dict[Key, list[Wake]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: dict[int, int] = {}  # stretches without a batch, start to end: what stood there is gone
        self._stored_count = 0
        self._loop = asyncio.get_running_loop()

    # Answers from memory

    def look(self, offset: int, wanted: frozenset[int] | None) -> Batch | int | None:
        """The first batch that ends behind an offset and may hold one of these ids (None: any); or an offset: nothing
        below it; or None: what is needed to know is not in memory, see ``load``."""
        stored: int = self._shard.stored
        if offset < self.first_offset:
            offset = self.first_offset
        if offset >= stored or (wanted is not None and not wanted):
            return stored
        if wanted is None:
            return self._whole(offset)
        plan, place, stop = self._plan(offset, wanted, stored)
        if place < len(plan.ends):
            return self._in_memory(plan.bases[place])
        if plan.until > offset:
            return plan.until
        return self._whole(offset) if isinstance(stop, Blind) else None

    def _plan(self, offset: int, wanted: frozenset[int], stored: int) -> tuple[Plan, int, Missing | Blind | None]:
        plan = self._plans.at(wanted, offset)
        place = plan.place(offset)
        stop = None
        if place == len(plan.ends) and plan.until < stored:
            stop = self._plans.grow(plan, offset, stored)
            place = plan.place(offset)
        while self._lost and place < len(plan.ends) and plan.bases[place] in self._lost:
            place += 1
        return plan, place, stop

    def _in_memory(self, base: int) -> Batch | None:
        batch = self._shard.recent.find(base)
        return self._cache.get(self._line, base) if batch is None else batch

    def _whole(self, offset: int) -> Batch | int | None:
        if self._lost and offset in self._lost:
            return self._lost[offset]
        batch = self._shard.recent.find(offset)
        return self._cache.find(self._line, offset) if batch is None else batch

    # Bringing what is missing

    def load(self, offset: int, wanted: frozenset[int] | None, wake: Wake) -> None:
        """Reads what ``look`` lacks at this offset; ``wake`` is called once, when there is more to look at."""
        offset = max(offset, self.first_offset)
        if self.look(offset, wanted) is not None:
            self._loop.call_soon(wake)
            return
        if wanted is None:
            self._load_run(offset, wake)
            return
        plan, place, stop = self._plan(offset, wanted, self._shard.stored)
        if place < len(plan.ends):
            self._load_named(plan, place, wake)
        elif isinstance(stop, Blind):
            self._load_run(offset, wake)
        elif isinstance(stop, Missing) and stop.parts:
            self._load_summaries(plan, stop.parts, wake)
        elif (rebuilding := self._flights.get(REBUILD)) is not None:
            rebuilding.append(wake)
        else:
            self._loop.call_later(PAUSE_MAX_S, wake)

    def _load_run(self, offset: int, wake: Wake) -> None:
        async def bring() -> None:
            batches, low = await self.seeker.run(offset)
            if not batches:
                await self.refresh_first()
            elif batches[0].base > offset:
                await self._missed(offset, batches[0].base, low)
            self._keep(batches)

        self._fly([("run", self.seeker.floor(offset))], bring, wake)

    def _keep(self, batches: list[Batch]) -> None:
        """The first one is wanted: it is to be the last that a small cache loses."""
        for batch in reversed(batches):
            self._cache.put(self._line, batch.base, batch)

    def _load_named(self, plan: Plan, place: int, wake: Wake) -> None:
        """The batch at a place of a plan; and the next ones, in the same request where they are close together."""
        if (waiting := self._flights.get(("batch", plan.bases[place]))) is not None:
            waiting.append(wake)
            return
        ahead = [place]
        for later in range(place + 1, min(place + PREFETCH, len(plan.bases))):
            base = plan.bases[later]
            if ("batch", base) not in self._flights and self._in_memory(base) is None:
                ahead.append(later)
        close = 1
        while close < len(ahead) and plan.sequences[ahead[close]] - plan.sequences[place] <= 2 * close + 1:
            close += 1
        self._bring_named(plan, ahead[:close], wake)
        for later in ahead[close:]:
            self._bring_named(plan, [later], None)

    def _bring_named(self, plan: Plan, places: list[int], wake: Wake | None) -> None:
        base, end, sequence = plan.bases[places[0]], plan.ends[places[0]], plan.sequences[places[0]]
        sequences = [plan.sequences[place] for place in places]

        async def bring() -> None:
            batches = await self.seeker.named(sequences)
            if not batches or batches[0].sequence != sequence:
                batch = await self.seeker.leaders(sequence)  # the replica that answered may be behind
                if batch is None:
                    await self._missed(base, end, sequence)
                else:
                    batches.insert(0, batch)
            self._keep(batches)

        self._fly([("batch", plan.bases[place]) for place in places], bring, wake)

    def _load_summaries(self, plan: Plan, parts: list[int], wake: Wake) -> None:
        left = len(parts)
        offset = plan.until

        def one_is_there() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                wake()

        for part in parts:

            async def bring(part: int = part) -> None:
                summaries = await self.seeker.summaries(part, offset)
                plan.held[part] = self.index.found(part, offset, summaries)

            self._fly([("index", part)], bring, one_is_there)

    # Flights

    def _fly(self, keys: list[Key], bring: Callable[[], Awaitable[None]], wake: Wake | None) -> None:
        """Joins the flight that is under way for the first key, or starts one for all of them."""
        waiting = self._flights.get(keys[0])
        if waiting is None:
            waiting = []
            for key in keys:
                self._flights.setdefault(key, waiting)
            self.spawn(self._flight(keys, waiting, bring))
        if wake is not None:
            waiting.append(wake)

    async def _flight(self, keys: list[Key], waiting: list[Wake], bring: Callable[[], Awaitable[None]]) -> None:
        try:
            await self.persist(bring)
        finally:
            for key in keys:
                if self._flights.get(key) is waiting:
                    del self._flights[key]
        for number, wake in enumerate(waiting, 1):
            self._loop.call_soon(wake)
            if number % WAKES_PER_TURN == 0:
                await asyncio.sleep(0)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something until it is done or the journal is closed."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": f"reading {self.seeker.lanes.stream}", "exception": error})

    async def persist(self, bring: Callable[[], Awaitable[None]]) -> None:
        """Tries until the store answers."""
        pause = PAUSE_FIRST_S
        while True:
            try:
                await bring()
            except BadRecord as error:
                if self.trouble != str(error):
                    log.error("a record of the journal can't be read: %s", error)  # noqa: TRY400 - a fact, not a bug
                self.trouble = str(error)
                await asyncio.sleep(PAUSE_BAD_S)
            except StoreError as error:
                self.trouble = str(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_MAX_S)
            else:
                self.trouble = ""
                return

    # What is gone

    async def _missed(self, start: int, end: int, sequence: int) -> None:
        """There is no batch where one should be, at a sequence or soon behind it."""
        state = await look_at_stream(self.seeker.lanes.link, self.seeker.lanes.stream)
        if state.first_sequence > sequence:
            await self.refresh_first()
        if self.first_offset < end:
            self.batches_lost += 1
            self._lost[max(start, self.first_offset)] = end
            log.error("%s: offsets %d to %d are gone from the store", self.seeker.lanes.stream, start, end)

    async def refresh_first(self) -> None:
        """Looks how far retention has come."""
        oldest = await self.seeker.oldest(self.first_sequence)
        if oldest is None:
            return
        offset, self.first_sequence = oldest
        if offset > self.first_offset:
            self.first_offset = offset
            self.seeker.places.put(offset, self.first_sequence)
            self.seeker.places.forget_below(offset)
            self._cache.forget_below(self._line, offset)

    # What comes

    def stored(self, batch: Batch) -> None:
        """A batch was stored."""
        self.seeker.last = batch.sequence
        if self._stored_count % PLACE_EVERY == 0:
            self.seeker.places.put(batch.base, batch.sequence)
        self._stored_count += 1
        self.index.add(batch)

    def rebuild(self, offset: int, head: int, then: Wake) -> None:
        """At a start: reads again, for the index, what no summary covers. Who wants something by id waits for it."""
        self.index.settled = False

        async def bring() -> None:
            nonlocal offset  # where a next attempt goes on
            while offset < head:
                rows = await self.seeker.rows(offset)
                for row in rows:
                    if row.base < head:
                        self.index.recover(row)
                    offset = row.end
                if not rows:
                    break
            self.index.settle()

        self._fly([REBUILD], bring, then)

    def find_time(self, unix_time: float, callback: Callable[[int], None]) -> None:
        """Calls back with the offset of the first message that was published at this time or later."""

        async def find() -> None:
            offset = self._shard.stored

            async def bring() -> None:
                nonlocal offset
                offset = await self.seeker.at_time(unix_time)

            await self.persist(bring)
            callback(max(offset, self.first_offset))

        self.spawn(find())

    async def close(self) -> None:
        """Ends all flights; nobody is woken any more."""
        await end(self._tasks)
        await self.seeker.lanes.close()

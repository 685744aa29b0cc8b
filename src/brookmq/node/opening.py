"""Opens what a node keeps in its store: the journal, the sessions, the retained and delayed messages, the pipeline.

It is done once, when the store is there for the first time, and tried until it works. What is open then lives through
everything that the store goes through, with two exceptions. Another node that uses the same store has *deposed* this
one: two would give clients two truths, so this one lets go of everything and stays so until an operator decides; the
newer one is right, and nothing is ever seized back (`ownership`). And a table that the store refused for good takes no
changes any more. Both are said by `trouble`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from brookmq.base.config import Config
from brookmq.base.ending import end
from brookmq.node.ownership import SESSIONS, Ownership
from brookmq.store.errors import Deposed, StoreError, StoreFull
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.recovery import open_journal
from brookmq.store.journal.seeking import stream_name
from brookmq.store.link import Link
from brookmq.store.streams import look
from brookmq.store.table.log import TableLog
from brookmq.store.table.opening import open_table

log = logging.getLogger("brookmq.node")

RETAINED: Final = "retained"  # names of tables
PIPELINE: Final = "pipeline"
PAUSE_S_MIN: Final = 0.1  # before opening is tried again; doubled each time
PAUSE_S_MAX: Final = 4.0  # a store that is back is in use within 5 s
LOOK_S: Final = 1.0  # between two looks at how things are
MEASURE_LOOKS: Final = 10  # looks between two questions for the sizes of streams
FLUSH_S: Final = 3.0  # that a stop waits for the store to take what was handed over
FLUSH_LOOK_S: Final = 0.005

Thing = TypeVar("Thing")


class Opened(NamedTuple):
    """All that a node keeps."""

    journal: Journal
    sessions: TableLog
    retained: TableLog
    pipeline: TableLog


OnOpen = Callable[[Opened], Awaitable[None]]


class Opening:
    """``on_open`` is called once, with all of it; ``on_change`` whenever `trouble` may differ."""

    def __init__(
        self,
        config: Config,
        replicas: int,
        journal_link: Link,
        table_link: Link,
        on_open: OnOpen,
        on_change: Callable[[], None],
    ) -> None:
        self._config = config
        self._replicas = replicas
        self._journal_link = journal_link
        self._table_link = table_link
        self._ownership = Ownership(table_link, config.node.name)
        self._on_open = on_open
        self._on_change = on_change
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: str | None = "the store is being opened"  # None once all is open
        self._failed = ""  # for good
        self._deposed = False  # because of another node
        self._opened = False  # the broker has all of it
        self._letting_go: asyncio.Task[None] | None = None  # of all that is held
        self._hindered = ""  # why appends have waited since the look before
        self._hindrance = ""  # what the last look saw
        self.journal: Journal | None = None
        self.sessions: TableLog | None = None
        self.retained: TableLog | None = None
        self.pipeline: TableLog | None = None
        self.journal_bytes = 0  # on disk, when last asked

    @property
    def trouble(self) -> str:
        """Why what is kept cannot be used; empty while it can."""
        return self._failed or self._waiting or self._hindered

    @property
    def deposed(self) -> bool:
        """Whether another node has the store now."""
        return self._deposed

    def begin(self) -> None:
        self._spawn(self._open_all())

    async def close(self) -> None:
        """Store what was handed over, if the store takes it soon, and let go."""
        while left := [task for task in self._tasks if not task.done()]:  # one that ends may have begun another
            await end(left)
        await self._close_all(FLUSH_S if self._table_link.up and not self._failed else 0.0)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(_surface)
        self._tasks.append(task)

    # Opening

    async def _open_all(self) -> None:
        try:
            await self._open_sessions()
            # What is under way ends by itself: half of a journal that nobody has would stay open.
            outcomes = await asyncio.gather(
                self._open_journal(), self._open_retained(), self._open_pipeline(), return_exceptions=True
            )
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
        except Deposed as error:
            await self._depose(str(error))
        else:
            assert self.journal is not None
            assert self.sessions is not None
            assert self.retained is not None
            assert self.pipeline is not None
            await self._on_open(Opened(self.journal, self.sessions, self.retained, self.pipeline))
        self._opened = True
        if self._deposed:
            await self._close_all(0.0)
            return
        self._waiting = None
        self._on_change()
        self._spawn(self._watch())

    async def _open_sessions(self) -> None:
        """First of all: whoever has the sessions has the store."""
        self.sessions = await self._persist(lambda: self._open_table(SESSIONS))

    async def _open_retained(self) -> None:
        self.retained = await self._persist(lambda: self._open_table(RETAINED), as_owner=True)

    async def _open_pipeline(self) -> None:
        self.pipeline = await self._persist(lambda: self._open_table(PIPELINE), as_owner=True)

    @property
    def tables(self) -> list[TableLog]:
        """Those that are open."""
        return [table for table in (self.sessions, self.retained, self.pipeline) if table is not None]

    async def _persist(self, attempt: Callable[[], Awaitable[Thing]], *, as_owner: bool = False) -> Thing:
        """Tries until it works; what is in the way is told meanwhile. Another node that came later ends it.

        ``as_owner``: only while the sessions are this node's, since it would be taken from who has them now.
        """
        pause = PAUSE_S_MIN
        while True:
            try:
                if as_owner and (owner := await self._ownership.other()):
                    raise Deposed(owner)
                return await attempt()
            except Deposed:
                raise
            except StoreFull as error:
                self._tell(f"the store has no room for journal.max_bytes or on its disk: {error}")
            except StoreError as error:
                self._tell(str(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_S_MAX)

    def _tell(self, waiting: str) -> None:
        if waiting != self._waiting:
            self._waiting = waiting
            self._on_change()

    async def _open_journal(self) -> None:
        wanted = self._config.journal
        settings = JournalSettings(
            shards=wanted.shards,
            replicas=self._replicas,
            max_age_s=wanted.max_age,
            max_bytes=wanted.max_bytes,
            cache_bytes_max=wanted.cache_bytes_max,
            pending_bytes_max=wanted.waiting_bytes_max,
            capture=tuple(wanted.capture),
            label=self._ownership.label,
            entitled=self._entitled,
        )
        self.journal = await self._persist(lambda: open_journal(self._journal_link, settings), as_owner=True)

    async def _open_table(self, name: str) -> TableLog:
        table = await open_table(self._table_link, name, replicas=self._replicas, label=self._ownership.label)
        table.on_failed = self._table_failed
        return table

    # Watching

    async def _watch(self) -> None:
        assert self.journal is not None
        looks = 0
        while True:
            await self._ask_owner()
            if self._deposed:
                return
            before, self._hindrance = self._hindrance, self.journal.trouble
            hindered = self._hindrance if before else ""  # what passes within a second is nobody's concern
            if hindered != self._hindered:
                self._hindered = hindered
                self._on_change()
            if looks % MEASURE_LOOKS == 0:
                await self._measure()
            looks += 1
            await asyncio.sleep(LOOK_S)

    async def _measure(self) -> None:
        assert self.journal is not None
        try:
            names = [stream_name(shard.number) for shard in self.journal.shards]
            sizes = [(await look(self._journal_link, name)).bytes for name in names]
        except StoreError as error:
            log.debug("the size of the journal is not known: %s", error)
        else:
            self.journal_bytes = sum(sizes)

    # Another node

    async def _ask_owner(self) -> None:
        """So that a node without traffic notices it, too."""
        try:
            owner = await self._ownership.other()
        except StoreError:  # no answer is no news
            return
        if owner:
            await self._depose(owner)

    async def _entitled(self) -> bool:
        """A shard's log has another appender, or seems to: retention can take the record that would tell."""
        owner = await self._ownership.other()
        if owner:
            self._spawn(self._depose(owner))
        return not owner

    def _table_failed(self, error: StoreError) -> None:
        if isinstance(error, Deposed):
            self._spawn(self._lost_table(error))
        else:
            self._fail(f"the store has refused what it was given, restart the node: {error}")

    async def _lost_table(self, error: Deposed) -> None:
        await self._ask_owner()  # who can be named is named
        await self._depose(str(error))

    async def _depose(self, how: str) -> None:
        """Another node appends where this one did. It is not fought: the newer one is right."""
        if self._deposed:
            return
        self._deposed = True
        self._fail(f"another node has taken over this store: {how}; stop one of the two, and start this one again")
        if self._opened:
            await self._close_all(0.0)

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = reason
            log.error("%s", reason)
            self._on_change()

    # The end

    async def _close_all(self, flush_s: float) -> None:
        """Once, and to its end, whoever asks for it and is told to stop meanwhile."""
        if self._letting_go is None:
            self._letting_go = asyncio.create_task(self._let_go(flush_s))
        await asyncio.shield(self._letting_go)

    async def _let_go(self, flush_s: float) -> None:
        if self._deposed:
            for table in self.tables:
                table.fail(Deposed(self._failed))
        await asyncio.gather(self._close_journal(flush_s), *(table.close(flush_s) for table in self.tables))

    async def _close_journal(self, flush_s: float) -> None:
        if self.journal is None:
            return
        await self._flushed(self.journal, flush_s)
        await (self.journal.close() if flush_s else self.journal.abandon())

    async def _flushed(self, journal: Journal, seconds: float) -> None:
        """Until every shard has stored what it took; a publisher that got no answer sends again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        for shard in journal.shards:
            while shard.pending_bytes and loop.time() < deadline:  # noqa: ASYNC110 - shards know callers, not tasks
                await asyncio.sleep(FLUSH_LOOK_S)


def _surface(ended: asyncio.Future[None]) -> None:
    """A failure that nobody awaits is a bug, and told at once."""
    if not ended.cancelled() and (error := ended.exception()) is not None:
        loop = ended.get_loop()
        loop.call_exception_handler({"message": "what the node keeps could not be opened", "exception": error})

"""Opens what a node keeps in its store: the journal, the sessions, the retained and delayed messages.

It is done once, when the store is there for the first time, and tried until it works. What is open then lives through
everything that the store goes through, with two exceptions. Another node that uses the same store has *deposed* this
one: two would give clients two truths, so this one lets go of everything and stays so until an operator decides. And a
table that the store refused for good takes no changes any more. Both are said by `trouble`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from brookmq.base.config import Config
from brookmq.store.errors import Deposed, StoreError, StoreFull
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.recovery import open_journal
from brookmq.store.journal.seeking import stream_name
from brookmq.store.link import Link
from brookmq.store.log import ownership_subject
from brookmq.store.record import decode_ownership
from brookmq.store.streams import look
from brookmq.store.table.log import TableLog
from brookmq.store.table.opening import open_table

log = logging.getLogger("brookmq.node")

SESSIONS: Final = "sessions"  # names of tables
RETAINED: Final = "retained"
PAUSE_S_MIN: Final = 0.1  # before opening is tried again; doubled each time
PAUSE_S_MAX: Final = 4.0  # a store that is back is in use within 5 s
LOOK_S: Final = 1.0  # between two looks at how things are
MEASURE_LOOKS: Final = 10  # looks between two questions for the sizes of streams
FLUSH_S: Final = 3.0  # that a stop waits for the store to take what was handed over
FLUSH_LOOK_S: Final = 0.005

Thing = TypeVar("Thing")
OnOpen = Callable[[Journal, TableLog, TableLog], Awaitable[None]]


class Opening:
    """``on_open`` is called once with journal, sessions and retained; ``on_change`` whenever `trouble` may differ."""

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
        self._label = f"{config.node.name} {secrets.token_hex(8)}".encode()  # of this run: no two are alike
        self._on_open = on_open
        self._on_change = on_change
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: str | None = "the store is being opened"  # None once all is open
        self._failed = ""  # for good
        self._let_go = False  # nothing is held any more
        self._hindered = ""  # why appends have waited since the look before
        self._hindrance = ""  # what the last look saw
        self.journal: Journal | None = None
        self.sessions: TableLog | None = None
        self.retained: TableLog | None = None
        self.journal_bytes = 0  # on disk, when last asked

    @property
    def trouble(self) -> str:
        """Why what is kept cannot be used; empty while it can."""
        return self._failed or self._waiting or self._hindered

    def begin(self) -> None:
        self._spawn(self._open_all())

    async def close(self) -> None:
        """Store what was handed over, if the store takes it soon, and let go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._close_all(FLUSH_S if self._table_link.up and not self._failed else 0.0)

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(_surface)
        self._tasks.append(task)

    # Opening

    async def _open_all(self) -> None:
        await asyncio.gather(self._open_journal(), self._open_sessions(), self._open_retained())
        assert self.journal is not None
        assert self.sessions is not None
        assert self.retained is not None
        await self._on_open(self.journal, self.sessions, self.retained)
        self._waiting = None
        self._on_change()
        self._spawn(self._watch())

    async def _open_sessions(self) -> None:
        self.sessions = await self._persist(lambda: self._open_table(SESSIONS))

    async def _open_retained(self) -> None:
        self.retained = await self._persist(lambda: self._open_table(RETAINED))

    async def _persist(self, attempt: Callable[[], Awaitable[Thing]]) -> Thing:
        """Tries until it works; what is in the way is told meanwhile."""
        pause = PAUSE_S_MIN
        while True:
            try:
                return await attempt()
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
            label=self._label,
        )
        self.journal = await self._persist(lambda: open_journal(self._journal_link, settings))

    async def _open_table(self, name: str) -> TableLog:
        table = await open_table(self._table_link, name, replicas=self._replicas, label=self._label)
        table.on_failed = self._table_failed
        return table

    # Watching

    async def _watch(self) -> None:
        assert self.journal is not None
        looks = 0
        while True:
            for shard in self.journal.shards:
                if isinstance(shard.failed, Deposed):
                    await self._depose(str(shard.failed))
                    return
            if owner := await self._other_owner():
                await self._depose(f"it is {owner}'s now")
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

    def _table_failed(self, error: StoreError) -> None:
        if isinstance(error, Deposed):
            self._spawn(self._depose(str(error)))
        else:
            self._fail(f"the store has refused what it was given, restart the node: {error}")

    async def _other_owner(self) -> str:
        """Who owns the sessions instead of this node, so that a node without traffic notices it, too; empty: nobody."""
        query = {"last_by_subj": ownership_subject(SESSIONS)}
        try:
            answer = await self._table_link.api(f"STREAM.MSG.GET.{SESSIONS.upper()}", query)
            label = decode_ownership(b64decode(answer["message"]["data"]))[1]
        except StoreError:  # no answer, or the record was purged after its snapshots
            return ""
        return "" if label == self._label else label.decode("utf-8", "replace").partition(" ")[0]

    async def _depose(self, how: str) -> None:
        """Another node appends where this one did. It is not fought: the newer one is right."""
        if self._failed:
            return
        self._fail(f"another node has taken over this store: {how}; stop one of the two, and start this one again")
        await self._close_all(0.0)

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = reason
            log.error("%s", reason)
            self._on_change()

    # The end

    async def _close_all(self, flush_s: float) -> None:
        if self._let_go:
            return
        self._let_go = True
        tables = [table for table in (self.sessions, self.retained) if table is not None]
        await asyncio.gather(self._close_journal(flush_s), *(table.close(flush_s) for table in tables))

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

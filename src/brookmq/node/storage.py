"""What a node keeps, from the engine up: the connections to it, what is open in it, and what a node says about it.

The store may come and go while clients stay. So everything here is opened when the store is there the first time,
retried until it works, and lives through restarts of the store; what needs it waits by itself. Whoever asks gets one
answer, `trouble`: a sentence while the store cannot be used, nothing while it can. The alarm says the same.

Journal and tables have a connection each: a client that comes back and reads a large part of the journal must not make
the changes of other sessions wait behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from brookmq.base.alarms import Alarms
from brookmq.base.config import Config
from brookmq.node.engine import Engine
from brookmq.node.opening import OnOpen, Opening
from brookmq.node.replicas import ReplicaWatch
from brookmq.ops.pipeline_view import StoreAccess
from brookmq.ops.view import StoreInfo
from brookmq.store.diagnosis import Trouble
from brookmq.store.folder import DataFolder
from brookmq.store.journal.journal import Journal
from brookmq.store.link import Link

log = logging.getLogger("brookmq.node")

START_WAIT_S: Final = 1.25  # a node is ready within 2 s; without its store it opens its listeners after this time
STORE_DOWN: Final = "store_down"  # alarms
DISK_FULL: Final = "store_disk_full"
STREAM_DELETED: Final = "store_stream_deleted"


class Storage:
    """The store of one node. ``on_open`` gets all that is kept, once, when it is open;
    ``on_deposed`` is called once, when another node has taken them over."""

    def __init__(
        self,
        config: Config,
        folder: DataFolder | None,
        alarms: Alarms,
        on_open: OnOpen,
        on_deposed: Callable[[], None],
    ) -> None:
        self._config = config
        self._on_deposed: Callable[[], None] | None = on_deposed  # until it was called
        self._alarms = alarms
        self._on_open = on_open
        self._engine = Engine(config, folder, self._changed, self._deleted)
        self._links: list[Link] = []  # from the first time on that the store was ready
        self._opening: Opening | None = None  # likewise
        self._replicas: ReplicaWatch | None = None  # likewise, where there is more than one copy
        self._usable = asyncio.Event()  # set while there is no trouble
        self._wait_until = 0.0  # loop time
        self._watching = False  # the start is over: from now on trouble is worth an alarm
        self._told = ""  # the last trouble that was told

    @property
    def journal(self) -> Journal | None:
        return self._opening.journal if self._opening else None

    @property
    def deposed(self) -> bool:
        """Whether another node has what was kept here."""
        return self._opening is not None and self._opening.deposed

    @property
    def trouble(self) -> str:
        """Why the store cannot be used; empty while it can."""
        if not self._engine.ready:
            return self._engine.reason
        for link in self._links:
            if not link.up:
                return f"no connection to the store: {link.reason}"
        return self._opening.trouble if self._opening else "the store is being opened"

    def begin(self) -> None:
        """Start the store, beside what else has to start."""
        self._wait_until = asyncio.get_running_loop().time() + START_WAIT_S
        self._engine.begin()

    async def wait(self) -> None:
        """Until the store can be used, or has had its time: a node without its store starts as well."""
        await self._engine.wait(self._wait_until - asyncio.get_running_loop().time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._wait_until):
                await self._usable.wait()
        self._watching = True
        self._changed()

    async def stop(self) -> None:
        """Store what was handed over, close what uses the store, then end it."""
        self._watching = False
        if self._replicas is not None:
            await self._replicas.end()
        if self._opening is not None:
            await self._opening.close()
        for link in self._links:
            await link.close()
        await self._engine.stop()

    async def reader_access(self) -> StoreAccess:
        """For who reads the journal from the store; OperationError says why there is no way."""
        return await self._engine.reader_access()

    # How it is

    def info(self) -> StoreInfo:
        own = not self._config.store.servers
        return StoreInfo(tuple(self._engine.addresses), own, self.trouble, self._engine.restarts)

    def counters(self) -> Mapping[str, int]:
        shards = self.journal.shards if self.journal else []
        return {
            "store_restarts": self._engine.restarts,
            "journal_batches_appended": sum(shard.batches_appended for shard in shards),
            "journal_messages_appended": sum(shard.messages_appended for shard in shards),
            "journal_messages_given_up": sum(shard.messages_given_up for shard in shards),
            "journal_bytes_appended": sum(shard.bytes_appended for shard in shards),
            "journal_batches_read": self.journal.batches_read if self.journal else 0,
            "journal_batches_lost": self.journal.batches_lost if self.journal else 0,
            "journal_bytes_read": self.journal.bytes_read if self.journal else 0,
        }

    def gauges(self) -> Mapping[str, float]:
        tables = self._opening.tables if self._opening else []
        shards = self.journal.shards if self.journal else []
        return {
            "store_up": float(not self.trouble),
            "store_waiting_bytes": float(
                sum(shard.pending_bytes for shard in shards) + sum(table.waiting_bytes for table in tables)
            ),
            "journal_bytes": float(self._opening.journal_bytes if self._opening else 0),
        }

    # What changed

    def _changed(self) -> None:
        """The engine, a link or what is open has changed."""
        if self._engine.ready:
            self._connect()
        if self.deposed and self._on_deposed is not None:
            on_deposed, self._on_deposed = self._on_deposed, None
            on_deposed()
        if self.trouble:
            self._usable.clear()
        else:
            self._usable.set()
        if self._watching:
            self._tell()

    def _connect(self) -> None:
        if self._opening is not None:
            for link in self._links:
                link.point_to(self._engine.addresses)
            return
        name = self._config.node.name
        journal, tables = self._links = [
            Link(self._engine.link_settings(f"{name} {role}")) for role in ("journal", "tables")
        ]
        self._opening = Opening(self._config, self._engine.replicas, journal, tables, self._on_open, self._changed)
        for link in self._links:
            link.watch(lambda up, reason: self._changed())
            link.begin()
        self._opening.begin()
        if self._engine.replicas > 1:
            self._replicas = ReplicaWatch(tables, self._alarms)
            self._replicas.begin()

    def _tell(self) -> None:
        trouble = self.trouble
        if trouble == self._told:
            return
        self._told, now = trouble, time.time()
        diagnosis = self._engine.diagnosis
        if diagnosis is not None and diagnosis.trouble is Trouble.DISK_FULL:
            self._alarms.activate(DISK_FULL, {"reason": trouble}, f"nothing can be stored: {trouble}", now)
        else:
            self._alarms.deactivate(DISK_FULL, now)
        if trouble:
            self._alarms.activate(STORE_DOWN, {"reason": trouble}, f"the store cannot be used: {trouble}", now)
            log.warning("the store cannot be used: %s", trouble)
        else:
            self._alarms.deactivate(STORE_DOWN, now)
            log.info("the store can be used")

    def _deleted(self, line: str) -> None:
        """Never ends by itself: somebody has to look at what is gone."""
        self._alarms.activate(
            STREAM_DELETED, {"line": line}, "the store deletes a stream of its own accord", time.time()
        )

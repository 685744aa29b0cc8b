"""What a node keeps, from the engine up: the connection to it, and what a node says about it.

The store may come and go while clients stay. So everything here is opened when the store is there the first time,
retried until it works, and lives through restarts of the store; what needs it waits by itself. Whoever asks gets one
answer, `trouble`: a sentence while the store cannot be used, nothing while it can. The alarm says the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Final

from brookmq.base.alarms import Alarms
from brookmq.base.config import Config
from brookmq.node.engine import Engine
from brookmq.ops.view import StoreInfo
from brookmq.store.diagnosis import Trouble
from brookmq.store.folder import DataFolder
from brookmq.store.link import Link, LinkSettings

log = logging.getLogger("brookmq.node")

START_WAIT_S: Final = 1.25  # a node is ready within 2 s; without its store it opens its listeners after this time
STORE_DOWN: Final = "store_down"  # alarms
DISK_FULL: Final = "store_disk_full"
STREAM_DELETED: Final = "store_stream_deleted"


class Storage:
    """The store of one node."""

    def __init__(self, config: Config, folder: DataFolder | None, alarms: Alarms) -> None:
        self._config = config
        self._alarms = alarms
        self._engine = Engine(config, folder, self._changed, self._deleted)
        self._link: Link | None = None  # from the first time on that the store was ready
        self._usable = asyncio.Event()  # set while there is no trouble
        self._wait_until = 0.0  # loop time
        self._watching = False  # the start is over: from now on trouble is worth an alarm
        self._told = ""  # the last trouble that was told

    @property
    def trouble(self) -> str:
        """Why the store cannot be used; empty while it can."""
        if not self._engine.ready:
            return self._engine.reason
        if self._link is None or not self._link.up:
            return f"no connection to the store: {self._link.reason if self._link else 'not connected yet'}"
        return ""

    def begin(self) -> None:
        """Start the store, beside what else has to start."""
        self._wait_until = asyncio.get_running_loop().time() + START_WAIT_S
        self._engine.begin()

    async def wait(self) -> None:
        """Until the store can be used, or has had its time: a node without its store starts as well."""
        loop = asyncio.get_running_loop()
        await self._engine.wait(self._wait_until - loop.time())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._wait_until):
                await self._usable.wait()
        self._watching = True
        self._changed()

    async def stop(self) -> None:
        """Close what uses the store, then end it."""
        self._watching = False
        if self._link is not None:
            await self._link.close()
        await self._engine.stop()

    def info(self) -> StoreInfo:
        own = not self._config.store.servers
        return StoreInfo(tuple(self._engine.addresses), own, self.trouble, self._engine.restarts)

    def counters(self) -> Mapping[str, int]:
        return {"store_restarts": self._engine.restarts}

    def gauges(self) -> Mapping[str, float]:
        return {"store_up": float(not self.trouble)}

    def _changed(self) -> None:
        """The engine or the link has changed."""
        if self._engine.ready:
            self._connect()
        if self.trouble:
            self._usable.clear()
        else:
            self._usable.set()
        if self._watching:
            self._tell()

    def _connect(self) -> None:
        if self._link is None:
            user, password = self._engine.credentials or (None, None)
            engine = self._engine
            self._link = Link(LinkSettings(engine.addresses, self._config.node.name, user, password, engine.tls))
            self._link.watch(lambda up, reason: self._changed())
            self._link.begin()
        else:
            self._link.point_to(self._engine.addresses)

    def _deleted(self, line: str) -> None:
        """Never ends by itself: somebody has to look at what is gone."""
        self._alarms.activate(
            STREAM_DELETED, {"line": line}, "the store deletes a stream of its own accord", time.time()
        )

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

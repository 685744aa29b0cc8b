"""The age limit of the journal while there are readers: the node removes what is too old and was read by all of them.

Without readers the store does it by itself. It knows no readers, so as long as one is alive its own age limit is off
and the node purges; the limit by bytes stays the store's, and holds for everybody. Whether the limit is off is written
on the streams themselves, so that a start does not turn it on before it knows the readers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from brookmq.base.ending import end
from brookmq.node.readers import DeclaredReaders
from brookmq.store.errors import StoreError
from brookmq.store.journal.journal import Journal

log = logging.getLogger("brookmq.node")

LOOK_S: Final = 30.0  # between two looks
SOON_S: Final = 1.0  # after a reader has come, or the store did not answer


class Retention:
    def __init__(self, journal: Journal, readers: DeclaredReaders, max_age_s: float) -> None:
        self._journal = journal
        self._readers = readers
        self._max_age_s = max_age_s
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def look_soon(self) -> None:
        """A reader has come or gone."""
        self._changed.set()

    def end(self) -> None:
        """The journal is another node's now."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        if self._task is not None:
            await end([self._task])

    async def _run(self) -> None:
        while True:
            pause = LOOK_S
            try:
                if self._readers.loaded:
                    await self.look()
                else:
                    pause = SOON_S
            except StoreError as error:
                log.debug("the journal's retention waits: %s", error)
                pause = SOON_S
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()

    async def look(self) -> None:
        """One look: whose is the age limit, what is too old, who has lost something."""
        floors = [self._readers.floor(shard.number) for shard in self._journal.shards]
        held = any(floor is not None for floor in floors)
        await self._journal.hold_age(held, self._max_age_s)
        for shard, floor in enumerate(floors):
            if floor is not None:
                old = await self._journal.offset_at(shard, time.time() - self._max_age_s)
                await self._journal.remove_below(shard, min(old, floor))
        self._readers.watch()

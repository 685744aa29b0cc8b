"""Who may read the journal from the store without being the node: readers with passwords that do not live long.

A reader (a Spark job, say) asks the node for a password and fetches records from the store itself. The password lives
for an hour, and after half of it whoever asks gets another one: so nobody gets one that is about to end, and at most
two are valid at a time. Nothing is made before somebody asks, and nothing outlives a restart of the node.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from brookmq.base.ending import end
from brookmq.base.errors import OperationError
from brookmq.store.settings_file import PASSWORD_BYTES, Credentials

log = logging.getLogger("brookmq.store")

LIFETIME_S: Final = 3600.0
RETRY_S: Final = 5.0  # after an attempt to end a password that the store did not take

Admit = Callable[[Sequence[Credentials]], Awaitable[None]]


class Grant(NamedTuple):
    """A password for a reader, until a time (unix seconds)."""

    credentials: Credentials
    expires_at: float


class Readers:
    """``admit(readers)`` makes the store know exactly these, or raises ``OperationError``; ``clock`` is unix time."""

    def __init__(self, admit: Admit, clock: Callable[[], float], lifetime_s: float = LIFETIME_S) -> None:
        self._admit = admit
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._grants: list[Grant] = []  # what the store knows, the oldest first
        self._count = 0
        self._changing = asyncio.Lock()
        self._ending: asyncio.Task[None] | None = None  # while there are any

    async def grant(self) -> Grant:
        """A password that is good for at least half of a lifetime; OperationError when the store can't be told."""
        async with self._changing:
            now = self._clock()
            if self._grants and self._grants[-1].expires_at - now > self._lifetime_s / 2:
                return self._grants[-1]
            self._count += 1
            credentials = Credentials(f"reader-{self._count}", secrets.token_urlsafe(PASSWORD_BYTES))
            made = Grant(credentials, now + self._lifetime_s)
            await self._tell([*self._alive(now)[-1:], made])
            if self._ending is None:
                self._ending = asyncio.get_running_loop().create_task(self._end_in_time())
            return made

    async def close(self) -> None:
        """Nothing ends by itself any more."""
        task, self._ending = self._ending, None
        if task is not None:
            await end([task])

    async def _tell(self, grants: list[Grant]) -> None:
        await self._admit([grant.credentials for grant in grants])
        self._grants = grants

    def _alive(self, now: float) -> list[Grant]:
        return [grant for grant in self._grants if grant.expires_at > now]

    async def _end_in_time(self) -> None:
        while self._grants:
            await asyncio.sleep(max(self._grants[0].expires_at - self._clock(), 0.0))
            async with self._changing:
                alive = self._alive(self._clock())
                if len(alive) == len(self._grants):
                    continue
                try:
                    await self._tell(alive)
                except OperationError as error:
                    log.info("a reader's password has ended, and the store was not told: %s", error)
                    await asyncio.sleep(RETRY_S)
        self._ending = None

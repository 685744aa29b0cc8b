"""The log of a shard as a function with a callback: ``append(body, done)`` over an ``AppendLog``.

A shard has one batch under way and the index beside it one summary, so the log's own queue never fills. What the log
refuses at once is answered like what it refuses later: after ``append`` has returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from brookmq.store.errors import NotOwner, RecordTooLarge, StoreError
from brookmq.store.log import AppendLog
from brookmq.store.record import DATA

Done = Callable[[int | StoreError], None]


class LogAppender:
    """Appends to one log."""

    def __init__(self, log: AppendLog) -> None:
        self.log = log
        self._loop = asyncio.get_running_loop()

    def append(self, body: bytes, done: Done, kind: int = DATA, subject: str = "") -> None:
        """Appends a record; ``done`` gets its sequence, or why the log can't say that it is stored."""
        try:
            future = self.log.append(body, kind=kind, subject=subject)
        except StoreError as error:  # not owned, or a bound: nothing was taken
            self._loop.call_soon(done, error)
        except RecordTooLarge as error:
            self._loop.call_soon(done, StoreError(str(error)))
        else:
            future.add_done_callback(lambda answered: done(_outcome(answered, self.log.stream)))


def _outcome(answered: asyncio.Future[int], stream: str) -> int | StoreError:
    if answered.cancelled():
        return NotOwner(f"{stream}: nobody waits for the answer any more")
    error = answered.exception()
    if error is None:
        return answered.result()
    return error if isinstance(error, StoreError) else StoreError(f"{stream}: {error!r}")

"""A table over a real store: its two streams, and coroutines as functions with callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from brookmq.base.ending import end
from brookmq.store.errors import Ambiguous, StoreError
from brookmq.store.journal.log_appender import LogAppender
from brookmq.store.link import REQUEST_TIME_LIMIT_S, Link
from brookmq.store.log import AppendLog, ownership_subject
from brookmq.store.reader import Reader
from brookmq.store.record import DATA, HEADER_BYTES, decode_header
from brookmq.store.streams import Stream, declare, look, purge
from brookmq.store.table.asking import PAUSE_S, until_answered
from brookmq.store.table.digests import Walk
from brookmq.store.table.found import FoundTable
from brookmq.store.table.interface import META_PART
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.loading import Found
from brookmq.store.table.log import TableLog
from brookmq.store.table.parts import PartStore
from brookmq.store.table.snapshots import Ended

WINDOW_RECORDS: Final = 1024  # at the log's end: the last marker is among them


async def open_table(
    link: Link,
    name: str,
    *,
    replicas: int = 1,
    limits: TableLimits | None = None,
    label: bytes = b"",
    time_limit_s: float = REQUEST_TIME_LIMIT_S,
) -> TableLog:
    """Declares the streams ``NAME`` and ``NAME_PARTS``, seizes the log, reads its tail.

    The order counts: whoever owned the log before appends nothing once it is seized, so its end is known; and what it
    purged while the tail was read is in snapshots from before the fence, which is written after that.
    """
    stream = name.upper()
    await declare(link, Stream(name=stream, subjects=(name, ownership_subject(name)), replicas=replicas))
    log = AppendLog(link, stream, name, time_limit_s=time_limit_s)
    parts = PartStore(link, name, time_limit_s=time_limit_s)
    try:
        term = await log.seize(label)
        found = await _read_tail(link, stream, name, term, time_limit_s)
        found.snapshotted = await parts.open(term, replicas)
        if META_PART in found.snapshotted:
            found.meta = await parts.meta()
    except BaseException:
        await log.leave()
        await parts.close()
        raise
    shell = _Shell(link, log, parts)
    loop = asyncio.get_running_loop()
    table = TableLog(
        name, found, LogAppender(log).append, shell.get_parts, shell.put_part, shell.purge, loop.call_later, loop.time,
        limits, shell.end,
    )  # fmt: skip
    shell.failed = table.fail
    return table


async def _read_tail(link: Link, stream: str, name: str, term: int, time_limit_s: float) -> FoundTable:
    """What the log has; records that are gone are covered by snapshots."""
    reader = Reader(link, stream, time_limit_s=time_limit_s)
    state = await until_answered(link, lambda: look(link, stream))
    walk = Walk(state.first_sequence, term, WINDOW_RECORDS)
    for first, last in walk.ranges():
        while first <= last:
            try:
                async for sequence, record in reader.read(first, last, on_gap=_purged):
                    kind = decode_header(record, sequence).kind
                    walk.take(sequence, record[HEADER_BYTES:] if kind == DATA else None, f"{stream}, record {sequence}")
                    first = sequence + 1
                break
            except Ambiguous:
                await asyncio.sleep(PAUSE_S)
    found = FoundTable(name)
    for sequence, body in walk.records():
        found.take(sequence, body)
    return found


def _purged(first: int, last: int) -> None:
    """A gap in the tail is a purge, and snapshots cover it."""


class _Shell:
    """Runs what the table orders."""

    def __init__(self, link: Link, log: AppendLog, parts: PartStore) -> None:
        self._link = link
        self._log = log
        self._parts = parts
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self.failed: Callable[[StoreError], None] = lambda error: None

    def get_parts(self, parts: list[int], done: Callable[[Found], None]) -> None:
        self._spawn(self._get(parts, done))

    def put_part(self, part: int, covered: int, contents: list[bytes], done: Ended) -> None:
        self._spawn(self._put(part, covered, contents, done))

    def purge(self, before: int, done: Ended) -> None:
        self._spawn(self._purge(before, done))

    async def end(self) -> None:
        await end(self._tasks)
        await self._log.leave()
        await self._parts.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A bug must not leave the table waiting for an answer: it fails, and is reported."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed(StoreError(f"{self._log.stream}: {error!r}"))
            self._loop.call_exception_handler({"message": f"snapshots of {self._log.stream}", "exception": error})

    async def _get(self, parts: list[int], done: Callable[[Found], None]) -> None:
        found: Found
        try:
            found = await self._parts.get(parts)
        except StoreError as error:
            found = error
        done(found)

    async def _put(self, part: int, covered: int, contents: list[bytes], done: Ended) -> None:
        try:
            await self._parts.put(part, covered, contents)
        except StoreError as error:
            done(error)
        else:
            done(None)

    async def _purge(self, before: int, done: Ended) -> None:
        try:
            await until_answered(self._link, lambda: purge(self._link, self._log.stream, before))
        except StoreError as error:
            done(error)
        else:
            done(None)

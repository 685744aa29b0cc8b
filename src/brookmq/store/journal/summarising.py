"""Writes the summaries of a shard's index, one at a time, between its batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from brookmq.base import faults
from brookmq.store.errors import StoreError
from brookmq.store.journal.index import Draft, ShardIndex
from brookmq.store.journal.seeking import summaries_subject
from brookmq.store.journal.summary import SUMMARY

# At a close: with fewer batches than this to read again, the next start is quick without summaries, and a node that is
# often restarted does not fill its journal with them.
WORTH_BATCHES: Final = 64

Done = Callable[[int | StoreError], None]


class AppendKind(Protocol):
    """Appends a record of a kind under a subject; ``LogAppender.append``."""

    def __call__(self, body: bytes, done: Done, kind: int, subject: str, /) -> None: ...


class Summariser:
    """The summaries of one shard."""

    def __init__(self, shard: int, index: ShardIndex, append: AppendKind) -> None:
        self.written = 0
        self._shard = shard
        self._index = index
        self._append = append
        self._done: asyncio.Event | None = None  # somebody waits for the one that is under way
        self._failed = False

    def due(self) -> None:
        """Writes a summary if it is time."""
        self._write(self._index.draft())

    def _write(self, draft: Draft | None) -> bool:
        if draft is None:
            return False
        if faults.armed:
            faults.hit("journal.summary")
        self._append(
            draft.body,
            lambda answer: self._answered(draft, answer),
            SUMMARY,
            summaries_subject(self._shard, draft.part),
        )
        return True

    async def finish(self) -> None:
        """Writes all that are outstanding, so that the next start has nothing to read again."""
        if self._index.uncovered < WORTH_BATCHES:
            return
        while not self._failed:
            self._done = asyncio.Event()
            if not self._write(self._index.draft(at_once=True)) and not self._index.writing:
                return
            await self._done.wait()

    def _answered(self, draft: Draft, answer: int | StoreError) -> None:
        if isinstance(answer, StoreError):
            self._failed = True
            self._index.dropped()
        else:
            self._failed = False
            self.written += 1
            self._index.stored(draft)
        if self._done is not None:
            self._done.set()

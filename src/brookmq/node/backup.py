"""A node's data as one file: written while it serves, and read back into a node that nobody uses yet.

The file has sections: configuration, values (retained and delayed messages), what the pipeline keeps if there is
something (positions of queries, readers, rules and what belongs to them), sessions, and on demand the journal. The
journal comes last in an export, so that it has all that the sessions have still to get; in an import it comes before
the sessions, since they are fitted to the offsets that its messages get here. ``brookmq ctl`` sends it in that order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from brookmq import __version__
from brookmq.base.errors import OperationError
from brookmq.broker.durable_values import DurableValues
from brookmq.ops.view import ImportResult
from brookmq.store.backup import file_format as file
from brookmq.store.backup.exporting import export_journal, export_sessions, export_table
from brookmq.store.backup.file_format import BackupReader, BadBackup, Record, SectionWriter
from brookmq.store.backup.importing import JournalImport, import_sessions, import_table, room
from brookmq.store.backup.moving import Moves
from brookmq.store.journal.journal import Journal
from brookmq.store.pipeline_record import READER_KEY
from brookmq.store.table.interface import Table
from brookmq.store.table.states import KeyedStates

LOOK_S: Final = 0.005


class Sessions(Protocol):
    """What a backup asks of those who have the sessions in their hands."""

    def count(self) -> int:
        """Sessions, connected or kept."""

    async def end_all(self) -> None:
        """End them all; nobody's will is published."""

    def hold(self, refusing: bool) -> None:
        """Whether CONNECT is refused for now."""

    def put(self, key: bytes, state: bytes) -> None:
        """Take a session or a shared group in, away, and write it to the table."""

    async def stored(self) -> None:
        """Until all that was put, or ended, is stored."""

    def ends(self, epoch: int) -> Sequence[int]:
        """How far what was live in an epoch has come, in each shard."""


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a node keeps."""

    values: DurableValues
    sessions_table: Table
    sessions: Sessions
    journal: Journal | None
    pipeline: KeyedStates


class Backup:
    """``configuration`` is the node's, as TOML."""

    def __init__(self, node_name: str, configuration: str, kept: Kept) -> None:
        self._node_name = node_name
        self._configuration = configuration
        self._kept = kept
        self._importing = False

    # -- export

    async def export(self, *, journal: bool) -> AsyncIterator[bytes]:
        """The bytes of the file; OperationError before the first of them when there will be none."""
        if journal and self._kept.journal is None:
            raise OperationError("this node has no journal")
        return self._export(journal=journal)

    async def _export(self, *, journal: bool) -> AsyncIterator[bytes]:
        kept, now = self._kept, time.time()
        yield file.head(self._about(now, journal=journal))
        async for piece in _section(file.CONFIGURATION, _once([(b"", self._configuration.encode())])):
            yield piece
        async for piece in _section(file.VALUES, export_table(kept.values.table)):
            yield piece
        await _loaded(kept.pipeline)
        if pipeline := kept.pipeline.items(b""):
            async for piece in _section(file.PIPELINE, _once(pipeline)):
                yield piece
        sessions = export_sessions(kept.sessions_table, kept.sessions.ends, now)
        async for piece in _section(file.SESSIONS, sessions):
            yield piece
        if journal and kept.journal is not None:
            async for piece in _section(file.JOURNAL, export_journal(kept.journal)):
                yield piece
        yield file.end()

    def _about(self, now: float, *, journal: bool) -> dict[str, object]:
        shards = self._kept.journal.shards if self._kept.journal is not None else []
        return {
            "version": __version__,
            "node": self._node_name,
            "exported_at": now,
            "shards": len(shards),
            "journal": journal,
            "expected": {"values": self._kept.values.count(), "sessions": self._kept.sessions.count()},
        }

    # -- one client

    async def forget(self, client_id: str) -> bool:
        """Forget what no session has: messages that the client delayed. True when there was something."""
        values = self._kept.values
        removed = values.forget(client_id)
        await _stored(values)
        return removed > 0

    # -- import

    async def restore(self, pieces: AsyncIterator[bytes], *, replace: bool) -> ImportResult:
        """Take in a file. What was taken when it fails stays: the import can be repeated with ``replace``."""
        if self._importing:
            raise OperationError("another import is under way")
        sessions = self._kept.sessions
        if sessions.count() and not replace:
            raise OperationError(
                f"the node has {sessions.count()} sessions: import into a node without any, or let the import "
                "replace them (--replace)"
            )
        self._importing = True
        sessions.hold(True)
        try:
            if replace:
                await sessions.end_all()
                self._kept.values.clear()
                await room(self._kept.values.table)
                await _loaded(self._kept.pipeline)
                self._kept.pipeline.clear()
            return await _Import(self._kept, self._configuration).run(pieces)
        finally:
            sessions.hold(False)
            self._importing = False


class _Import:
    """One file on its way in."""

    def __init__(self, kept: Kept, configuration: str) -> None:
        self._kept = kept
        self._configuration = configuration
        self._same_configuration = True
        self._values = 0
        self._sessions = 0
        self._pipeline = 0
        self._left = 0
        self._with_journal = False
        self._journal = JournalImport(kept.journal) if kept.journal is not None else None
        self._moves: Moves | None = None

    async def run(self, pieces: AsyncIterator[bytes]) -> ImportResult:
        reader = BackupReader()
        async for piece in pieces:
            for event in reader.feed(piece):
                if isinstance(event, file.Head):
                    self._head(event.about)
                elif isinstance(event, file.Records):
                    await self._records(event.kind, event.records)
        reader.finish()
        await self._all_messages_moved()
        await _stored(self._kept.values)
        await _written(self._kept.pipeline)
        await self._kept.sessions.stored()
        return ImportResult(
            values=self._values,
            sessions=self._sessions,
            pipeline=self._pipeline,
            messages=self._journal.messages if self._journal is not None else 0,
            messages_left=self._left,
            same_configuration=self._same_configuration,
        )

    def _head(self, about: dict[str, object]) -> None:
        self._with_journal = bool(about.get("journal"))
        here = len(self._kept.journal.shards) if self._kept.journal is not None else 0
        if self._with_journal and about.get("shards") != here:
            raise BadBackup(
                f"the backup's journal has {about.get('shards')} shards and that of this node {here}: "
                f"start a node on an empty folder with journal.shards = {about.get('shards')}"
            )

    async def _records(self, kind: int, records: list[Record]) -> None:
        kept = self._kept
        if kind == file.CONFIGURATION:
            self._same_configuration &= all(text.decode() == self._configuration for _, text in records)
        elif kind == file.VALUES:
            self._values += await import_table(kept.values.table, records, kept.values.put)
        elif kind == file.PIPELINE:
            await _loaded(kept.pipeline)
            known = [record for record in records if not record[0].startswith(READER_KEY)]  # of another journal
            self._pipeline += await import_table(kept.pipeline.table, known, kept.pipeline.put)
        elif kind == file.JOURNAL:
            if self._journal is None or self._moves is not None:
                raise BadBackup("the journal of a backup has to come before its sessions")
            await self._journal.add(records)
        else:
            moves = await self._all_messages_moved()
            count, left = await import_sessions(kept.sessions_table, records, kept.sessions.put, moves)
            self._sessions += count
            self._left += left

    async def _all_messages_moved(self) -> Moves:
        if self._moves is None:
            self._moves = await self._journal.finish() if self._journal is not None else Moves([])
        return self._moves


async def _stored(values: DurableValues) -> None:
    stored = asyncio.get_running_loop().create_future()
    values.after(lambda: None if stored.done() else stored.set_result(None))
    await stored


async def _loaded(states: KeyedStates) -> None:
    loaded = asyncio.get_running_loop().create_future()
    states.when_loaded(lambda: None if loaded.done() else loaded.set_result(None))
    await loaded


async def _written(states: KeyedStates) -> None:
    while states.table.waiting_bytes:  # noqa: ASYNC110 - a table knows callers, not tasks
        await asyncio.sleep(LOOK_S)


async def _once(records: list[Record]) -> AsyncIterator[list[Record]]:
    yield records


async def _section(kind: int, source: AsyncIterator[list[Record]]) -> AsyncIterator[bytes]:
    writer = SectionWriter(kind)
    yield writer.begin()
    async for records in source:
        if piece := writer.put(records):
            yield piece
    yield writer.end()

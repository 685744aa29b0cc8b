"""From a backup into the store of a node that nobody uses meanwhile.

Messages of the journal are added like any others, and get new offsets: ``Moves`` says which. Then sessions follow, with
what they know of the journal translated. Values go as they are.

``Put`` is the owner of a table: it takes a state into its memory and writes it to the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from brookmq.base.errors import OperationError
from brookmq.store.backup.file_format import BadBackup, Record
from brookmq.store.backup.moving import Moves, moved_group, moved_session
from brookmq.store.journal.batch import decode_batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.journal import Journal
from brookmq.store.journal.shard import Shard
from brookmq.store.meta_record import decode_group, encode_group
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import GROUP_KEY, SESSION_KEY
from brookmq.store.table.interface import Table

Put = Callable[[bytes, bytes], None]  # key, state

SLICE = 200  # states that are put before others have their turn


async def import_table(table: Table, records: Iterable[Record], put: Put) -> int:
    """States as they are; how many."""
    count = 0
    for key, state in records:
        put(key, state)
        count += 1
        if count % SLICE == 0:
            await room(table)
    await room(table)
    return count


async def import_sessions(table: Table, records: Iterable[Record], put: Put, moves: Moves) -> tuple[int, int]:
    """Sessions and shared groups, fitted to this journal; how many sessions, and how many messages that had been sent
    and not acknowledged are left behind."""
    left = 0
    sessions = 0
    fitted: list[Record] = []
    for key, state in records:
        if key[:1] == SESSION_KEY:
            session, without = moved_session(decode_state(state), moves)
            fitted.append((key, encode_state(session)))
            sessions += 1
        elif key[:1] == GROUP_KEY:
            group, without = moved_group(decode_group(state), moves)
            fitted.append((key, encode_group(group)))
        else:
            raise BadBackup(f"the backup has a session under the key {key[:1]!r}, which is not known here")
        left += without
    await import_table(table, fitted, put)
    return sessions, left


async def room(table: Table) -> None:
    """Until the table takes more; at least a turn for everybody else."""
    await asyncio.sleep(0)
    if table.full:
        free = asyncio.get_running_loop().create_future()
        table.wait(lambda: None if free.done() else free.set_result(None))
        await free


class JournalImport:
    """Adds the messages of a backup, in their order, and learns where they are then."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.moves = Moves([shard.head for shard in journal.shards])
        self.messages = 0
        self._under_way = 0
        self._refused = 0
        self._settled: asyncio.Future[None] | None = None

    async def add(self, records: Iterable[Record]) -> None:
        """Some batches."""
        for key, body in records:
            number = int.from_bytes(key[:2], "big")
            if number >= len(self._journal.shards):
                raise BadBackup(f"the backup has a shard {number}, the journal here has {len(self._journal.shards)}")
            shard = self._journal.shards[number]
            batch = decode_batch(number, 0, body)
            for group in batch.groups:
                await self._room(shard)
                self._add(shard, group, batch.everything)
            self.messages += batch.count
            await asyncio.sleep(0)

    async def finish(self) -> Moves:
        """Everything is stored, or OperationError."""
        if self._under_way:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled
        if self._refused:
            raise OperationError(
                f"the store did not take {self._refused} groups of messages: the import is not complete"
            )
        return self.moves

    def _add(self, shard: Shard, group: Group, everything: bool) -> None:
        group.kept_publisher = False  # open packet ids come with the sessions
        before = shard.everything
        shard.everything = before or everything
        self._under_way += 1
        shard.add(group, _Arrival(self, shard.number, group))
        shard.everything = before

    async def _room(self, shard: Shard) -> None:
        if shard.full:
            free = asyncio.get_running_loop().create_future()
            shard.wait(lambda: None if free.done() else free.set_result(None))
            await free

    def arrived(self, shard: int, old: int, group: Group, reason: int) -> None:
        """The journal has it, or says why not."""
        self._under_way -= 1
        if reason:
            self._refused += 1
        else:
            self.moves.add(shard, old, group.first, group.count)
        if not self._under_way and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)


class _Arrival:
    """The ticket of one group."""

    __slots__ = ("_group", "_import", "_old", "_shard")

    def __init__(self, journal_import: JournalImport, shard: int, group: Group) -> None:
        self._import = journal_import
        self._shard = shard
        self._old = group.first
        self._group = group

    def settle(self, reason: int, /) -> None:
        self._import.arrived(self._shard, self._old, self._group, reason)

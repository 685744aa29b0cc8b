"""What of the store goes into a backup, in slices: a node that writes a backup goes on serving its clients.

Every session is as it was at one moment of the export. The journal is read last, so that it has every message that a
session of the backup has still to get.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from brookmq.store.backup.file_format import Record
from brookmq.store.backup.moving import detached, further
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.journal import Journal
from brookmq.store.meta_record import decode_group, encode_group
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import GROUP_KEY, SESSION_KEY, GroupState, is_will_key
from brookmq.store.table.interface import PARTS, Table

Ends = Callable[[int], Sequence[int]]  # epoch → how far what was live in it has come, in each shard


async def export_table(table: Table) -> AsyncIterator[list[Record]]:
    """The states of a table, part by part, in the order of their keys: the same data gives the same bytes."""
    for part in range(PARTS):
        if not table.loaded(part):
            loaded = asyncio.get_running_loop().create_future()
            table.load(part, lambda loaded=loaded: loaded.done() or loaded.set_result(None))  # type: ignore[misc]
            await loaded
        records = sorted(table.encode_part(part))
        if records:
            yield records
        await asyncio.sleep(0)  # the clients' turn


async def export_sessions(table: Table, ends: Ends, at: float) -> AsyncIterator[list[Record]]:
    """Kept sessions and shared groups, detached from their node. Wills of transient sessions stay: they belong to
    connections."""
    async for records in export_table(table):
        chosen: list[Record] = []
        for key, state in records:
            if is_will_key(key):
                continue
            if key[:1] == SESSION_KEY:
                session = decode_state(state)
                chosen.append((key, encode_state(detached(session, ends(session.live), at))))
            elif key[:1] == GROUP_KEY:
                group = decode_group(state)
                cursors = further(group.cursors, ends(group.live)) if group.live else group.cursors
                chosen.append((key, encode_group(GroupState(0, tuple(cursors), group.returned, group.taken))))
        if chosen:
            yield chosen


async def export_journal(journal: Journal) -> AsyncIterator[list[Record]]:
    """Every batch from the oldest that is there to what was stored when its shard's turn came."""
    for shard in range(len(journal.shards)):
        offset, end = journal.first_offset(shard), journal.shards[shard].stored
        while offset < end:
            found = journal.look(shard, offset, None)
            if found is None:
                await _loaded(journal, shard, offset)
            elif isinstance(found, Batch):
                yield [(shard.to_bytes(2, "big") + found.base.to_bytes(8, "big"), encode_batch(found))]
                offset = found.end
            else:
                offset = max(found, offset + 1)
            await asyncio.sleep(0)


async def _loaded(journal: Journal, shard: int, offset: int) -> None:
    loaded = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not loaded.done():
            loaded.set_result(None)

    journal.load(shard, offset, None, wake)
    await loaded

"""Journals over real servers for the tests of the reading side: opened, filled, read to the end and checked."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from brookmq.store.errors import StoreError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.recovery import open_journal
from brookmq.store.link import Link
from tests.store.journal.groups import run_group

QUICK = ShardLimits(linger_s=0.0)


def group(payload: bytes, filters: Iterable[int] = (), *, topic: bytes = b"t", at: float = 1.0) -> Group:
    """One message; a payload of eight bytes names it, see ``payloads``."""
    packed = b"".join(struct.pack(">I", one) for one in filters)
    return run_group(topic, 1, payload, published_at=at, filters=packed)


async def opened(link: Link, settings: JournalSettings, deadline_s: float = 20.0) -> Journal:
    """Opens, through the time in which a server that has just started does not answer yet."""
    async with asyncio.timeout(deadline_s):
        while True:
            try:
                return await open_journal(link, settings)
            except StoreError:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def journal_over(link: Link, settings: JournalSettings | None = None) -> AsyncIterator[Journal]:
    journal = await opened(link, settings or JournalSettings(shards=1, limits=QUICK))
    try:
        yield journal
    finally:
        await journal.close()


class Ticket:
    """Who waits for a group."""

    def __init__(self) -> None:
        self.settled: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def settle(self, reason: int) -> None:
        self.settled.set_result(reason)


async def append(journal: Journal, groups: Iterable[Group], shard: int = 0) -> int:
    """One batch; when this returns it is stored, or (not 0) not known to be."""
    ticket = Ticket()
    *others, last = groups
    for each in others:
        journal.shards[shard].add(each, None)
    journal.shards[shard].add(last, ticket)
    return await ticket.settled


async def looked(
    journal: Journal, shard: int, offset: int, wanted: frozenset[int] | None, deadline_s: float = 20.0
) -> Batch | int:
    """What ``look`` says once it can."""
    async with asyncio.timeout(deadline_s):
        while (found := journal.look(shard, offset, wanted)) is None:
            woken = asyncio.get_running_loop().create_future()
            journal.load(shard, offset, wanted, _once(woken))
            await woken
    return found


def _once(woken: asyncio.Future[None]) -> Callable[[], None]:
    def wake() -> None:
        woken.set_result(None)  # a second call would raise

    return wake


async def drained(journal: Journal, shard: int, offset: int, wanted: frozenset[int] | None = None) -> list[Batch]:
    """All batches from an offset to the head, as a reader goes through them."""
    batches: list[Batch] = []
    while True:
        found = await looked(journal, shard, offset, wanted)
        if isinstance(found, Batch):
            assert found.end > offset
            batches.append(found)
            offset = found.end
        elif found >= journal.shards[shard].stored:
            return batches
        else:
            assert found > offset
            offset = found


def payloads(batches: Iterable[Batch], wanted: frozenset[int] | None = None) -> list[bytes]:
    """The messages for some filter ids."""
    return [
        each.packets[-8:]
        for batch in batches
        for each in batch.groups
        if wanted is None or wanted.intersection(struct.unpack(f">{len(each.filters) // 4}I", each.filters))
    ]

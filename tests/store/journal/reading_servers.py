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

QUICK = ShardLimits(linger_s=0.0)


def packet(topic: bytes, payload: bytes, packet_id: int = 1) -> bytes:
    """A QoS 1 PUBLISH packet of MQTT 3.1.1."""
    body = struct.pack(">H", len(topic)) + topic + struct.pack(">H", packet_id) + payload
    size, length = len(body), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return b"\x32" + bytes(length) + body


def group(payload: bytes, filters: Iterable[int] = (), *, topic: bytes = b"t", at: float = 1.0) -> Group:
    ids = tuple(filters)
    return Group(
        packet(topic, payload), 1, 1, False, False, True, topic, "publisher", None, at, 0.0, False, False, b"",
        struct.pack(f">{len(ids)}I", *ids),
    )  # fmt: skip


class Settled:
    """A ticket that counts."""

    def __init__(self) -> None:
        self.reasons: list[int] = []

    def settle(self, reason: int) -> None:
        self.reasons.append(reason)


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


async def append(journal: Journal, shard: int, groups: Iterable[Group]) -> None:
    """One batch, stored when this returns."""
    done = asyncio.get_running_loop().create_future()

    class Ticket:
        def settle(self, reason: int) -> None:
            done.set_result(reason)

    listed = list(groups)
    for each in listed[:-1]:
        journal.shards[shard].add(each, None)
    journal.shards[shard].add(listed[-1], Ticket())
    assert await done == 0


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

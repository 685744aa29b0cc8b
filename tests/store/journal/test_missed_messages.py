"""A session that missed ten messages among very many others: found in under a second, by reading next to nothing."""

from __future__ import annotations

import asyncio
import random
import struct
import time
from itertools import chain

import pytest

from brookmq.store.journal.batch import Batch
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.link import Link
from brookmq.store.streams import look
from tests.store.journal.groups import run_group
from tests.store.journal.reading_servers import journal_over, looked
from tests.store.log_servers import linked, running, until

FILTERS = 100_000
MISSED = 10
MINE = 0xABCDEF01
SHARE_MAX = 0.01


async def room(journal: Journal, shard: int) -> None:
    """Waits like a publisher."""
    there = asyncio.get_running_loop().create_future()
    journal.shards[shard].wait(lambda: there.set_result(None))
    await there


async def fill(journal: Journal, count: int, payload_bytes: int) -> list[bytes]:
    """Messages that match random filters of many, and a few that match mine; returns those."""
    chance = random.Random(1)
    topics = [b"site/%d/device/%06d/state" % (number % 50, number) for number in range(FILTERS)]
    filters = [struct.pack(">I", chance.getrandbits(32)) for _ in range(FILTERS)]
    missed = set(chance.sample(range(count), MISSED))
    noise = chance.randbytes(1 << 20)
    for number in range(count):
        at = chance.randrange(FILTERS)
        start = chance.randrange(len(noise) - payload_bytes)
        payload = noise[start : start + payload_bytes] + b"%08d" % number
        topic, ids = (b"mine/%d" % number, struct.pack(">I", MINE)) if number in missed else (topics[at], filters[at])
        shard = journal.shard_of(topic)
        while journal.shards[shard].full:
            await room(journal, shard)
        journal.shards[shard].add(run_group(topic, 1, payload, filters=ids), None)
        if number % 500 == 0:
            await asyncio.sleep(0)
    await until(lambda: all(shard.pending_bytes == 0 for shard in journal.shards), "all stored")
    return [b"%08d" % number for number in sorted(missed)]


async def come_back(journal: Journal) -> list[bytes]:
    """What a session with one filter does that has seen nothing yet, over all shards at once."""
    wanted = frozenset([MINE])

    async def read(shard: int) -> list[bytes]:
        offset, found = 0, []
        while True:
            answer = await looked(journal, shard, offset, wanted)
            if isinstance(answer, Batch):
                found += [each.packets[-8:] for each in answer.groups if each.filters == struct.pack(">I", MINE)]
                offset = answer.end
            elif answer >= journal.shards[shard].stored:
                return found
            else:
                offset = answer

    return sorted(chain(*await asyncio.gather(*(read(shard) for shard in range(len(journal.shards))))))


async def measure(journal: Journal, link: Link, missed: list[bytes], when: str) -> None:
    total = 0
    for shard in range(len(journal.shards)):
        total += (await look(link, f"JOURNAL_{shard}")).bytes
    before, begun = journal.bytes_read, time.monotonic()
    assert await come_back(journal) == missed
    seconds, share = time.monotonic() - begun, (journal.bytes_read - before) / total
    print(f"{when}: {seconds:.3f} s, {journal.bytes_read - before} of {total} bytes, {share:.3%}")
    assert share < SHARE_MAX


async def missed_messages(count: int, payload_bytes: int, limits: ShardLimits) -> None:
    settings = JournalSettings(shards=4, limits=limits)
    with running(room="20GB") as servers:
        async with linked(servers) as link:
            async with journal_over(link, settings) as journal:
                begun = time.monotonic()
                missed = await fill(journal, count, payload_bytes)
                print(f"{count} messages in {time.monotonic() - begun:.1f} s")
                await measure(journal, link, missed, "in the node that stored them")
            async with journal_over(link, settings) as journal:
                await measure(journal, link, missed, "in a node that was restarted")


def test_ten_missed_messages_among_many_others() -> None:
    limits = ShardLimits(linger_s=0.0, batch_bytes=24 * 1024, batch_bytes_max=24 * 1024, recent_bytes_max=100_000)
    asyncio.run(missed_messages(150_000, 200, limits))


@pytest.mark.long
def test_ten_missed_messages_among_ten_million_others() -> None:
    asyncio.run(missed_messages(10_000_000, 16, ShardLimits()))

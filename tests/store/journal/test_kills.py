"""Readers and a writer while the store is killed again and again: everything is read, in order, nothing twice."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from brookmq.store.journal.batch import Batch
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.link import Link
from tests.store.journal.reading_servers import append, drained, group, journal_over, looked, payloads
from tests.store.log_servers import Servers, linked, run, running, until

SETTINGS = JournalSettings(shards=2, cache_bytes_max=1 << 20, limits=ShardLimits(linger_s=0.0, recent_bytes_max=10_000))
IDS = 50
SHARD_DEADLINE_S = 60.0


class Writer:
    """Appends numbered messages to one shard; each is for the id of its number."""

    def __init__(self, journal: Journal, shard: int) -> None:
        self.appended = 0
        self.stopping = False
        self._journal = journal
        self._shard = shard

    async def write(self) -> None:
        while not self.stopping:
            number = self.appended
            groups = [group(b"%08d" % one, [one % IDS]) for one in range(number, number + 3)]
            assert await append(self._journal, groups, self._shard) == 0
            self.appended += 3


async def follow(journal: Journal, shard: int, wanted: frozenset[int] | None, writer: Writer) -> list[bytes]:
    """A reader that starts at the beginning and follows until the writer has stopped and all is read."""
    seen: list[bytes] = []
    offset = 0
    while True:
        found = await looked(journal, shard, offset, wanted, SHARD_DEADLINE_S)
        if isinstance(found, Batch):
            seen += payloads([found], wanted)
            offset = found.end
        else:
            offset = found
            if offset >= journal.shards[shard].stored:
                if writer.stopping and journal.shards[shard].under_way is None:
                    return seen
                await asyncio.sleep(0.01)
        await asyncio.sleep(0)


async def killed_while_reading(servers: Servers, seed: int, kills: int) -> int:
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with linked(servers) as link:
        async with journal_over(link, SETTINGS) as journal:
            writers = [Writer(journal, shard) for shard in range(2)]
            writing = [asyncio.create_task(writer.write()) for writer in writers]
            sets: list[frozenset[int] | None] = [None, frozenset([3]), frozenset(range(0, IDS, 7))]
            reading = [
                (shard, wanted, asyncio.create_task(follow(journal, shard, wanted, writers[shard])))
                for shard in range(2)
                for wanted in sets
            ]
            for _ in range(kills):
                enough = sum(writer.appended for writer in writers) + chance.randrange(30, 600)
                await until(partial(reached, writers, enough), "appends")
                servers.kill()
                await asyncio.sleep(chance.choice([0.0, 0.05, 0.3]))
                servers.start()
            await until(lambda: link.up and journal.trouble == "", "all is well again")
            for writer in writers:
                writer.stopping = True
            await asyncio.gather(*writing)
            for shard, wanted, task in reading:
                assert await task == expected(writers[shard].appended, wanted)
        await read_again(link, [writer.appended for writer in writers])
        return sum(writer.appended for writer in writers)


async def read_again(link: Link, appended: list[int]) -> None:
    """What a new process finds."""
    async with journal_over(link, SETTINGS) as journal:
        for shard in range(2):
            for wanted in (None, frozenset([17])):
                assert payloads(await drained(journal, shard, 0, wanted), wanted) == expected(appended[shard], wanted)


def reached(writers: list[Writer], count: int) -> bool:
    return sum(writer.appended for writer in writers) > count


def expected(count: int, wanted: frozenset[int] | None) -> list[bytes]:
    return [b"%08d" % number for number in range(count) if wanted is None or number % IDS in wanted]


def test_readers_and_writer_through_kills_of_the_store() -> None:
    async def test(servers: Servers) -> None:
        assert await killed_while_reading(servers, seed=1, kills=6) > 500

    with running() as servers:
        run(test(servers))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 14))
def test_readers_and_writer_through_many_kills(seed: int) -> None:
    async def test(servers: Servers) -> None:
        await killed_while_reading(servers, seed, kills=25)

    with running() as servers:
        run(test(servers))


def test_a_reader_waits_through_an_outage_and_is_woken_once() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            for number in range(100):
                await append(journal, [group(b"%08d" % number, [number % IDS])])
            woken: list[int] = []
            servers.kill()
            await until(lambda: not link.up, "down")
            for reader in range(20):
                journal.load(0, 0, frozenset([2]) if reader % 2 else None, partial(woken.append, reader))
            await until(lambda: journal.trouble != "", "said")
            assert woken == []
            servers.start()
            await until(lambda: len(woken) >= 20, "woken")
            assert sorted(woken) == list(range(20))
            assert isinstance(journal.look(0, 0, None), Batch)
            await until(lambda: journal.trouble == "", "well")

    with running() as servers:
        run(test(servers))


def test_a_frozen_store_is_waited_for() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            for number in range(300):
                await append(journal, [group(b"%08d" % number, [number % IDS])])
            reading = asyncio.create_task(drained(journal, 0, 0))
            await asyncio.sleep(0)
            servers.freeze()
            try:
                await until(lambda: "within" in journal.trouble or "stale" in journal.trouble, "a time limit")
            finally:
                servers.thaw()
            assert payloads(await asyncio.wait_for(reading, 30)) == expected(300, None)

    with running() as servers:
        run(test(servers))


def test_three_servers_and_one_of_them_is_killed() -> None:
    async def test(servers: Servers) -> None:
        settings = JournalSettings(shards=1, replicas=3, limits=ShardLimits(linger_s=0.0, recent_bytes_max=0))
        async with linked(servers) as link, journal_over(link, settings) as journal:
            for number in range(120):
                assert await append(journal, [group(b"%08d" % number, [number % IDS])]) == 0
            servers.kill(1)
            assert payloads(await drained(journal, 0, 0)) == expected(120, None)
            for number in range(120, 150):
                assert await append(journal, [group(b"%08d" % number, [number % IDS])]) == 0
            servers.start(1)
            wanted = frozenset([7])
            assert payloads(await drained(journal, 0, 0, wanted), wanted) == expected(150, wanted)

    with running(3) as servers:
        run(test(servers))

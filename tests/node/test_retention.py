"""Readers hold back the age limit of the journal, and nothing else; what is lost to one is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from brookmq.base.alarms import Alarms
from brookmq.node import readers as readers_module
from brookmq.node.readers import DeclaredReaders
from brookmq.node.retention import Retention
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.link import Link
from brookmq.store.memory_table import MemoryTable
from brookmq.store.streams import look, purge
from brookmq.store.table.states import KeyedStates
from tests.store.journal.reading_servers import append, group, journal_over
from tests.store.log_servers import Servers, linked, running
from tests.store.log_servers import run as run_test

MAX_AGE_S = 3600.0
SETTINGS = JournalSettings(shards=2, max_age_s=MAX_AGE_S, limits=ShardLimits(linger_s=0.0))
WAIT_S = 1000.0


class World:
    """A journal with batches of one message each, half of them older than the age limit, and readers."""

    def __init__(self, link: Link, journal: Journal, table: MemoryTable | None = None) -> None:
        self.link = link
        self.journal = journal
        self.alarms = Alarms()
        call_soon = asyncio.get_running_loop().call_soon
        self.table = table or MemoryTable(call_soon)
        self.states = KeyedStates(self.table, call_soon)
        self.states.begin()
        self.readers = DeclaredReaders(self.states, journal, self.alarms, WAIT_S)
        self.retention = Retention(journal, self.readers, MAX_AGE_S)

    async def fill(self) -> None:
        now = time.time()
        for shard in range(2):
            for number in range(20):
                at = now - 2 * MAX_AGE_S + number if number < 10 else now
                await append(self.journal, [group(b"%08d" % number, at=at)], shard)

    async def put(self, name: str, *position: int, lost: int | None = 0) -> None:
        stored = asyncio.get_running_loop().create_future()
        self.readers.put(name, dict(enumerate(position)), ["a/#"], lost, lambda: stored.set_result(None))
        await stored

    async def known(self) -> None:
        async with asyncio.timeout(10):
            while not self.readers.loaded:  # noqa: ASYNC110 - a table knows callers, not tasks
                await asyncio.sleep(0)

    async def ages(self) -> list[float | None]:
        return [(await look(self.link, f"JOURNAL_{shard}")).max_age_s for shard in range(2)]

    def firsts(self) -> list[int]:
        return [self.journal.first_offset(shard) for shard in range(2)]


@asynccontextmanager
async def world(servers: Servers) -> AsyncIterator[World]:
    async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
        made = World(link, journal)
        await made.fill()
        yield made


def test_what_a_reader_has_not_read_stays_until_it_has() -> None:
    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            await made.retention.look()
            assert await made.ages() == [MAX_AGE_S, MAX_AGE_S], "nobody reads: the store removes what is old"
            await made.put("query", 4, 15)
            await made.put("other", 6, 20)
            await made.retention.look()
            assert await made.ages() == [None, None], "from now on the node does"
            assert made.firsts() == [4, 10], "not read, not too old"
            await made.put("query", 20, 20)
            await made.retention.look()
            assert made.firsts() == [6, 10]
            stored = asyncio.get_running_loop().create_future()
            assert made.readers.drop("other", lambda: stored.set_result(None))
            await stored
            assert not made.readers.drop("other", lambda: None)
            await made.retention.look()
            assert made.firsts() == [10, 10]
            assert made.readers.drop("query", lambda: None)
            await made.retention.look()
            assert await made.ages() == [MAX_AGE_S, MAX_AGE_S]

    with running() as servers:
        run_test(test(servers))


def test_a_start_leaves_the_limit_off_until_it_knows_the_readers() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, SETTINGS) as journal:
                made = World(link, journal)
                await made.fill()
                await made.put("query", 4, 15)
                await made.retention.look()
                table = made.table.reopened()
            async with journal_over(link, SETTINGS) as journal:
                again = World(link, journal, table)
                assert await again.ages() == [None, None]
                await again.known()
                await again.retention.look()
                assert again.firsts() == [4, 10]
                (reader,) = again.readers.all()
                assert (reader.name, reader.position, reader.lag) == ("query", {"0": 4, "1": 15}, 21)

    with running() as servers:
        run_test(test(servers))


def test_a_silent_reader_holds_back_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            await made.put("query", 4, 15)
            now = time.time()
            with monkeypatch.context() as patched:
                patched.setattr(readers_module.time, "time", lambda: now + WAIT_S + 1)
                assert [reader.alive for reader in made.readers.all()] == [False]
                assert made.readers.floor(0) is None
                await made.retention.look()
                assert await made.ages() == [MAX_AGE_S, MAX_AGE_S]
            assert made.readers.floor(0) == 4

    with running() as servers:
        run_test(test(servers))


def test_what_is_lost_to_a_reader_is_an_alarm_until_it_has_gone_on() -> None:
    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            await made.put("query", 4, 15, lost=2)
            (run,) = (await made.journal.plan(0, 9, 10, [])).runs
            await purge(made.link, "JOURNAL_0", run.first)  # the limit by bytes, say
            await made.journal.remove_below(0, 5)
            await made.retention.look()
            assert made.firsts()[0] == 9
            (alarm,) = made.alarms.active()
            assert alarm.name == "journal_reader_lost/query"
            assert "5 journal messages" in alarm.message
            (reader,) = made.readers.all()
            assert (reader.lost, reader.lag) == (7, 21)
            await made.put("query", 12, 15, lost=7)
            assert made.alarms.active() == []

    with running() as servers:
        run_test(test(servers))


def test_what_a_reader_tells_of_its_losses_is_counted_once() -> None:
    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            await made.put("query", 4, 15, lost=2)
            (run,) = (await made.journal.plan(0, 9, 10, [])).runs
            await purge(made.link, "JOURNAL_0", run.first)
            await made.journal.remove_below(0, 5)
            assert [reader.lost for reader in made.readers.all()] == [7], "4 to 8 are gone, and the reader comes there"
            for ranges, lost in (({0: [(4, 6)]}, 7), ({0: [(4, 9)]}, 7), ({0: [(4, 9)], 1: [(15, 16)]}, 8)):
                stored = asyncio.get_running_loop().create_future()
                made.readers.lose("query", ranges, lambda stored=stored: stored.set_result(None))
                await stored
                assert [reader.lost for reader in made.readers.all()] == [lost]
            await made.put("query", 12, 16, lost=None)
            assert [reader.lost for reader in made.readers.all()] == [8]
            with pytest.raises(LookupError, match="no shard 2"):
                made.readers.lose("query", {2: [(0, 1)]}, lambda: None)
            again = World(made.link, made.journal, made.table.reopened())
            await again.known()
            assert [reader.lost for reader in again.readers.all()] == [8]

    with running() as servers:
        run_test(test(servers))


def test_a_reader_of_another_journal_holds_back_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            with pytest.raises(LookupError, match="no shard 2"):
                await made.put("query", 0, 0, 0)
            assert made.readers.all() == []
            await made.put("query", 4)
            (reader,) = made.readers.all()
            assert reader.position == {"0": 4, "1": 0}, "of a shard that it does not name it has read nothing"
            table = made.table.reopened()
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            object.__setattr__(journal.identity, "name", "another")
            again = World(link, journal, table)
            await again.known()
            (reader,) = again.readers.all()
            assert (reader.alive, reader.lag, reader.lost) == (False, 0, 0)
            assert again.readers.floor(0) is None

    with running() as servers:
        run_test(test(servers))


def test_readers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers_module, "READERS_MAX", 2)

    async def test(servers: Servers) -> None:
        async with world(servers) as made:
            for name in ("a", "b", "a"):
                await made.put(name, 1)
            with pytest.raises(readers_module.OperationError, match="drop one"):
                await made.put("c", 1)

    with running() as servers:
        run_test(test(servers))

"""A table over real servers: what is done is there at the next start, through kills of the store and fights over it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from brookmq.store.errors import Deposed, StoreError
from brookmq.store.link import Link
from brookmq.store.streams import look, subjects
from brookmq.store.table.interface import META_KEY, part_of
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.log import TableLog
from brookmq.store.table.opening import open_table
from tests.store.log_servers import Servers, linked, run, running, until
from tests.store.table.owners import Owner

SMALL = TableLimits(
    record_bytes_max=8_000,
    piece_bytes_max=10_000,
    waiting_bytes_max=30_000,
    tail_bytes=20_000,
    tail_records=200,
    tail_bytes_max=60_000,
    chunk_bytes_max=1_000,
)


async def loaded(link: Link, limits: TableLimits | None = None, name: str = "things") -> Owner:
    """The table as a new process finds it, all of it loaded."""
    table = await open_table(link, name, limits=limits)
    owner = Owner(table)
    table.begin_loading()
    await until(lambda: table.all_loaded, "all is loaded")
    return owner


async def stored(table: TableLog) -> None:
    await until(lambda: table.waiting_bytes == 0 or table.failed is not None, "all is stored")
    assert table.failed is None


def test_a_new_table_is_loaded_and_what_is_done_is_there_at_the_next_start() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            table = await open_table(link, "things")
            assert table.all_loaded
            assert table.meta_state() == (b"", [])
            owner = Owner(table)
            for number in range(1_000):
                owner.change(b"k%d" % number, b"v%d" % number)
            owner.change(b"k7", b"")
            owner.change(META_KEY, b"epoch 1")
            assert owner.done == []
            await stored(table)
            assert [key for key, _ in owner.done[:1_000]] == [b"k%d" % number for number in range(1_000)]
            await table.close()

            table = await open_table(link, "things")
            assert table.meta_state() == (b"", [b"epoch 1"])
            assert not table.loaded(part_of(b"k1"))
            heir = Owner(table)
            woken = asyncio.Event()
            table.load(part_of(b"k1"), woken.set)
            await asyncio.wait_for(woken.wait(), 5)
            assert heir.states[b"k1"] == b"v1"
            assert len(heir.parts) == 1
            table.begin_loading()
            await until(lambda: table.all_loaded, "all is loaded")
            assert heir.states == owner.states
            assert b"k7" not in heir.states
            await table.close()

    with running() as servers:
        run(test(servers))


def test_snapshots_keep_the_log_short_and_lose_nothing() -> None:
    async def test(servers: Servers) -> None:
        chance = random.Random(5)
        print("seed 5")
        async with linked(servers) as link:
            owner = Owner(await open_table(link, "things", limits=SMALL))
            longest = 0
            for _ in range(2):
                table = owner.table
                assert isinstance(table, TableLog)
                for _ in range(60):
                    for _ in range(chance.randrange(20)):
                        owner.change(b"k%d" % chance.randrange(300), chance.randbytes(chance.choice([0, 10, 3_000])))
                    owner.change(META_KEY, b"%d" % chance.randrange(1_000))
                    if table.full:
                        room = asyncio.Event()
                        table.wait(room.set)
                        await asyncio.wait_for(room.wait(), 20)
                    await asyncio.sleep(0)
                    longest = max(longest, table.tail.bytes)
                    table.check_invariants()
                await stored(table)
                await until(lambda table=table: not table.tail.long, "snapshots have made it short")
                assert table.snapshots.written > 50
                state = await look(link, "THINGS")
                assert state.bytes < 1.2 * SMALL.tail_bytes
                assert state.first_sequence > 1
                await table.close()
                heir = await loaded(link, SMALL)
                assert heir.states == owner.states
                owner = heir
            print(f"longest tail {longest}")
            assert longest < SMALL.tail_bytes_max + SMALL.waiting_bytes_max + 60_000  # a turn's changes
            # Chunks of snapshots that were replaced are gone: what is there belongs to a head.
            found, _ = await subjects(link, "THINGS_PARTS", "things_parts.>")
            identities = {tuple(subject.split(".")[1:3]) for subject in found if subject.count(".") == 3}
            assert len(identities) == len({part for part, _ in identities})
            await owner.table.close()

    with running() as servers:
        run(test(servers))


def test_large_keys_states_and_changes() -> None:
    async def test(servers: Servers) -> None:
        chance = random.Random(6)
        async with linked(servers) as link:
            limits = TableLimits(tail_records=4)
            table = await open_table(link, "things", limits=limits)
            owner = Owner(table)
            owner.change(b"c" + b"x" * 65_535, b"a long client id")
            owner.change(b"large", chance.randbytes(20_000_000))
            owner.change(b"", b"m" * 9_000_000)
            await stored(table)
            for number in range(20):
                owner.change(b"small", b"%d" % number)
                await stored(table)
            await until(lambda: table.snapshots.written >= 4, "snapshots")
            await table.close()
            heir = await loaded(link, limits)
            assert heir.states == owner.states
            await heir.table.close()

    with running() as servers:
        run(test(servers))


def test_through_kills_of_the_store() -> None:
    async def test(servers: Servers) -> None:
        chance = random.Random(7)
        print("seed 7")
        async with linked(servers) as link:
            owner = Owner(await open_table(link, "things", limits=SMALL))
            table = owner.table
            assert isinstance(table, TableLog)
            for _ in range(6):
                for _ in range(chance.randrange(20, 150)):
                    owner.change(b"k%d" % chance.randrange(100), chance.randbytes(300))
                    await asyncio.sleep(chance.random() * 0.001)
                servers.kill()
                owner.change(b"k%d" % chance.randrange(100), b"while it is down")
                servers.start()
            taken = table.commit.taken
            await stored(table)
            assert len(owner.done) == taken
            assert table.snapshots.written > 10
            await table.close()
            servers.kill()
            await until(lambda: not link.up, "it is known to be down")
            servers.start()
            await until(lambda: link.up, "it is back")
            heir = await loaded(link, SMALL)
            assert heir.states == owner.states
            await heir.table.close()

    with running() as servers:
        run(test(servers))


def test_who_was_deposed_changes_nothing_more_and_says_so() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            old = await open_table(link, "things")
            owner = Owner(old)
            owner.change(b"a", b"1")
            await stored(old)
            heir = await loaded(link)
            told: list[StoreError] = []
            old.on_failed = told.append
            owner.change(b"a", b"2")
            await until(lambda: bool(told), "it learns that it is deposed")
            assert isinstance(old.failed, Deposed)
            assert old.full
            assert heir.states == {b"a": b"1"}
            heir.change(b"a", b"3")
            await until(lambda: heir.table.waiting_bytes == 0, "stored")
            await old.close()
            await heir.table.close()
            assert (await loaded(link)).states == {b"a": b"3"}

    with running() as servers:
        run(test(servers))


def test_an_older_snapshot_is_not_put_over_a_newer_one() -> None:
    """The old owner encodes, is deposed, and only then writes: refused where the new one has written, harmless else."""

    async def test(servers: Servers) -> None:
        limits = replace(SMALL, tail_records=0)  # every change is followed by a snapshot
        async with linked(servers) as link:
            old = await open_table(link, "things")
            owner = Owner(old)
            owner.change(b"a", b"1")
            await stored(old)
            heir = await loaded(link, limits)
            heir.change(b"a", b"2")
            heir.change(b"b", b"2")
            table = heir.table
            assert isinstance(table, TableLog)
            await until(lambda: table.snapshots.written >= 2 and not table.tail.dirty, "its snapshots")
            late = old.snapshots
            covered = old.tail.begin(part_of(b"a"))
            outcome: list[StoreError | None] = []
            late._put_part(part_of(b"a"), covered, [b"an older state"], outcome.append)
            await until(lambda: bool(outcome), "an answer")
            assert isinstance(outcome[0], Deposed)
            late._put_part(part_of(b"c"), covered, [b""], outcome.append)
            await until(lambda: len(outcome) == 2, "an answer")
            assert outcome[1] is None, "nobody has written that part"
            heir.change(b"c", b"2")
            await until(lambda: table.waiting_bytes == 0, "stored")
            await until(lambda: not table.tail.dirty, "its snapshot, although a head was in its place")
            await old.close()
            await table.close()
            assert (await loaded(link)).states == {b"a": b"2", b"b": b"2", b"c": b"2"}

    with running() as servers:
        run(test(servers))


@pytest.mark.long
def test_three_servers_of_which_one_is_killed() -> None:
    async def test(servers: Servers) -> None:
        chance = random.Random(8)
        print("seed 8")
        async with linked(servers) as link:
            table = await opened_when_ready(link, 3)
            owner = Owner(table)
            for round_number in range(3):
                for _ in range(300):
                    owner.change(b"k%d" % chance.randrange(100), chance.randbytes(300))
                    await asyncio.sleep(0)
                servers.kill(round_number)
                servers.start(round_number)
                await stored(table)
                await table.close()
                table = await opened_when_ready(link, 3)
                heir = Owner(table)
                table.begin_loading()
                await until(lambda table=table: table.all_loaded, "all is loaded")
                assert heir.states == owner.states
                owner = heir
            assert (await look(link, "THINGS_PARTS")).records > 10
            await table.close()

    async def opened_when_ready(link: Link, replicas: int) -> TableLog:
        async with asyncio.timeout(60):
            while True:
                try:
                    return await open_table(link, "things", replicas=replicas, limits=SMALL)
                except StoreError:
                    await asyncio.sleep(0.2)

    with running(3) as servers:
        run(test(servers))

"""A table of many keys: its start does not depend on their number, and loading them is in nobody's way."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

import pytest

from brookmq.store.link import Link
from brookmq.store.streams import look
from brookmq.store.table.interface import PARTS, part_of
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.loading import READ_PARTS_MAX
from brookmq.store.table.log import TableLog
from brookmq.store.table.opening import open_table
from tests.store.log_servers import Servers, linked, run, running, until
from tests.store.table.owners import Owner

STATE_BYTES = 200
DEADLINE_S = 600.0
READ_MAX = 3 * PARTS
AHEAD_MAX = 2 * READ_PARTS_MAX  # what was being read when it was asked for, and what came with it


def key_of(number: int) -> bytes:
    return b"cclient-%09d" % number


class Slices:
    """How much processor time a function takes at a time; the machine is shared, so that clocks would tell less."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.times: list[float] = []
        self._function = function

    def __call__(self) -> None:
        began = time.thread_time()
        self._function()
        self.times.append(time.thread_time() - began)


async def change_all(owner: Owner, numbers: list[int], chance: random.Random) -> float:
    """One change each, as fast as the table takes them; returns the seconds."""
    table = owner.table
    began = time.monotonic()
    for count, number in enumerate(numbers):
        owner.assign(key := key_of(number), value := chance.randbytes(STATE_BYTES))
        table.change(key, value)
        if table.full:
            room = asyncio.Event()
            table.wait(room.set)
            await room.wait()
        elif count % 200 == 0:
            await asyncio.sleep(0)
    await until(lambda: table.waiting_bytes == 0, "all is stored", DEADLINE_S)
    return time.monotonic() - began


async def written(link: Link, table: TableLog) -> int:
    """Bytes that the store was given, changes and snapshots together."""
    state = await look(link, f"{table.name.upper()}_PARTS")
    assert state.records
    return table.commit.bytes_appended + table.snapshots.bytes_written


async def fill(servers: Servers, count: int, changes: int, limits: TableLimits) -> dict[bytes, bytes]:
    chance = random.Random(1)
    async with linked(servers) as link:
        table = await open_table(link, "sessions", limits=limits)
        owner = Owner(table)
        seconds = await change_all(owner, list(range(count)), chance)
        own = count * (STATE_BYTES + len(key_of(0)))
        print(
            f"{count} keys stored in {seconds:.1f} s, {await written(link, table) / own:.1f} times their bytes written"
        )
        before = await written(link, table)
        seconds = await change_all(owner, [chance.randrange(count) for _ in range(changes)], chance)
        own = changes * (STATE_BYTES + len(key_of(0)))
        amplified = (await written(link, table) - before) / own
        rate = changes / seconds
        print(f"{changes} changes in {seconds:.1f} s, {rate:,.0f}/s; {amplified:.1f} times their bytes written")
        state = await look(link, "SESSIONS")
        print(f"tail: {state.bytes / 1e6:.1f} MB in {state.records} records; {table.snapshots.written} snapshots")
        assert state.bytes < 1.3 * limits.tail_bytes_max
        await table.close()
        return owner.states


async def start(servers: Servers, states: dict[bytes, bytes], limits: TableLimits) -> None:
    chance = random.Random(2)
    keys = list(states)
    async with linked(servers) as link:
        began, began_cpu, before = time.monotonic(), time.process_time(), received(link)
        table = await open_table(link, "sessions", limits=limits)
        took, took_cpu, read = time.monotonic() - began, time.process_time() - began_cpu, received(link) - before
        owner = Owner(table)
        print(f"open in {took:.3f} s ({took_cpu:.3f} s of processor), {read} messages of the store")
        assert owner.states == {}
        assert read < READ_MAX, "it does not read what there is"
        slices = Slices(table.loading._slice)
        table.loading._slice = slices  # type: ignore[method-assign]
        began = time.monotonic()
        table.begin_loading()
        waits: list[float] = []
        ahead: list[int] = []
        while not table.all_loaded and len(waits) < 200:
            part = part_of(chance.choice(keys))
            if table.loaded(part):
                await asyncio.sleep(0.001)
                continue
            woken = asyncio.Event()
            asked, unloaded = time.monotonic(), len(table.loading._unloaded)
            table.load(part, woken.set)
            await woken.wait()
            waits.append(time.monotonic() - asked)
            ahead.append(unloaded - len(table.loading._unloaded))
            await asyncio.sleep(0.002)
        await until(lambda: table.all_loaded, "all is loaded", DEADLINE_S)
        took = time.monotonic() - began
        waits.sort()
        print(
            f"{len(keys)} keys loaded in {took:.2f} s, {len(slices.times)} slices of at most {max(slices.times):.4f} s"
        )
        print(f"a part on demand in {waits[len(waits) // 2]:.4f} s, at most {waits[-1]:.4f} s")
        assert owner.states == states
        assert max(ahead) <= AHEAD_MAX, "who waits for a part does not wait for all of them"
        assert len(slices.times) >= PARTS // READ_PARTS_MAX, "others have their turns in between"
        await table.close()


def through(count: int, changes: int, limits: TableLimits) -> None:
    async def test(servers: Servers) -> None:
        states = await fill(servers, count, changes, limits)
        await start(servers, states, limits)

    async def bounded(servers: Servers) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await test(servers)

    with running(room="20GB") as servers:
        asyncio.run(bounded(servers))


def received(link: Link) -> int:
    """Messages that the store has sent, so far."""
    assert link._client is not None
    return int(link._client.stats["in_msgs"])


async def trickle(servers: Servers, changes: int) -> None:
    """Changes that come one by one, a record each."""
    limits = TableLimits(linger_s=0.0)
    async with linked(servers) as link:
        table = await open_table(link, "sessions", limits=limits)
        owner = Owner(table)
        for number in range(changes):
            done = asyncio.Event()
            owner.assign(key := key_of(number % 500), b"%d" % number)
            table.change(key, b"%d" % number, done.set)
            await done.wait()
        assert table.commit.records_appended >= changes
        assert table.snapshots.written == 0
        await table.close()
        began, began_cpu, before = time.monotonic(), time.process_time(), received(link)
        table = await open_table(link, "sessions", limits=limits)
        took, took_cpu = time.monotonic() - began, time.process_time() - began_cpu
        read = received(link) - before
        print(f"{changes} records: open in {took:.3f} s ({took_cpu:.3f} s of processor), {read} messages of the store")
        assert read < PARTS + changes / 4, "it does not read them one by one"
        heir = Owner(table)
        table.begin_loading()
        await until(lambda: table.all_loaded, "all is loaded")
        assert heir.states == owner.states
        await table.close()


def test_a_trickle_of_changes_makes_no_slow_start() -> None:
    with running() as servers:
        run(trickle(servers, 2_000))


@pytest.mark.long
def test_a_long_trickle_of_changes_makes_no_slow_start() -> None:
    with running() as servers:
        run(trickle(servers, 50_000))


def test_twenty_thousand_keys() -> None:
    through(20_000, 20_000, TableLimits(tail_bytes=1_000_000, tail_bytes_max=5_000_000))


@pytest.mark.long
def test_a_million_keys() -> None:
    through(1_000_000, 300_000, TableLimits())

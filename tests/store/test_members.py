"""Three stores, each supervised by its own node: any of them may die, and all of them at once; nothing is lost.

Where one has to stay away for a while, nobody supervises (`three_stores`).
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.store import machine
from brookmq.store import server as server_module
from brookmq.store.errors import StoreError
from brookmq.store.folder import DataFolder
from brookmq.store.link import Link, LinkSettings
from brookmq.store.log import AppendLog
from brookmq.store.server import StoreOptions, StoreServer
from brookmq.store.streams import Stream, look
from tests.store.log_servers import declared
from tests.store.supervising import Told, lives, until
from tests.store.test_log import Writer, check
from tests.store.three_stores import ReservedPorts, ThreeStores, found_cluster, three_stores

LOG = Stream(name="LOG", subjects=("log", "log.*"), replicas=3)
ELECTION_SECONDS_MAX = 60.0  # 4 to 10 on a quiet machine
QUEUE_BYTES_MAX = 20_000  # some records wait for the store at any moment


class Supervised:
    """Three nodes' stores in one process."""

    def __init__(self, path: Path, ports: list[int]) -> None:
        self.memberships = found_cluster(path, ports)
        self.told = [Told() for _ in range(3)]
        self.folders = [DataFolder.open(path / str(index)) for index in range(3)]
        self.stores = [
            StoreServer(self.folders[index], StoreOptions(membership.node.name), told.ready, told.down)
            for index, (membership, told) in enumerate(zip(self.memberships, self.told, strict=True))
        ]

    async def ready(self) -> None:
        await until(lambda: all(store.ready for store in self.stores), "all are ready", ELECTION_SECONDS_MAX)

    def kill(self, *indexes: int) -> None:
        for pid in [self.stores[index].pid for index in indexes]:
            assert pid is not None
            os.kill(pid, signal.SIGKILL)

    def link_settings(self, role: str) -> LinkSettings:
        """As a core has it: its own store's address; it learns the others' from there."""
        store = self.stores[0]
        assert store.credentials is not None
        return LinkSettings(store.addresses, role, *store.credentials, store.tls)

    def index_of(self, name: str) -> int:
        return [each.node.name for each in self.memberships].index(name)


@asynccontextmanager
async def supervised(path: Path) -> AsyncIterator[Supervised]:
    reserved = ReservedPorts(6)
    three = Supervised(path, reserved.ports)
    try:
        await asyncio.gather(*(store.start(wait_seconds=0) for store in three.stores))
        yield three
    finally:
        pids = [store.pid for store in three.stores]
        await asyncio.gather(*(store.stop() for store in three.stores))
        for folder in three.folders:
            folder.close()
        reserved.release()
    assert not any(pid is not None and lives(pid) for pid in pids)


Fault = Callable[[Link], Awaitable[str]]


async def append_through(link: Link, faults: list[Fault]) -> int:
    """Appends while each fault happens, and after the last one; every acknowledged record is there, once, in order."""
    await declared(link, LOG)
    log = AppendLog(link, "LOG", "log", queue_bytes_max=QUEUE_BYTES_MAX)
    await log.seize()
    writer = Writer(log)
    writing = asyncio.create_task(writer.write())
    for fault in faults:
        before = len(writer.acknowledged)
        await until(lambda before=before: len(writer.acknowledged) > before + 20, "appends", ELECTION_SECONDS_MAX)
        what = await fault(link)
        before, begin = len(writer.acknowledged), time.monotonic()
        # More than what could have been answered already, or been under way.
        await until(
            lambda before=before: len(writer.acknowledged) > before + 20 or writer.errors, what, ELECTION_SECONDS_MAX
        )
        print(f"{what}: appends again after {time.monotonic() - begin:.1f} s")
        assert writer.errors == []
    writer.stopping = True
    await writing
    await until(lambda: log.waiting_bytes == 0, "all answered", ELECTION_SECONDS_MAX)
    assert writer.errors == []
    await check(link, [writer])
    await log.leave()
    return len(writer.acknowledged)


async def leader_of(link: Link) -> str:
    while True:
        try:
            if leader := (await look(link, "LOG")).leader:
                return leader
        except StoreError:
            pass  # an election
        await asyncio.sleep(0.05)


def killer(three: Supervised, chance: random.Random, kinds: str) -> Fault:
    """One of ``kinds``: the stream's leader, another one, the one that the link goes to, all three."""

    async def kill(link: Link) -> str:
        leader = three.index_of(await leader_of(link))
        match chance.choice(kinds):
            case "l":
                victims = [leader]
            case "f":
                victims = [chance.choice([index for index in range(3) if index != leader])]
            case "o":
                victims = [0]
            case _:
                victims = [0, 1, 2]
        # A store that is still coming back from the kill before has no process to kill.
        await until(lambda: all(three.stores[index].pid for index in victims), "there", ELECTION_SECONDS_MAX)
        three.kill(*victims)
        return f"kill -9 of {victims}, leader {leader}"

    return kill


@asynccontextmanager
async def linked(settings: LinkSettings) -> AsyncIterator[Link]:
    link = Link(settings)
    try:
        await link.open(ELECTION_SECONDS_MAX)
        yield link
    finally:
        await link.close()


async def test_nothing_is_lost_when_the_leader_dies_and_when_all_die(tmp_path: Path) -> None:
    async with supervised(tmp_path) as three:
        await three.ready()
        async with linked(three.link_settings("test")) as link:
            chance = random.Random(1)
            count = await append_through(link, [killer(three, chance, "l"), killer(three, chance, "a")])
            assert count > 60
        await three.ready()
        assert all("ready" in told.story for told in three.told)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, 23))
async def test_nothing_is_lost_through_many_kills(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    async with supervised(tmp_path) as three:
        await three.ready()
        async with linked(three.link_settings("test")) as link:
            count = await append_through(link, [killer(three, random.Random(seed), "lfoa")] * 20)
            print(f"{count} acknowledged")


def test_one_may_stay_away_and_come_back(tmp_path: Path) -> None:
    """The leader is killed and stays dead; two go on; it comes back and catches up; then another one may go."""

    async def test(stores: ThreeStores) -> None:
        async with linked(stores.link_settings("test")) as link:
            gone: list[int] = []

            async def lose_the_leader(link: Link) -> str:
                gone.append(stores.index_of(await leader_of(link)))
                stores.kill(gone[-1])
                return f"kill -9 of {gone[-1]}, which stays dead"

            async def exchange(link: Link) -> str:
                stores.start(gone.pop())
                await caught_up(link, time.monotonic())
                return await lose_the_leader(link)

            await append_through(link, [lose_the_leader, exchange])

    with three_stores(tmp_path) as stores:
        stores.wait_ready()
        asyncio.run(asyncio.wait_for(test(stores), 4 * ELECTION_SECONDS_MAX))


async def caught_up(link: Link, since: float) -> None:
    """All replicas have what the leader has, and were heard of after this moment."""
    async with asyncio.timeout(ELECTION_SECONDS_MAX):
        while not await _all_current(link, since):  # noqa: ASYNC110 - what is waited for is in other processes
            await asyncio.sleep(0.05)


async def _all_current(link: Link, since: float) -> bool:
    try:
        cluster = (await link.api("STREAM.INFO.LOG"))["cluster"]
    except StoreError:
        return False  # an election
    silent_s = time.monotonic() - since
    replicas = cluster.get("replicas") or []
    current = [replica["current"] and replica["active"] / 1e9 < silent_s for replica in replicas]
    return bool(cluster.get("leader")) and current == [True, True]


@pytest.mark.long
def test_a_lost_disk_is_filled_again_and_two_lost_disks_do_not_begin_anew(tmp_path: Path) -> None:
    """An empty folder takes the place of a lost one. Two empty ones wait for the third: its data is the cluster's."""

    async def append(stores: ThreeStores) -> int:
        async with linked(stores.link_settings("test")) as link:
            return await append_through(link, [])

    async def count(stores: ThreeStores) -> int:
        async with linked(stores.link_settings("test")) as link:
            await caught_up(link, time.monotonic())
            return (await look(link, "LOG")).last_sequence

    def wipe(*indexes: int) -> None:
        for index in indexes:
            shutil.rmtree(tmp_path / str(index) / "store" / "jetstream")

    def blocks(index: int) -> list[bytes]:
        messages = tmp_path / str(index) / "store" / "jetstream" / "BROOKMQ" / "streams" / "LOG" / "msgs"
        return [file.read_bytes() for file in sorted(messages.glob("*.blk"))]

    with three_stores(tmp_path) as stores:
        stores.wait_ready()
        asyncio.run(append(stores))
        before = asyncio.run(count(stores))
        assert before > 0
        stores.kill(2)
        wipe(2)
        stores.start(2)
        assert asyncio.run(count(stores)) == before
        assert blocks(2) == blocks(0) != []
        stores.kill_all()
        wipe(1, 2)
        stores.start(1)
        stores.start(2)
        with pytest.raises(AssertionError, match="store 1"):
            stores.wait_ready(20)
        stores.start(0)
        stores.wait_ready()
        assert asyncio.run(count(stores)) == before
        assert blocks(1) == blocks(2) == blocks(0)
        for index in range(3):
            assert "orphaned" not in stores.log(index)


async def test_a_member_alone_says_what_it_waits_for_and_is_not_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle_s = 4.0  # more than a start takes on a busy machine
    monkeypatch.setattr(machine, "IDLE_START_SECONDS_MAX", idle_s)
    monkeypatch.setattr(server_module, "MEMBER_ANSWER_SECONDS_MAX", 0.2)
    reserved = ReservedPorts(6)
    three = Supervised(tmp_path, reserved.ports)
    store = three.stores[0]
    try:
        assert not await store.start(wait_seconds=1)
        pid = store.pid
        begin = time.monotonic()
        await until(lambda: "waits for others of the cluster three" in store.reason, "it says so")
        assert f"2 of 127.0.0.1:{reserved.ports[0]}" in store.reason
        await until(lambda: time.monotonic() > begin + idle_s + 1, "more than an idle server gets")
        assert store.pid == pid
        assert store.replicas == 3
    finally:
        await store.stop()
        for folder in three.folders:
            folder.close()
        reserved.release()


async def test_a_port_of_a_member_that_is_in_use_is_an_error(tmp_path: Path) -> None:
    """Either of them: the others know it there and nowhere else."""
    for taken in (0, 1):
        reserved = ReservedPorts(6)
        port = reserved.ports[taken]
        three = Supervised(tmp_path / str(taken), reserved.ports)
        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(OperationError, match=rf"port is in use \(127.0.0.1:{port}\); the other cores know it"),
        ):
            await three.stores[0].start(wait_seconds=10)
        assert three.stores[0].pid is None
        for folder in three.folders:
            folder.close()
        reserved.release()

"""The log against real servers that are killed, stopped and fought over: once, in order, nothing acknowledged lost."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable

import pytest

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.errors import BadRecord, Deposed, NotOwner, QueueFull, RecordTooLarge, StoreError, StreamNotFound
from brookmq.store.link import Link
from brookmq.store.log import RECORD_BYTES_MAX, AppendLog
from brookmq.store.reader import Reader
from brookmq.store.record import CALLER_KIND_MIN, DATA, HEADER_BYTES, decode_header, decode_ownership, encode_record
from brookmq.store.streams import Stream, look, purge, remove
from tests.store.log_servers import Servers, declared, linked, run, running, until

LOG = Stream(name="LOG", subjects=("log", "log.*"))


class Writer:
    """Appends numbered records and keeps what was acknowledged."""

    def __init__(self, log: AppendLog, name: bytes = b"w", body_bytes: int = 200) -> None:
        self.log = log
        self.name = name
        self.acknowledged: dict[bytes, int] = {}
        self.order: list[bytes] = []
        self.errors: list[BaseException] = []
        self.stopping = False
        self._body_bytes = body_bytes
        self._number = 0

    async def write(self) -> None:
        while not self.stopping and not self.errors:
            try:
                self._number += 1
                body = b"%s:%d:" % (self.name, self._number)
                body += bytes(self._body_bytes - len(body))
                future = self.log.append(body)
            except QueueFull:
                self._number -= 1
                await asyncio.sleep(0.001)
                continue
            except NotOwner as error:
                self.errors.append(error)
                return
            future.add_done_callback(lambda done, body=body: self._answered(done, body))
            await asyncio.sleep(0)

    def _answered(self, done: asyncio.Future[int], body: bytes) -> None:
        if error := done.exception():
            self.errors.append(error)
        else:
            self.acknowledged[body] = done.result()
            self.order.append(body)


async def check(link: Link, writers: list[Writer]) -> list[bytes]:
    """Every acknowledged record is where it was said to be, once, in order, and no older term follows a newer one."""
    stored = [record async for _, record in Reader(link, "LOG", time_limit_s=10).read()]
    headers = [decode_header(record, sequence) for sequence, record in enumerate(stored, 1)]
    assert [header.term for header in headers] == sorted(header.term for header in headers)
    bodies = [record[HEADER_BYTES:] for record, header in zip(stored, headers, strict=True) if header.kind == DATA]
    assert len(bodies) == len(set(bodies)), "stored twice"
    for writer in writers:
        for body, sequence in writer.acknowledged.items():
            assert stored[sequence - 1][HEADER_BYTES:] == body
        numbers = [int(body.split(b":")[1]) for body in bodies if body.startswith(writer.name + b":")]
        assert numbers == list(range(1, len(numbers) + 1)), "a record is missing or out of order"
        assert [int(body.split(b":")[1]) for body in writer.order] == list(range(1, len(writer.order) + 1))
    return bodies


async def kill_while_writing(
    servers: Servers, seed: int, kills: int, replicas: int, victim: Callable[[Link], Awaitable[int]]
) -> int:
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with linked(servers) as link:
        await declared(link, dataclasses.replace(LOG, replicas=replicas))
        log = AppendLog(link, "LOG", "log", queue_bytes_max=20_000)
        term = await log.seize()
        writer = Writer(log)
        writing = asyncio.create_task(writer.write())
        for _ in range(kills):
            before = len(writer.acknowledged)
            await until(lambda before=before: len(writer.acknowledged) > before + chance.randrange(1, 60), "appends")
            index = await victim(link)
            servers.kill(index)
            servers.start(index)
        before = len(writer.acknowledged)
        await until(
            lambda: len(writer.acknowledged) > before + 20 or bool(writer.errors), "appends after the last kill"
        )
        writer.stopping = True
        await writing
        await until(lambda: log.waiting_bytes == 0, "all answered")
        assert writer.errors == []
        assert log.term == term, "nobody else wanted it"
        assert log.trouble == ""
        await check(link, [writer])
        await log.leave()
        return len(writer.acknowledged)


def test_once_and_in_order_through_kills_of_the_store() -> None:
    with running() as servers:
        run(_killed(servers, seed=1, kills=8))


async def _killed(servers: Servers, seed: int, kills: int) -> None:
    async def the_only_one(_: Link) -> int:
        return 0

    assert await kill_while_writing(servers, seed, kills, 1, the_only_one) > kills


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 15))
def test_once_and_in_order_through_many_kills(seed: int) -> None:
    with running() as servers:
        run(_killed(servers, seed, kills=60))


def test_three_servers_whose_leader_is_killed() -> None:
    async def leader(link: Link) -> int:
        return int((await look(link, "LOG")).leader[1:])

    async def test(servers: Servers) -> None:
        assert await kill_while_writing(servers, 3, 1, 3, leader) > 20

    with running(3) as servers:
        run(test(servers))


@pytest.mark.parametrize("count", [1, 3])
def test_the_older_of_two_appenders_is_deposed(count: int) -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers, "a") as first_link, linked(servers, "b") as second_link:
            await declared(first_link, dataclasses.replace(LOG, replicas=count))
            writers: list[Writer] = []
            for turn in range(6):
                log = AppendLog((first_link, second_link)[turn % 2], "LOG", "log", queue_bytes_max=50_000)
                term = await log.seize(b"n%d" % turn)
                writer = Writer(log, b"w%d" % turn)
                writers.append(writer)
                task = asyncio.create_task(writer.write())
                if turn:
                    older = writers[-2]
                    await until(lambda older=older: bool(older.errors), "the older one hears of it")
                    assert all(isinstance(error, Deposed | NotOwner) for error in older.errors)
                    assert any(isinstance(error, Deposed) for error in older.errors)
                    assert not older.log.owned
                    with pytest.raises(NotOwner):
                        older.log.append(b"x")
                await until(lambda writer=writer: len(writer.acknowledged) > 20, "the newer one appends")
                assert log.term == term
            writers[-1].stopping = True
            await task
            await until(lambda: writers[-1].log.waiting_bytes == 0, "all answered")
            await check(first_link, writers)
            for writer in writers:
                await writer.log.leave()

    with running(count) as servers:
        run(test(servers))


def test_many_that_seize_at_once_each_get_a_term_of_their_own() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            logs = [AppendLog(link, "LOG", "log") for _ in range(5)]
            terms = await asyncio.gather(*(log.seize(b"n%d" % index) for index, log in enumerate(logs)))
            assert len(set(terms)) == 5
            newest = terms.index(max(terms))
            outcomes = await asyncio.gather(*(log.append(b"x") for log in logs), return_exceptions=True)
            for index, outcome in enumerate(outcomes):
                assert outcome == terms[index] + 1 if index == newest else isinstance(outcome, Deposed)
            last = [record async for _, record in Reader(link, "LOG").read(max(terms), max(terms))]
            assert decode_ownership(last[0])[1] == b"n%d" % newest
            for log in logs:
                await log.leave()

    with running() as servers:
        run(test(servers))


def test_a_stopped_store_makes_nothing_twice() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log", time_limit_s=0.2, queue_bytes_max=20_000)
            await log.seize()
            writer = Writer(log)
            writing = asyncio.create_task(writer.write())
            for _ in range(3):
                before = len(writer.acknowledged)
                await until(lambda before=before: len(writer.acknowledged) > before + 20, "appends")
                servers.freeze()
                try:  # what was sent is in the socket: the store will take it when it wakes up, after our time limit
                    await until(lambda: "no answer" in log.trouble, "the time limit passes")
                    assert log.owned
                finally:
                    servers.thaw()
            before = len(writer.acknowledged)
            await until(lambda: len(writer.acknowledged) > before + 20, "appends again")
            writer.stopping = True
            await writing
            await until(lambda: log.waiting_bytes == 0, "all answered")
            assert writer.errors == []
            await check(link, [writer])
            await log.leave()

    with running() as servers:
        run(test(servers))


def test_a_full_store_is_said_and_waited_for() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log", queue_bytes_max=300_000)
            await log.seize()
            writer = Writer(log, body_bytes=100_000)
            writing = asyncio.create_task(writer.write())
            await until(lambda: "resource" in log.trouble, "no room")
            full = len(writer.acknowledged)
            assert log.owned
            assert writer.errors == []
            await purge(link, "LOG", 40)
            await until(lambda: len(writer.acknowledged) > full, "room again", 5)
            writer.stopping = True
            await writing
            await purge(link, "LOG", 60)
            await until(lambda: log.waiting_bytes == 0, "all answered")
            assert sorted(writer.acknowledged.values()) == list(range(2, len(writer.acknowledged) + 2))
            await log.leave()

    with running(room="8MB") as servers:
        run(test(servers))


def test_the_queue_has_a_bound_and_an_empty_one_takes_any_record() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log", queue_bytes_max=1000)
            await log.seize()
            large = log.append(bytes(5000))
            with pytest.raises(QueueFull, match="5000 bytes wait"):
                log.append(b"x")
            await large
            servers.freeze()
            try:
                taken = [log.append(bytes(100)) for _ in range(10)]
                with pytest.raises(QueueFull):
                    log.append(b"x")
                assert log.waiting_bytes == 1000
                taken[3].cancel()  # its giver does not wait any more; it is appended all the same
            finally:
                servers.thaw()
            await taken[9]
            assert await Reader(link, "LOG").last() == 12
            await log.leave()

    with running() as servers:
        run(test(servers))


def test_large_records_and_the_largest() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log", time_limit_s=10)
            await log.seize()
            bodies = [random.Random(1).randbytes(65_536) for _ in range(20)]
            assert await asyncio.gather(*(log.append(body) for body in bodies)) == list(range(2, 22))
            largest = bytes(RECORD_BYTES_MAX)
            with pytest.raises(RecordTooLarge):
                log.append(largest + b"x")
            assert await log.append(largest) == 22
            records = [record async for _, record in Reader(link, "LOG", time_limit_s=10).read(2)]
            assert [record[HEADER_BYTES:] for record in records] == [*bodies, largest]
            await log.leave()
            # The tail is read back whole, whatever its size, when the next owner comes.
            assert await AppendLog(link, "LOG", "log").seize() == 23

    with running() as servers:
        run(test(servers))


def test_a_record_that_is_not_ours_ends_the_ownership_and_leaves_nobody_waiting() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log")
            await log.seize()
            await link.request("log", b"a record of another program, without our header")
            with pytest.raises(BadRecord):
                await log.append(b"x")
            assert not log.owned
            await log.leave()

    with running() as servers:
        run(test(servers))


def test_a_broken_invariant_is_reported_and_leaves_nobody_waiting() -> None:
    async def test(servers: Servers) -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log")
            await log.seize()
            # A forged record under our term and with a number that we never gave.
            await link.request("log", encode_record(DATA, 1, 1, b"forged"))
            await link.request("log", encode_record(DATA, 1, 2, b"forged"))
            with pytest.raises(StoreError, match="never given"):
                await log.append(b"x")
            assert [type(error) for error in reported] == [InvariantError]
            await log.leave()

    with running() as servers:
        run(test(servers))


def test_kinds_subjects_and_who_may_append() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log")
            with pytest.raises(NotOwner):
                log.append(b"x")
            await log.seize()
            with pytest.raises(CallerError):
                await log.seize()
            await log.append(b"summary", kind=CALLER_KIND_MIN, subject="log.index")
            await log.append(b"data")
            index = [item async for item in Reader(link, "LOG").read(subject="log.index")]
            assert [(sequence, record[HEADER_BYTES:]) for sequence, record in index] == [(2, b"summary")]
            assert decode_header(index[0][1], 2).kind == CALLER_KIND_MIN
            await log.leave()
            with pytest.raises(NotOwner):
                log.append(b"x")

    with running() as servers:
        run(test(servers))


def test_a_purged_log_goes_on_and_a_removed_one_ends() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declared(link, LOG)
            log = AppendLog(link, "LOG", "log")
            await log.seize()
            await log.append(b"x")
            await purge(link, "LOG", 3)
            servers.kill()
            waiting = log.append(b"y")
            servers.start()
            assert await waiting == 3
            await purge(link, "LOG", 4)
            newer = AppendLog(link, "LOG", "log")
            assert await newer.seize() == 4
            await remove(link, "LOG")
            with pytest.raises(StreamNotFound):
                await newer.append(b"z")
            assert not newer.owned
            with pytest.raises(StoreError):
                await newer.seize()
            await asyncio.gather(log.leave(), newer.leave())

    with running() as servers:
        run(test(servers))

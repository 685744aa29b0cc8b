"""Reading ranges: whole, in bounds, and never past a gap without a word."""

from __future__ import annotations

import asyncio

import pytest

from brookmq.store.errors import Ambiguous, Gap, StoreError
from brookmq.store.link import Link
from brookmq.store.reader import Lanes, Reader, leader_record
from brookmq.store.streams import Stream, declare, purge
from tests.store.log_servers import Servers, declared, linked, run, running, until

STREAM = Stream(name="S", subjects=("s", "t"))


async def filled(link: Link, count: int, size: int = 10) -> None:
    await declared(link, STREAM)
    await asyncio.gather(
        *(link.request("s", b"%0*d" % (size, number), time_limit_s=10) for number in range(1, count + 1))
    )


async def sequences(reader: Reader, first: int = 1, last: int | None = None) -> list[int]:
    return [sequence async for sequence, _ in reader.read(first, last)]


def test_ranges_come_whole_and_in_order() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 600)
            reader = Reader(link, "S", batch_records_max=100)
            assert [item async for item in reader.read()] == [(n, b"%010d" % n) for n in range(1, 601)]
            assert await sequences(reader, 250, 475) == list(range(250, 476))
            assert await sequences(reader, 600, 600) == [600]
            assert await sequences(reader, 590, 900) == list(range(590, 601))
            assert await sequences(reader, 601) == []
            assert await sequences(reader, 5, 4) == []
            assert await sequences(reader, 0, 2) == [1, 2]
            assert await reader.last() == 600

    with running() as servers:
        run(test(servers))


def test_a_batch_is_bounded_in_bytes_and_a_larger_record_comes_alone() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 30, size=65_536)
            received = 0

            def count() -> int:
                return int(link.client.stats["in_bytes"])

            for bound in (200_000, 1000):
                reader = Reader(link, "S", batch_bytes_max=bound)
                received = count()
                async for sequence, _ in reader.read():
                    assert count() - received < max(bound, 65_536) + 65_536 + 2000, "one batch at a time"
                    received = count() if sequence == 30 else received
                    break
                assert await sequences(reader) == list(range(1, 31))

    with running() as servers:
        run(test(servers))


def test_an_empty_stream_and_none() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await declare(link, STREAM)
            reader = Reader(link, "S")
            assert await reader.last() == 0
            assert await sequences(reader) == []
            assert await sequences(reader, 1, 10) == []
            with pytest.raises(StoreError):
                await sequences(Reader(link, "NONE"))

    with running() as servers:
        run(test(servers))


def test_gaps_are_raised_or_told() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 50)
            await purge(link, "S", 11)
            for sequence in (20, 21, 22, 40):
                await link.api("STREAM.MSG.DELETE.S", {"seq": sequence})
            reader = Reader(link, "S", batch_records_max=7)
            with pytest.raises(Gap) as gap:
                await sequences(reader, 5)
            assert (gap.value.first, gap.value.last) == (5, 10)
            with pytest.raises(Gap) as gap:
                await sequences(reader, 11, 21)
            assert (gap.value.first, gap.value.last) == (20, 21)
            told: list[tuple[int, int]] = []
            got = [sequence async for sequence, _ in reader.read(1, 40, on_gap=lambda *gap: told.append(gap))]
            assert told == [(1, 10), (20, 22), (40, 40)]
            assert got == [n for n in range(11, 40) if n not in (20, 21, 22)]

    with running() as servers:
        run(test(servers))


def test_a_stream_purged_to_the_last_record_is_all_gap() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 9)
            await purge(link, "S", 10)
            for last, end in ((None, 9), (4, 4), (20, 9)):
                with pytest.raises(Gap) as gap:
                    await sequences(Reader(link, "S"), 3, last)
                assert (gap.value.first, gap.value.last) == (3, end)
            assert await sequences(Reader(link, "S"), 10) == []

    with running() as servers:
        run(test(servers))


def test_one_subject_of_two() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 5)
            await link.request("t", b"other")
            await link.request("s", b"last")
            reader = Reader(link, "S")
            assert [item async for item in reader.read(subject="t")] == [(6, b"other")]
            assert [sequence async for sequence, _ in reader.read(subject="s")] == [1, 2, 3, 4, 5, 7]
            assert [sequence async for sequence, _ in reader.read(2, 4, subject="s")] == [2, 3, 4]

    with running() as servers:
        run(test(servers))


def test_a_kill_while_reading_is_ambiguous_and_reading_goes_on_after_it() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 200, size=1000)
            reader = Reader(link, "S", batch_records_max=20, time_limit_s=0.5)
            got: list[int] = []

            async def read_some() -> None:
                async for sequence, _ in reader.read(len(got) + 1):
                    got.append(sequence)
                    if sequence == 60:
                        servers.kill()

            with pytest.raises(Ambiguous):
                await read_some()
            assert got == list(range(1, 61))
            servers.start()
            await until(lambda: link.up, "up")
            await read_some()
            assert got == list(range(1, 201))

    with running() as servers:
        run(test(servers))


def test_lanes_go_side_by_side_and_wait_for_their_turn() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 200, size=100)
            lanes = Lanes(link, "S", 3)
            answers = await asyncio.gather(*(lanes.next(first, "s", 2) for first in range(1, 101)))
            assert [[sequence for sequence, _ in records] for records in answers] == [[n, n + 1] for n in range(1, 101)]
            assert lanes.bytes_read == 100 * 2 * 100
            assert await lanes.next(201, "s") == []
            assert await lanes.next(1, "t") == []
            await link.request("t", b"other")
            assert await lanes.last_of(["s", "t"], 10) == [(200, b"%0100d" % 200), (201, b"other")]
            assert await leader_record(link, "S", 201) == b"other"
            assert await leader_record(link, "S", 202) is None
            await lanes.close()

    with running() as servers:
        run(test(servers))


def test_who_asks_when_the_connection_goes_does_not_wait_out_the_time_limit() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            await filled(link, 1)
            lanes = Lanes(link, "S", 2, time_limit_s=60)
            servers.freeze()  # the question is out, and no answer comes
            asking = [asyncio.create_task(lanes.next(1, "s")) for _ in range(5)]
            await asyncio.sleep(0.05)
            servers.kill()
            await until(lambda: not link.up, "down")
            outcomes = await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), 10)
            assert all(isinstance(outcome, Ambiguous) for outcome in outcomes)
            await lanes.close()
            servers.start()

    with running() as servers:
        run(test(servers))

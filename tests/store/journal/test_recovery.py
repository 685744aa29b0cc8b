"""Opening a journal: what is found of it, how quickly, and through deaths of node and store."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
from unittest.mock import patch

import pytest

from brookmq.store.errors import Ambiguous, Deposed, StoreError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.index import BATCHES_PER_SUMMARY
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.postings import PARTS
from brookmq.store.journal.recovery import open_journal
from brookmq.store.journal.tail import MESSAGES_PER_RECORD_MAX
from brookmq.store.link import Link
from brookmq.store.log import AppendLog
from brookmq.store.streams import look, purge
from tests.store.journal.reading_servers import QUICK, append, drained, group, journal_over, opened, payloads
from tests.store.log_servers import Servers, linked, run, running, until

ONE = JournalSettings(shards=1, limits=QUICK)


async def fill(journal: Journal, first: int, count: int) -> None:
    for number in range(first, first + count):
        assert await append(journal, [group(b"%08d" % number, [number % 100])]) == 0


async def check(journal: Journal, count: int) -> None:
    assert payloads(await drained(journal, 0, 0)) == [b"%08d" % number for number in range(count)]
    for one in (0, 1, 50, 99):
        wanted = frozenset([one])
        expected = [b"%08d" % number for number in range(one, count, 100)]
        assert payloads(await drained(journal, 0, 0, wanted), wanted) == expected


async def answering(link: Link) -> None:
    """Until a store that has just started answers, as a node waits for it."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(StoreError):
                await link.api("INFO", time_limit_s=0.1)
                return
            await asyncio.sleep(0.01)


def test_an_empty_journal_and_its_first_restart() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            for _ in range(3):
                async with journal_over(link, JournalSettings()) as journal:
                    assert [shard.stored for shard in journal.shards] == [0, 0, 0, 0]
                    assert [journal.first_offset(shard) for shard in range(4)] == [0, 0, 0, 0]
                    assert await drained(journal, 3, 0) == []
                    assert await journal.scan(2, 0) == []
                    assert {journal.shard_of(b"topic/%d" % number) for number in range(100)} == {0, 1, 2, 3}

    with running() as servers:
        run(test(servers))


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
def test_what_is_stored_is_there_after_a_restart(clean: bool) -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            journal = await opened(link, ONE)
            count = 0
            for more in (5, 300, 700, 20):
                await fill(journal, count, more)
                count += more
                await (journal.close() if clean else journal.abandon())
                journal = await opened(link, ONE)
                assert journal.shards[0].stored == journal.shards[0].head == count
                await check(journal, count)
                (reading,) = journal._readings
                if clean and more > 64:
                    assert reading.index.uncovered == 0
                else:
                    assert reading.index.uncovered <= PARTS * BATCHES_PER_SUMMARY + BATCHES_PER_SUMMARY
            await journal.close()

    with running() as servers:
        run(test(servers))


def test_a_small_journal_is_open_soon_after_a_kill() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            journal = await opened(link, JournalSettings(limits=QUICK))
            for shard in range(4):
                for number in range(200):
                    await append(journal, [group(b"%08d" % number, [number])], shard)
            await journal.abandon()
            servers.kill()
            servers.start()
            await answering(link)
            async with journal_over(link, JournalSettings(limits=QUICK)) as journal:
                assert [shard.stored for shard in journal.shards] == [200] * 4

    with running() as servers:
        run(test(servers))


def test_scans_from_an_offset_in_slices() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, ONE) as journal:
            await fill(journal, 0, 100)
            offset, seen = 37, []
            while batches := await journal.scan(0, offset):
                seen += batches
                offset = batches[-1].end
            assert payloads(seen) == [b"%08d" % number for number in range(37, 100)]

    with running() as servers:
        run(test(servers))


def test_a_batch_that_is_on_its_way_when_the_node_dies_is_found() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            journal = await opened(link, ONE)
            await fill(journal, 0, 10)
            journal.shards[0].add(group(b"00000010", [10]), None)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await journal.abandon()  # nobody hears the answer; stored or not is both right
            async with journal_over(link, ONE) as journal:
                stored = journal.shards[0].stored
                assert stored in (10, 11)
                await fill(journal, stored, 5)
                await check(journal, stored + 5)

    with running() as servers:
        run(test(servers))


def test_offsets_are_not_given_twice_when_everything_has_aged_away() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, ONE) as journal:
                await fill(journal, 0, 150)
            await purge(link, "JOURNAL_0", (await look(link, "JOURNAL_0")).last_sequence + 1)
            async with journal_over(link, ONE) as journal:
                head = journal.shards[0].stored
                assert head >= 150
                assert head <= 400 * MESSAGES_PER_RECORD_MAX  # the mark is of the first start: all records count
                assert journal.first_offset(0) == head
                assert journal.look(0, 3, None) == head
                await fill(journal, 0, 100)
                assert (await drained(journal, 0, 3))[0].base == head
            async with journal_over(link, ONE) as journal:
                assert journal.shards[0].stored == head + 100
                wanted = frozenset([5])
                assert payloads(await drained(journal, 0, 3, wanted), wanted) == [b"00000005"]
            # The same after a crash: the mark was written at the start.
            journal = await opened(link, ONE)
            await fill(journal, 0, 20)
            await journal.abandon()
            await purge(link, "JOURNAL_0", (await look(link, "JOURNAL_0")).last_sequence + 1)
            async with journal_over(link, ONE) as journal:
                assert journal.shards[0].stored >= head + 120

    with running() as servers:
        run(test(servers))


def test_limits_of_the_configuration_are_applied_and_the_number_of_shards_stays() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, JournalSettings(shards=2, max_age_s=1000.0, max_bytes=1 << 24)) as journal:
                assert len(journal.shards) == 2
            state = await look(link, "JOURNAL_1")
            assert (state.max_age_s, state.max_bytes) == (1000.0, 1 << 23)
            async with journal_over(link, JournalSettings(shards=3, max_age_s=500.0, max_bytes=None)) as journal:
                assert len(journal.shards) == 2, "a topic never changes its shard"
            state = await look(link, "JOURNAL_1")
            assert (state.max_age_s, state.max_bytes) == (500.0, None)

    with running() as servers:
        run(test(servers))


def test_retention_by_bytes_is_seen_at_the_next_start() -> None:
    async def test(servers: Servers) -> None:
        small = dataclasses.replace(ONE, max_bytes=200_000)
        async with linked(servers) as link:
            async with journal_over(link, small) as journal:
                for number in range(200):
                    await append(journal, [group(random.randbytes(2000) + b"%08d" % number, [number % 10])])
            async with journal_over(link, small) as journal:
                first = journal.first_offset(0)
                assert 100 < first < 200
                for one in (3, 4):
                    wanted = frozenset([one])
                    expected = [b"%08d" % number for number in range(200) if number % 10 == one and number >= first]
                    assert payloads(await drained(journal, 0, 0, wanted), wanted) == expected

    with running() as servers:
        run(test(servers))


def test_a_shard_that_lost_its_log_by_mistake_takes_it_back_and_tells_what_was_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [False, True]  # the store can't say at first whose it is

    async def entitled() -> bool:
        if not answers.pop(0):
            raise Ambiguous("no answer")
        return True

    async def test(servers: Servers) -> None:
        settings = dataclasses.replace(ONE, entitled=entitled)
        async with linked(servers) as link, journal_over(link, settings) as journal:
            handed: list[Batch] = []
            journal.on_stored = handed.append
            await fill(journal, 0, 20)
            thief = AppendLog(link, "JOURNAL_0", "journal_0")
            await thief.seize()
            assert await append(journal, [group(b"00000020", [20])]) == 0x97
            assert "takes no messages" in journal.trouble
            await thief.leave()
            await until(lambda: journal.shards[0].failed is None, "taken back")
            stored = journal.shards[0].stored
            await fill(journal, stored, 10)
            await check(journal, stored + 10)
            assert payloads(handed) == [b"%08d" % number for number in range(stored + 10)]
            assert "takes messages again" in caplog.text
            assert not answers

    with running() as servers:
        run(test(servers))


@pytest.mark.parametrize("asked", [False, True])
def test_a_shard_that_another_owner_has_is_left_to_it(asked: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def entitled() -> bool:
        return False

    async def test(servers: Servers) -> None:
        settings = dataclasses.replace(ONE, entitled=entitled if asked else None)
        async with linked(servers) as link, journal_over(link, settings) as journal:
            await fill(journal, 0, 3)
            other = AppendLog(link, "JOURNAL_0", "journal_0")
            term = await other.seize()
            assert await append(journal, [group(b"00000003", [3])]) == 0x97
            await until(lambda: "JOURNAL_0 is left to its new owner" in caplog.text, "it gives up")
            assert await append(journal, [group(b"00000004", [4])]) == 0x97, "refused at once"
            assert isinstance(journal.shards[0].failed, Deposed)
            assert (await look(link, "JOURNAL_0")).last_sequence == term
            assert await other.append(b"mine") == term + 1
            await other.leave()

    with running() as servers:
        run(test(servers))


def test_a_journal_that_was_left_takes_nothing_and_seizes_nothing() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            journal = await open_journal(link, ONE)
            await fill(journal, 0, 3)
            await journal.abandon()
            last = (await look(link, "JOURNAL_0")).last_sequence
            with patch("brookmq.store.journal.recovery.REGAIN_PAUSE_S", 0.0):
                assert await append(journal, [group(b"00000003", [3])]) == 0x97
                assert await append(journal, [group(b"00000004", [4])]) == 0x97
                for _ in range(20):  # seizing would take three questions
                    assert (await look(link, "JOURNAL_0")).last_sequence == last
            async with journal_over(link, ONE) as again:
                assert again.shards[0].stored == 3

    with running() as servers:
        run(test(servers))


def test_a_store_that_does_not_answer_is_an_error_and_leaves_nothing_open() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            servers.kill()
            await until(lambda: not link.up, "down")
            with pytest.raises(StoreError):
                await open_journal(link, ONE)
            servers.start()
            async with journal_over(link, dataclasses.replace(ONE, limits=ShardLimits())) as journal:
                await fill(journal, 0, 3)

    with running() as servers:
        run(test(servers))

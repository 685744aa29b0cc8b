"""Reading a journal over a real server: by offset, by filter id, by time; shared, bounded, through retention."""

from __future__ import annotations

import asyncio
import dataclasses
import random

import pytest

from brookmq.store.errors import BadRecord
from brookmq.store.journal import journal as journal_module
from brookmq.store.journal import seeking
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.journal import Journal, JournalSettings
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.recovery import open_journal
from brookmq.store.journal.summarising import WORTH_BATCHES
from brookmq.store.record import DATA, encode_record
from brookmq.store.streams import look, purge
from tests.store.journal.reading_servers import append, drained, group, journal_over, looked, payloads
from tests.store.log_servers import Servers, linked, run, running, until

# Nothing stays in memory by itself, so that reading is reading from the store.
COLD = JournalSettings(shards=1, cache_bytes_max=4 << 20, limits=ShardLimits(linger_s=0.0, recent_bytes_max=0))


class Truth:
    """What was appended, by filter id."""

    def __init__(self, seed: int = 1, ids: int = 200) -> None:
        self.chance = random.Random(seed)
        self.by_id: dict[int | None, list[bytes]] = {}
        self.count = 0
        self._ids = ids

    async def append(self, journal: Journal, batches: int, shard: int = 0) -> None:
        for _ in range(batches):
            groups = []
            for _ in range(self.chance.randrange(1, 6)):
                payload = b"%08d" % self.count
                ids = self.chance.sample(range(self._ids), 2)
                groups.append(group(payload, ids, at=1000.0 + self.count))
                for one in (None, *ids):
                    self.by_id.setdefault(one, []).append(payload)
                self.count += 1
            assert await append(journal, groups, shard) == 0

    async def check(self, journal: Journal, ids: range, shard: int = 0) -> None:
        assert payloads(await drained(journal, shard, 0)) == self.by_id[None]
        for one in ids:
            wanted = frozenset([one])
            assert payloads(await drained(journal, shard, 0, wanted), wanted) == self.by_id.get(one, [])


def test_everything_and_what_an_id_wants() -> None:
    async def test(servers: Servers) -> None:
        truth = Truth()
        async with linked(servers) as link:
            async with journal_over(link, COLD) as journal:
                await truth.append(journal, 700)
                await truth.check(journal, range(0, 200, 10))
                assert journal.batches_read >= 700
                assert journal.trouble == ""
            async with journal_over(link, COLD) as journal:  # from the store alone
                assert journal.shards[0].stored == truth.count
                await truth.check(journal, range(5, 200, 10))
                await truth.append(journal, 100)
                many = frozenset(range(0, 200, 3))
                found = payloads(await drained(journal, 0, 0, many), many)
                assert sorted(found) == sorted({payload for one in many for payload in truth.by_id[one]})

    with running() as servers:
        run(test(servers))


def test_any_offset_is_found_cold_with_few_reads() -> None:
    async def test(servers: Servers) -> None:
        truth = Truth()
        async with linked(servers) as link:
            async with journal_over(link, COLD) as journal:
                await truth.append(journal, 1000)
            for offset in truth.chance.sample(range(truth.count), 12):
                async with journal_over(link, COLD) as journal:
                    before = journal.batches_read
                    batch = await looked(journal, 0, offset, None)
                    assert isinstance(batch, Batch)
                    assert batch.base <= offset < batch.end
                    assert journal.batches_read - before <= 12 + seeking.RUN_RECORDS

    with running() as servers:
        run(test(servers))


def test_the_head_nobody_and_what_is_in_memory() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link) as journal:
            assert journal.look(0, 0, None) == 0
            assert journal.look(0, 0, frozenset([1])) == 0
            await append(journal, [group(b"00000000", [1])])
            await append(journal, [group(b"00000001", [2]), group(b"00000002", [])])
            assert isinstance(first := journal.look(0, 0, None), Batch)
            assert isinstance(second := journal.look(0, 1, None), Batch)
            assert (first.base, first.end, second.base, second.end) == (0, 1, 1, 3)
            assert journal.look(0, 2, None) is second, "an offset inside of a batch"
            assert journal.look(0, 0, frozenset([1])) is first
            assert journal.look(0, 0, frozenset([2])) is second, "the batch between is not wanted"
            assert journal.look(0, 1, frozenset([1])) == 3, "nothing up to the head"
            assert journal.look(0, 0, frozenset([99])) == 3
            assert journal.look(0, 0, frozenset()) == 3
            assert journal.look(0, 3, None) == 3
            assert journal.bytes_read == 0 or journal.batches_read <= 1
            woken = asyncio.Event()
            journal.load(0, 0, None, woken.set)  # it is there already
            await asyncio.wait_for(woken.wait(), 5)

    with running() as servers:
        run(test(servers))


def test_batches_matched_for_all_are_for_every_id() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, COLD) as journal:
                for number in range(WORTH_BATCHES + 20):
                    journal.shards[0].everything = number in (3, 50)
                    await append(journal, [group(b"%08d" % number, [1])])
                wanted = frozenset([777])
                for _ in range(2):
                    found = await drained(journal, 0, 0, wanted)
                    assert payloads(found) == [b"00000003", b"00000050"]
            async with journal_over(link, COLD) as journal:  # from summaries
                assert payloads(await drained(journal, 0, 0, wanted)) == [b"00000003", b"00000050"]

    with running() as servers:
        run(test(servers))


def test_who_wants_the_same_shares_one_read() -> None:
    async def test(servers: Servers) -> None:
        truth = Truth()
        async with linked(servers) as link:
            async with journal_over(link, COLD) as journal:
                await truth.append(journal, 600)
            async with journal_over(link, COLD) as journal:
                before = journal.bytes_read
                wanted = frozenset([7])
                alone = payloads(await drained(journal, 0, 0, wanted), wanted)
                once = journal.bytes_read - before
            async with journal_over(link, COLD) as journal:
                before = journal.bytes_read
                all_of_them = await asyncio.gather(*(drained(journal, 0, 0, wanted) for _ in range(200)))
                assert all(payloads(found, wanted) == alone == truth.by_id[7] for found in all_of_them)
                assert journal.bytes_read - before <= 2 * once

    with running() as servers:
        run(test(servers))


def test_a_cache_that_holds_a_single_batch_is_enough() -> None:
    async def test(servers: Servers) -> None:
        truth = Truth()
        tiny = dataclasses.replace(COLD, cache_bytes_max=1)
        async with linked(servers) as link, journal_over(link, tiny) as journal:
            await truth.append(journal, 150)
            await asyncio.gather(*(truth.check(journal, range(start, 200, 20)) for start in range(3)))

    with running() as servers:
        run(test(servers))


def test_by_time() -> None:
    async def test(servers: Servers) -> None:
        truth = Truth()
        async with linked(servers) as link, journal_over(link, COLD) as journal:

            async def found(unix_time: float) -> int:
                answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
                journal.find_time(0, unix_time, answer.set_result)
                return await asyncio.wait_for(answer, 10)

            assert await found(0.0) == 0
            await truth.append(journal, 300)
            assert await found(0.0) == 0
            assert await found(1e12) == truth.count
            for offset in (0, 1, 2, 500, truth.count - 1, *truth.chance.sample(range(truth.count), 20)):
                assert await found(1000.0 + offset) == offset
                assert await found(1000.0 + offset - 0.5) == offset

    with running() as servers:
        run(test(servers))


def test_retention_moves_the_first_offset_and_readers_go_on_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "RETENTION_POLL_S", 0.5)

    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, COLD) as journal:
            for number in range(400):
                await append(journal, [group(b"%08d" % number, [number % 7])])
            middle = await looked(journal, 0, 200, None)
            assert isinstance(middle, Batch)
            await purge(link, "JOURNAL_0", middle.sequence)
            # Nobody has told this journal: who reads finds out.
            first = await looked(journal, 0, 20, None)
            assert isinstance(first, Batch)
            assert first.base == journal.first_offset(0) == 200
            for one in (0, 6):
                wanted = frozenset([one])
                expected = [b"%08d" % number for number in range(200, 400) if number % 7 == one]
                assert payloads(await drained(journal, 0, 0, wanted), wanted) == expected
            # And who does not read is told within the poll.
            late = await looked(journal, 0, 300, None)
            assert isinstance(late, Batch)
            await purge(link, "JOURNAL_0", late.sequence)
            await until(lambda: journal.first_offset(0) == 300, "the poll", 10)
            assert journal.batches_lost == 0
            await purge(link, "JOURNAL_0", (await look(link, "JOURNAL_0")).last_sequence + 1)
            await until(lambda: journal.first_offset(0) == 400, "all gone", 10)
            assert journal.look(0, 0, None) == 400
            await append(journal, [group(b"00000400", [1])])
            assert payloads(await drained(journal, 0, 0)) == [b"00000400"]

    with running() as servers:
        run(test(servers))


def test_a_batch_that_retention_takes_while_its_reader_waits_for_it() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, COLD) as journal:
            for number in range(100):
                await append(journal, [group(b"%08d" % number, [5 if number % 10 == 0 else 6])])
            wanted = frozenset([5])
            assert journal.look(0, 0, wanted) is None  # the plan has it, and its batch has to be read
            await purge(link, "JOURNAL_0", (await look(link, "JOURNAL_0")).last_sequence - 20)
            found = payloads(await drained(journal, 0, 0, wanted), wanted)
            assert found
            assert found == [b"%08d" % number for number in range(0, 100, 10)][-len(found) :]
            assert len(found) < 5
            assert journal.batches_lost == 0

    with running() as servers:
        run(test(servers))


def test_a_batch_lost_from_the_middle_is_counted_and_passed() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, COLD) as journal:
            for number in range(30):
                await append(journal, [group(b"%08d" % number, [number % 2])])
            lost = await looked(journal, 0, 12, None)
            assert isinstance(lost, Batch)
            await link.api("STREAM.MSG.DELETE.JOURNAL_0", {"seq": lost.sequence})
        async with linked(servers) as link, journal_over(link, COLD) as journal:
            rest = [b"%08d" % number for number in range(30) if number != 12]
            assert payloads(await drained(journal, 0, 0)) == rest
            wanted = frozenset([0])
            assert payloads(await drained(journal, 0, 0, wanted), wanted) == rest[:12:2] + rest[13::2]
            assert journal.batches_lost >= 1

    with running() as servers:
        run(test(servers))


def test_a_batch_of_a_newer_format_stops_its_readers_and_is_said() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, COLD) as journal:
                await append(journal, [group(b"00000000", [1])])
            last = (await look(link, "JOURNAL_0")).last_sequence
            await link.request("journal_0", encode_record(DATA, last - 1, 2, b"\x63 a batch of the future"))
            with pytest.raises(BadRecord, match=f"journal_0, the batch at {last + 1}: format 99 is not known here"):
                await open_journal(link, COLD)
            # With a batch behind it that this version knows, the journal can be opened, and read up to there.
            term = (await look(link, "JOURNAL_0")).last_sequence
            later = Batch(0, 2, [group(b"00000002", [1])])
            await link.request("journal_0", encode_record(DATA, term, 1, encode_batch(later)))
            async with journal_over(link, COLD) as journal:
                assert journal.shards[0].stored == 3
                assert isinstance(await looked(journal, 0, 0, None), Batch)
                woken = asyncio.Event()
                assert journal.look(0, 1, None) is None
                journal.load(0, 1, None, woken.set)
                await until(lambda: "format 99" in journal.trouble, "it is said")
                assert not woken.is_set(), "nobody passes over it"

    with running() as servers:
        run(test(servers))

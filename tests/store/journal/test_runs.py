"""Plans for readers outside of the node: the runs that they name hold all that was captured, and little else."""

from __future__ import annotations

import dataclasses
import random
from itertools import pairwise
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.topics import matches
from brookmq.store.errors import BadRecord
from brookmq.store.journal import identity as identity_module
from brookmq.store.journal import journal as journal_module
from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.journal import Journal, JournalSettings, Plan
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.runs import CLOSE, Run, bounded, joined
from brookmq.store.link import Link
from brookmq.store.reader import Reader
from brookmq.store.record import DATA, HEADER_BYTES, decode_header
from brookmq.store.streams import look, purge
from tests.store.journal.reading_servers import append, group, journal_over
from tests.store.log_servers import Servers, linked, run, running, until

CAPTURE = ("a/#", "b/+", "rare/x")
TOPICS = (b"a/1", b"a/2/3", b"b/1", b"b/2", b"none/1")
SETTINGS = JournalSettings(
    shards=1, cache_bytes_max=4 << 20, capture=CAPTURE, limits=ShardLimits(linger_s=0.0, recent_bytes_max=0)
)
STREAM = "JOURNAL_0"


def ids_of(topic: bytes, capture: tuple[str, ...] = CAPTURE) -> list[int]:
    return [crc32(filter.encode()) for filter in capture if matches(filter.encode(), topic)]


async def fill(journal: Journal, topics: list[bytes], first: int = 0) -> None:
    """A batch for each topic."""
    for number, topic in enumerate(topics, first):
        assert await append(journal, [group(b"%08d" % number, ids_of(topic), topic=topic, at=1000.0 + number)]) == 0


async def fetched(link: Link, plan: Plan) -> list[Batch]:
    """The batches in the records of a plan, as a reader finds them; each run without a gap in its offsets."""
    batches: list[Batch] = []
    for each in plan.runs:
        following = None
        async for sequence, record in Reader(link, STREAM).read(each.first, each.last):
            if decode_header(record, sequence).kind != DATA:
                continue
            batch = decode_batch(0, sequence, record[HEADER_BYTES:])
            assert batch.base == following or following is None
            assert following is not None or batch.base <= each.start < batch.end
            following = batch.end
            batches.append(batch)
        assert following is not None
        assert following >= each.end
    return batches


def settled(journal: Journal) -> bool:
    """Whether a plan can be exact; before, it is whole where the newest batches are still being read after a start."""
    return all(reading.index.settled for reading in journal._readings)


def offsets(batches: list[Batch], filter: str) -> set[int]:
    return {each.first for batch in batches for each in batch.groups if matches(filter.encode(), each.topic)}


def test_a_plan_has_all_that_a_filter_wants_and_skips_the_rest() -> None:
    async def test(servers: Servers) -> None:
        chance = random.Random(7)
        topics = [b"none/1"] * 900
        for at in chance.sample(range(900), 40):
            topics[at] = chance.choice(TOPICS)
        topics[450] = b"rare/x"

        async def check(link: Link, journal: Journal) -> None:
            for filter in ("a/#", "a/2/+", "b/1", "+/1", "rare/#", "#"):
                for start, end in ((0, 900), (100, 500), (451, 900), (899, 900), (900, 900)):
                    plan = await journal.plan(0, start, end, [filter])
                    assert plan.lost == 0
                    captured = {
                        at for at in range(start, end) if ids_of(topics[at]) and matches(filter.encode(), topics[at])
                    }
                    found = offsets(await fetched(link, plan), filter)
                    assert captured <= found
                    assert all(start <= each.start < each.end <= end for each in plan.runs)
            rare = await journal.plan(0, 0, 900, ["rare/#"])
            assert [(each.start, each.end) for each in rare.runs] == [(450, 451)]
            assert (await journal.plan(0, 0, 900, ["elsewhere/#"])).runs == []
            both = await journal.plan(0, 0, 900, ["rare/#", "elsewhere/#"])
            assert both == rare

        async with linked(servers) as link:
            async with journal_over(link, SETTINGS) as journal:
                await fill(journal, topics)
                await check(link, journal)
            async with journal_over(link, SETTINGS) as journal:  # from the store alone
                await check(link, journal)
                records = sum(each.last - each.first + 1 for each in (await journal.plan(0, 0, 900, ["b/+"])).runs)
                assert records < 450

    with running() as servers:
        run(test(servers))


def test_without_filters_a_plan_is_one_run() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            assert await journal.plan(0, 0, 0, []) == Plan([], 0)
            assert await journal.plan(0, 0, 100, ["#"]) == Plan([], 0)
            await fill(journal, [b"none/1"] * 30)
            plan = await journal.plan(0, 3, 1000, [])
            assert [(each.start, each.end) for each in plan.runs] == [(3, 30)]
            assert [batch.base for batch in await fetched(link, plan)] == list(range(3, 30))

    with running() as servers:
        run(test(servers))


def test_times_cut_a_plan_with_some_slack() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            await fill(journal, [b"a/1"] * 100)
            (each,) = (await journal.plan(0, 0, 100, [], (1040.0, 1050.0))).runs
            assert (each.start, each.end) == (30, 60)
            assert (await journal.plan(0, 0, 100, ["a/#"], (2000.0, 3000.0))).runs == []

    with running() as servers:
        run(test(servers))


def test_what_retention_took_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "RETENTION_POLL_S", 0.02)

    async def test(servers: Servers) -> None:
        async with linked(servers) as link, journal_over(link, SETTINGS) as journal:
            await fill(journal, [b"a/1"] * 700)
            plan = await journal.plan(0, 0, 700, [])
            assert plan.lost == 0
            cut = (await journal.plan(0, 300, 301, [])).runs[0].first
            await purge(link, STREAM, cut)
            for filters in ([], ["a/#"]):
                plan = await journal.plan(0, 100, 700, filters)
                assert plan.lost == 200
                assert offsets(await fetched(link, plan), "a/#") == set(range(300, 700))
                assert await journal.plan(0, 100, 150, filters) == Plan([], 50)
            await purge(link, STREAM, (await look(link, STREAM)).last_sequence + 1)
            await until(lambda: journal.first_offset(0) == 700, "it is noticed")
            assert await journal.plan(0, 300, 700, ["a/#"]) == Plan([], 400)

    with running() as servers:
        run(test(servers))


def test_filters_of_former_configurations_are_found_and_what_has_no_ids_is_read_whole() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, dataclasses.replace(SETTINGS, capture=("a/#",))) as journal:
                name = journal.identity.name
                await fill(journal, [b"a/1", b"none/1"] + [b"none/1"] * 20)
            async with journal_over(link, dataclasses.replace(SETTINGS, capture=("b/+",))) as journal:
                assert journal.identity.name == name
                assert journal.identity.captures == ("a/#", "b/+")
                await until(lambda: settled(journal), "what has no summary is read again")
                plan = await journal.plan(0, 0, 22, ["a/#"])
                assert [(each.start, each.end) for each in plan.runs] == [(0, 1)]
            config = (await link.api(f"STREAM.INFO.{STREAM}"))["config"]
            del config["metadata"][identity_module.KEY]  # as a version left it that knew no identities
            await link.api(f"STREAM.UPDATE.{STREAM}", config)
            async with journal_over(link, SETTINGS) as journal:
                assert journal.identity.name != name
                await fill(journal, [b"none/1"] * 20 + [b"a/1"], 22)
                await until(lambda: settled(journal), "what has no summary is read again")
                plan = await journal.plan(0, 0, 43, ["a/#"])
                assert [(each.start, each.end) for each in plan.runs] == [(0, 22), (42, 43)]

    with running() as servers:
        run(test(servers))


def test_too_many_capture_filters_make_plans_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity_module, "CAPTURES_BYTES_MAX", 120)

    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            async with journal_over(link, SETTINGS) as journal:
                await fill(journal, [b"none/1"] * 10)
            many = tuple(f"{number}/#" for number in range(100))
            async with journal_over(link, dataclasses.replace(SETTINGS, capture=many)) as journal:
                assert journal.identity.captures is None
                plan = await journal.plan(0, 0, 10, ["rare/x"])
                assert [(each.start, each.end) for each in plan.runs] == [(0, 10)]
            others = ("other/of/a/length/that/fits/alone", "b")
            async with journal_over(link, dataclasses.replace(SETTINGS, capture=others[:1])) as journal:
                assert journal.identity.captures == others[:1]
                assert journal.identity.since == (10,)

    with running() as servers:
        run(test(servers))


def test_an_identity_of_a_newer_version_is_refused() -> None:
    async def test(servers: Servers) -> None:
        async with linked(servers) as link:
            for text in ('{"format":2,"name":"x","captures":[],"since":[0]}', "nonsense"):
                async with journal_over(link, SETTINGS):
                    pass
                config = (await link.api(f"STREAM.INFO.{STREAM}"))["config"]
                right = dict(config["metadata"])
                config["metadata"][identity_module.KEY] = text
                await link.api(f"STREAM.UPDATE.{STREAM}", config)
                with pytest.raises(BadRecord, match="what the journal is called"):
                    await identity_module.settle_identity(link, CAPTURE, [0])
                await link.api(f"STREAM.UPDATE.{STREAM}", config | {"metadata": right})

    with running() as servers:
        run(test(servers))


RUNS = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 3)), max_size=60).map(
    lambda pairs: [Run(first, first + more, 10 * first, 10 * (first + more) + 5) for first, more in pairs]
)


@given(RUNS, st.integers(1, 20))
def test_joining_leaves_nothing_out_and_is_bounded(runs: list[Run], count_max: int) -> None:
    result = bounded(joined(runs), count_max)
    assert len(result) <= count_max
    for before, after in pairwise(result):
        assert after.first - before.last > CLOSE + 1
        assert after.start >= before.end
    for each in runs:
        assert any(
            whole.first <= each.first <= each.last <= whole.last and whole.start <= each.start <= each.end <= whole.end
            for whole in result
        )


def test_the_smallest_gaps_are_closed_first() -> None:
    runs = [Run(at, at, at, at + 1) for at in (1, 100, 120, 300)]
    assert bounded(runs, 3) == [Run(1, 1, 1, 2), Run(100, 120, 100, 121), Run(300, 300, 300, 301)]

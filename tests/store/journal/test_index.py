"""The index against a plain dictionary: through summaries, lost ones, restarts and a memory that forgets."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brookmq.base.errors import InvariantError
from brookmq.store.journal import index as index_module
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.cache import Cache
from brookmq.store.journal.index import BATCHES_PER_SUMMARY, Hole, Missing, ShardIndex, by_part, row_of
from brookmq.store.journal.plans import Blind, Plans
from brookmq.store.journal.postings import PARTS
from brookmq.store.journal.summary import Summary
from tests.store.journal.groups import run_group

IDS = [*range(20), 64, 65, 128, 2**32 - 1]


class World:
    """A shard with its index, the summaries in its store, and what is true."""

    def __init__(self, seed: int, cache_bytes: int = 1 << 30) -> None:
        self.chance = random.Random(seed)
        self.batches: list[Batch] = []
        self.summaries: list[list[Summary]] = [[] for _ in range(PARTS)]
        self.sequence = 1
        self.stored = 0
        self.cache: Cache[Summary | Hole] = Cache(cache_bytes, PARTS)
        self.index = ShardIndex(0, 0, self.cache)
        self.plans = Plans(self.index)
        self.summaries_read = 0

    def batch(self) -> Batch:
        groups = [
            run_group(
                count=self.chance.randrange(1, 4),
                filters=b"".join(struct.pack(">I", one) for one in self.chance.sample(IDS, self.chance.randrange(3))),
            )
            for _ in range(self.chance.randrange(1, 5))
        ]
        self.sequence += self.chance.choice([1, 1, 2])
        batch = Batch(0, self.stored, groups, self.chance.random() < 0.03, self.sequence)
        self.batches.append(batch)
        self.stored = batch.end
        return batch

    def append(self, *, fails: float = 0.0) -> None:
        self.index.add(self.batch())
        self.summarise(fails=fails)

    def summarise(self, *, fails: float = 0.0, at_once: bool = False) -> bool:
        draft = self.index.draft(at_once=at_once)
        if draft is None:
            return False
        assert self.index.draft(at_once=True) is None, "one at a time"
        self.sequence += 1
        if self.chance.random() < fails:
            if self.chance.random() < 0.5:  # stored, and the answer got lost
                self.summaries[draft.part].append(Summary(draft.body, "s"))
            self.index.dropped()
        else:
            self.summaries[draft.part].append(Summary(draft.body, "s"))
            self.index.stored(draft)
        return True

    def restart(self) -> None:
        """A new process: only what is in the store is there."""
        self.cache = Cache(self.cache.bytes_max, PARTS)
        self.index = ShardIndex(0, 0, self.cache)
        for part in self.summaries:
            if part:
                self.index.resume(part[-1])
        self.plans = Plans(self.index)
        self.index.settled = False

    def recover(self, head: int) -> None:
        for batch in self.batches:
            if min(self.index.covers) <= batch.base < head:
                self.index.recover(row_of(batch))
        self.index.settle()

    def truth(self, wanted: frozenset[int], offset: int) -> list[int]:
        return [
            batch.base
            for batch in self.batches
            if batch.end > offset and (batch.everything or wanted.intersection(batch.filters))
        ]

    def bases(self, wanted: frozenset[int], offset: int) -> list[int]:
        """What a reader is led to, with the summaries that it asks for read from the store."""
        found: list[int] = []
        while offset < self.stored:
            plan = self.plans.at(wanted, offset)
            if plan.place(offset) == len(plan.ends) and plan.until < self.stored:
                stop = self.plans.grow(plan, offset, self.stored)
                if plan.place(offset) == len(plan.ends):
                    if plan.until > offset:
                        offset = plan.until
                        continue
                    assert not isinstance(stop, Blind)
                    assert isinstance(stop, Missing)
                    assert stop.parts
                    for part in stop.parts:
                        plan.held[part] = self.read(part, plan.until)
                    continue
            if (place := plan.place(offset)) == len(plan.ends):
                break
            assert self.batches_by_base()[plan.bases[place]].sequence == plan.sequences[place]
            found.append(plan.bases[place])
            offset = plan.ends[place]
        return found

    def read(self, part: int, offset: int) -> Summary | Hole:
        behind = [summary for summary in self.summaries[part] if summary.end > offset]
        self.summaries_read += 1
        return self.index.found(part, offset, behind[: self.chance.randrange(1, 4)])

    def batches_by_base(self) -> dict[int, Batch]:
        return {batch.base: batch for batch in self.batches}

    def check(self, offset: int = 0) -> None:
        for wanted in (*(frozenset([one]) for one in IDS[::3]), frozenset(IDS[:7]), frozenset([12345])):
            assert self.bases(wanted, offset) == self.truth(wanted, offset), wanted


@given(st.integers(0, 2**32), st.integers(1, 900))
@settings(max_examples=12, deadline=None)
def test_every_batch_of_an_id_is_found_and_no_other(seed: int, count: int) -> None:
    world = World(seed)
    for _ in range(count):
        world.append()
    world.check()
    world.check(world.chance.randrange(world.stored))
    assert sum(len(part) for part in world.summaries) == count // BATCHES_PER_SUMMARY


@given(st.integers(0, 2**32))
@settings(max_examples=8, deadline=None)
def test_through_restarts_and_summaries_that_fail(seed: int) -> None:
    world = World(seed)
    for _ in range(4):
        for _ in range(world.chance.randrange(1, 300)):
            world.append(fails=0.2)
        world.check(world.chance.randrange(world.stored))
        head = world.stored
        world.restart()
        for _ in range(world.chance.randrange(10)):  # come while the older ones are read again
            world.append()
        world.recover(head)
    world.check()


@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_with_a_memory_that_forgets_summaries_at_once(seed: int) -> None:
    world = World(seed, cache_bytes=1)
    for _ in range(700):
        world.append()
    world.check()  # a set with several parts has them in the cache one after the other, and still gets on
    assert world.summaries_read > 20


def test_the_newest_wait_for_a_restart_to_be_over_and_nothing_else_does() -> None:
    world = World(3)
    for _ in range(600):
        world.append()
    world.restart()
    (part,) = {one % PARTS for one in (3,)}
    covered = world.index.covers[part]
    assert 0 < covered < world.stored
    plan = world.plans.at(frozenset([3]), covered)
    assert world.plans.grow(plan, covered, world.stored) == Missing([])
    plan = world.plans.at(frozenset([3]), 0)
    while (stop := world.plans.grow(plan, plan.until, world.stored)) is None or stop.parts:  # type: ignore[union-attr]
        if stop is not None:
            world.read(part, plan.until)
    assert plan.until == covered
    assert list(plan.bases) == [base for base in world.truth(frozenset([3]), 0) if base < covered]


def test_every_part_is_covered_within_its_turn() -> None:
    world = World(4)
    for _ in range(3000):
        world.append()
        assert world.index.uncovered <= PARTS * BATCHES_PER_SUMMARY + BATCHES_PER_SUMMARY
    assert all(len(part) in (5, 6) for part in world.summaries)


def test_after_all_were_written_there_is_nothing_to_read_again() -> None:
    world = World(5)
    for _ in range(300):
        world.append()
    while world.summarise(at_once=True):
        pass
    assert set(world.index.covers) == {world.stored}
    assert (world.index.uncovered, world.index.pairs) == (0, 0)
    world.restart()
    world.recover(world.stored)
    world.check()


def test_a_hole_in_the_summaries_is_read_whole() -> None:
    world = World(6)
    for _ in range(2000):
        world.append()
    lost = world.summaries[3].pop(1)
    world.cache.forget_below(3, world.stored)  # else the index still has what it wrote itself
    wanted = frozenset([3])
    plan = world.plans.at(wanted, 0)
    while isinstance(stop := world.plans.grow(plan, plan.until, world.stored), Missing):
        world.read(3, plan.until)
    while stop is None:
        while isinstance(stop := world.plans.grow(plan, plan.until, world.stored), Missing):
            world.read(3, plan.until)
    assert plan.until == lost.start
    assert stop == Blind(lost.end)
    assert world.bases(wanted, lost.end) == world.truth(wanted, lost.end)


def test_many_pairs_are_written_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "PAIRS_MAX", 50)
    world = World(7)
    for _ in range(500):
        world.append()
        assert world.index.pairs <= 50 + 20
    world.check()


def test_a_batch_cannot_come_twice() -> None:
    world = World(8)
    world.append()
    with pytest.raises(InvariantError, match="already"):
        world.index.add(world.batches[0])


def test_plans_are_shared_bounded_and_follow_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.store.journal.plans.PLAN_BATCHES_MAX", 50)
    monkeypatch.setattr("brookmq.store.journal.plans.PLANS_BATCHES_MAX", 600)
    monkeypatch.setattr("brookmq.store.journal.plans.PLANS_MAX", 10)
    world = World(9)
    for _ in range(400):
        world.append()
    for one in IDS:
        world.bases(frozenset([one]), 0)
        assert len(world.plans) <= 10
    world.check()
    wanted = frozenset(IDS)
    plan = world.plans.at(wanted, 0)
    assert world.plans.at(frozenset(IDS), 0) is plan
    world.plans.at(wanted, 500)
    assert plan.start == 500
    world.append()
    world.check(400)


def test_ids_by_part() -> None:
    assert by_part([65, 0, 1, 64]) == [(0, [0, 64]), (1, [65, 1])]

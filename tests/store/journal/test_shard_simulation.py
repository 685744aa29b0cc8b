"""A shard through anything that can happen to it, from seeds: held answers, failures, overdue groups, a full shard.

What is checked after each step stands in ``Simulation.check``; a failing seed is run again with
``Simulation(seed).run()``.
"""

from __future__ import annotations

import random
from functools import partial

import pytest

from brookmq.store.errors import Deposed
from brookmq.store.journal.batch import Batch, decode_batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.shard import TIMER_SLACK_S, Shard
from brookmq.store.memory_log import Done, MemoryLog
from tests.store.journal.groups import run_group
from tests.store.journal.shard_world import Clock

LIMITS = ShardLimits(
    linger_s=1 / 256,
    batch_bytes=2_000,
    batch_bytes_max=5_000,
    group_bytes_max=9_000,
    pending_bytes_max=20_000,
    recent_bytes_max=30_000,
)
STORE_WAIT_S = 2.0
STEPS = 400


class Told:
    """A ticket of the simulation: its number says when its group came."""

    def __init__(self, world: Simulation, number: int, group: Group) -> None:
        self.number = number
        self.group = group
        self.came = world.clock.now
        self.refused = False
        self.reasons: list[int] = []
        self._world = world

    def settle(self, reason: int) -> None:
        assert not self._world.adding, "nobody is told anything inside add"
        self.reasons.append(reason)
        if not self.refused:
            self._world.settled.append(self.number)
        if reason == 0:
            assert self.group.first >= 0
            assert self._world.handed >= self.group.first + self.group.count, "receivers come before publishers"
            assert self._world.durable >= self.group.first + self.group.count, (
                "an acknowledgement of what is not stored"
            )


class Simulation:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.log = MemoryLog(self.clock.call_soon)
        self.shard = Shard(
            1, self.append, self.clock.call_later, self.clock.time, self.on_stored, LIMITS, self.chance.choice([0, 50])
        )
        self.start = self.handed = self.shard.head
        self.adding = False
        self.tickets: list[Told] = []
        self.settled: list[int] = []  # numbers, in the order in which they were settled
        self.called: list[int] = []  # publishers that were told of room
        self.waiting = 0
        self.under_way: Done | None = None
        self.began = -1.0
        self.failures = 0
        self._decoded: list[Batch] = []

    @property
    def durable(self) -> int:
        """Where the log ends."""
        batches = self.batches()
        return batches[-1].end if batches else self.start

    def batches(self) -> list[Batch]:
        for sequence in range(len(self._decoded) + 1, self.log.last_sequence + 1):
            self._decoded.append(decode_batch(1, sequence, self.log.records[sequence].body))
        return self._decoded

    # -- what the shard calls

    def append(self, body: bytes, done: Done) -> None:
        assert self.under_way is None, "one append at a time"
        batch = decode_batch(1, 0, body)
        size = sum(group.size() for group in batch.groups)
        assert size <= LIMITS.batch_bytes_max or len(batch.groups) == 1
        early = self.clock.now < self.began + LIMITS.linger_s - 1.01 * TIMER_SLACK_S
        # With what waits behind it, it was worth an append.
        assert not early or self.shard.pending_bytes >= LIMITS.batch_bytes, "it should have lingered"
        self.began = self.clock.now
        self.under_way = done
        self.log.append(body, self.answered)

    def answered(self, answer: object) -> None:
        done, self.under_way = self.under_way, None
        assert done is not None
        assert isinstance(answer, int | Deposed)
        done(answer)

    def on_stored(self, batch: Batch) -> None:
        assert (batch.base, batch.end) == (self.handed, self.shard.stored), "dense and in order"
        assert self.log.records[batch.sequence]
        self.handed = batch.end

    # -- what happens

    def add(self) -> None:
        large = self.chance.random() < 0.05
        group = run_group(
            b"t/%d" % self.chance.randrange(4),
            self.chance.choice([1, 1, 2, 20]),
            bytes(self.chance.choice([6_000, 10_000]) if large else self.chance.randrange(200)),
            client_id=str(len(self.tickets)),
        )
        ticket = Told(self, len(self.tickets), group)
        ticket.refused = self.shard.failed is not None or group.size() > LIMITS.group_bytes_max
        self.tickets.append(ticket)
        self.adding = True
        self.shard.add(group, ticket)
        self.adding = False

    def publish(self) -> None:
        for _ in range(self.chance.choice([1, 1, 3, 40])):
            if self.shard.full:
                number = self.waiting = self.waiting + 1
                self.shard.wait(partial(self.called.append, number))
                return
            self.add()

    def fail(self) -> None:
        """The log ends while a batch is under way, which may be stored or not."""
        if self.under_way is None:
            return
        self.log.crash(stored=self.chance.randrange(2))
        self.failures += 1
        self.answered(Deposed("another owner"))
        assert self.shard.failed is not None

    def restart(self) -> None:
        if self.shard.failed is not None:
            self.shard.restart(self.durable)
            self.handed = self.shard.stored

    def step(self) -> None:
        match self.chance.randrange(12):
            case 0:
                self.log.hold()
            case 1 | 2:
                self.log.release()
            case 3:
                self.log.release(1)
            case 4 if self.chance.random() < 0.2:
                self.fail()
            case 5:
                self.restart()
            case 6:
                self.clock.advance(self.chance.choice([LIMITS.linger_s / 3, LIMITS.linger_s, 0.1, 1.0, 3.0]))
            case 7:
                self.shard.overdue(self.clock.now, STORE_WAIT_S)
            case 8:
                self.clock.end_turn()
            case _:
                self.publish()

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.log.release()
        self.restart()
        self.clock.advance(1.0)
        self.check()
        assert self.shard.pending_bytes == 0
        assert all(len(ticket.reasons) == 1 for ticket in self.tickets), "each is told exactly once"
        assert self.called == list(range(1, self.waiting + 1)), "each publisher once, in order"
        assert self.durable == self.shard.stored

    def check(self) -> None:
        self.shard.check_invariants()
        batches = self.batches()
        ends = [self.start, *(batch.end for batch in batches)]
        assert [batch.base for batch in batches] == ends[:-1], "offsets are dense"
        stored = [int(group.client_id) for batch in batches for group in batch.groups]
        assert stored == sorted(set(stored)), "each group once, in the order in which it came"
        assert self.settled == sorted(set(self.settled)), "tickets settle in the order in which they came"
        present = set(stored)
        for ticket in self.tickets:
            assert len(ticket.reasons) <= 1
            assert ticket.reasons != [0] or ticket.number in present
            assert not ticket.refused or ticket.number not in present
            assert ticket.reasons != [0] or not ticket.refused
        assert self.shard.pending_bytes <= LIMITS.pending_bytes_max + LIMITS.group_bytes_max
        assert self.shard.recent.bytes <= LIMITS.recent_bytes_max


@pytest.mark.parametrize("seed", range(25))
def test_anything_that_can_happen(seed: int) -> None:
    Simulation(seed).run()


def test_the_simulation_meets_what_it_is_for() -> None:
    """A simulation that never fails a log, never gives up and never fills a shard would prove little."""
    met = [Simulation(seed) for seed in range(8)]
    for simulation in met:
        simulation.run()
    assert sum(simulation.failures for simulation in met) > 5
    assert sum(simulation.waiting for simulation in met) > 20
    assert sum(ticket.refused for simulation in met for ticket in simulation.tickets) > 20
    assert sum(0x97 in ticket.reasons and not ticket.refused for one in met for ticket in one.tickets) > 100
    assert sum(0 in ticket.reasons for one in met for ticket in one.tickets) > 1000


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_anything_that_can_happen_many_times(seed: int) -> None:
    Simulation(seed).run()

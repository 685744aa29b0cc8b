"""One shard: when it appends, whom it tells in which order, and what it does at each of its bounds."""

from __future__ import annotations

import pytest

from brookmq.base import faults
from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.errors import Deposed
from brookmq.store.journal.limits import ShardLimits
from tests.store.journal.groups import facts, run_group
from tests.store.journal.shard_world import World

LINGER_S = 1 / 256  # so that sums of it are exact
QUOTA_EXCEEDED = 0x97


def test_an_idle_shard_appends_at_the_end_of_the_turn() -> None:
    world = World()
    world.add(run_group(count=2), "a")
    world.add(run_group(count=3), "b")
    assert (world.log.unanswered, world.story, world.shard.head) == (0, [], 0)
    world.clock.settle()
    assert world.story == [("stored", 0, 5), ("a", 0), ("b", 0)]
    assert len(world.log.records) == 1
    assert (world.shard.head, world.shard.stored, world.shard.pending_bytes) == (5, 5, 0)
    assert world.stored[0].sequence == 1
    world.shard.check_invariants()


def test_what_is_in_the_log_is_what_was_given() -> None:
    world = World(head=70)
    given = [run_group(b"t/%d" % number, count=number, client_id=f"c{number}") for number in range(1, 5)]
    for group in given:
        world.add(group)
    world.clock.settle()
    assert [facts(group) for batch in world.batches() for group in batch.groups] == [facts(group) for group in given]
    assert [group.first for group in given] == [70, 71, 73, 76]
    assert world.shard.recent.find(72) is world.stored[0]


def test_after_an_append_it_lingers() -> None:
    world = World(ShardLimits(linger_s=LINGER_S))
    world.add(run_group(), "a")
    world.clock.settle()
    world.clock.advance(LINGER_S / 4)
    world.add(run_group(), "b")
    world.clock.advance(LINGER_S / 4)
    world.add(run_group(), "c")
    world.clock.advance(LINGER_S / 4)
    assert world.story == [("stored", 0, 1), ("a", 0)]
    world.clock.advance(LINGER_S / 4)
    assert world.story[2:] == [("stored", 1, 3), ("b", 0), ("c", 0)]
    world.clock.advance(LINGER_S)
    world.add(run_group(), "d")  # idle for long: at once again
    world.clock.settle()
    assert world.story[-1] == ("d", 0)


def test_a_batch_that_is_worth_it_does_not_linger() -> None:
    world = World(ShardLimits(linger_s=LINGER_S, batch_bytes=1000))
    world.add(run_group(), "a")
    world.clock.settle()
    world.add(run_group(), "b")
    world.clock.settle()
    assert ("b", 0) not in world.story
    world.add(run_group(payload=bytes(1000)), "c")
    world.clock.settle()
    assert world.story[-2:] == [("b", 0), ("c", 0)]


def test_one_append_is_under_way_and_what_comes_meanwhile_is_the_next_batch() -> None:
    world = World(ShardLimits(linger_s=LINGER_S, batch_bytes=100))
    world.log.hold()
    world.add(run_group(payload=bytes(100)), "a")
    world.clock.settle()
    for name in "bcd":
        world.add(run_group(payload=bytes(100)), name)
        world.clock.advance(LINGER_S)
    assert (world.log.unanswered, world.shard.head, world.shard.stored) == (1, 1, 0)
    world.log.release(1)
    world.clock.settle()
    assert world.story == [("stored", 0, 1), ("a", 0)]
    assert (world.log.unanswered, world.shard.head, world.shard.stored) == (1, 4, 1)
    world.log.release()
    world.clock.settle()
    assert world.story[2:] == [("stored", 1, 4), ("b", 0), ("c", 0), ("d", 0)]


def test_batches_are_cut_at_their_bound_and_a_larger_group_goes_alone() -> None:
    world = World(ShardLimits(linger_s=0.0, batch_bytes=1, batch_bytes_max=1000))
    for payload in (400, 400, 5000, 400, 400, 400, 400):
        world.add(run_group(payload=bytes(payload)), payload)
    world.clock.settle()
    assert [len(batch.groups) for batch in world.batches()] == [2, 1, 2, 2]
    assert [batch.base for batch in world.batches()] == [0, 2, 3, 5]
    assert [entry[0] for entry in world.story if entry[0] != "stored"] == [400, 400, 5000, 400, 400, 400, 400]


def test_what_comes_while_the_filters_are_loading_is_marked() -> None:
    world = World(ShardLimits(linger_s=LINGER_S))
    world.shard.everything = True
    world.add(run_group())
    world.shard.everything = False
    world.add(run_group())
    world.clock.settle()
    world.add(run_group())
    world.clock.advance(LINGER_S)
    assert [batch.everything for batch in world.batches()] == [True, False]


def test_a_full_shard_calls_those_who_wait_once_and_in_order() -> None:
    size = run_group().size()
    world = World(ShardLimits(pending_bytes_max=3 * size))
    world.log.hold()
    called: list[str] = []
    for _ in range(3):
        world.add(run_group())
    assert not world.shard.full
    world.add(run_group())
    assert world.shard.full

    def first() -> None:
        called.append("first")
        for _ in range(4):
            world.add(run_group())

    world.shard.wait(first)
    world.shard.wait(lambda: called.append("second"))
    world.clock.settle()
    assert called == []
    world.log.release(1)
    world.clock.settle()
    assert (called, world.shard.full) == (["first"], True)
    world.shard.check_invariants()
    world.clock.advance(1.0)
    world.log.release()
    world.clock.advance(1.0)
    assert (called, world.shard.pending_bytes) == (["first", "second"], 0)
    world.shard.wait(lambda: called.append("third"))
    assert called[2:] == ["third"]


def test_what_waits_too_long_leaves_and_what_is_under_way_stays() -> None:
    world = World()
    world.log.hold()
    world.add(run_group(), "a")
    world.clock.advance(4.0)
    world.add(run_group(), "b")
    world.clock.advance(2.0)
    world.add(run_group(), "c")
    world.shard.overdue(world.clock.now, 10.0)
    assert world.story == []
    world.clock.advance(4.0)
    world.shard.overdue(world.clock.now, 10.0)
    assert world.story == [("a", QUOTA_EXCEEDED)]
    world.clock.advance(4.0)
    world.shard.overdue(world.clock.now, 10.0)
    assert world.story == [("a", QUOTA_EXCEEDED), ("b", QUOTA_EXCEEDED)]
    world.shard.check_invariants()
    assert world.shard.messages_given_up == 1  # the one that is under way may be stored
    world.log.release()
    world.clock.advance(1.0)
    assert world.story[2:] == [("stored", 0, 1), ("stored", 1, 2), ("c", 0)]
    assert [batch.count for batch in world.batches()] == [1, 1]


def test_giving_up_makes_room() -> None:
    world = World(ShardLimits(pending_bytes_max=100))
    world.log.hold()
    called: list[int] = []
    world.add(run_group(payload=bytes(50)))
    world.clock.settle()
    world.add(run_group(payload=bytes(200)), "a")
    world.shard.wait(lambda: called.append(1))
    world.clock.advance(10.0)
    world.shard.overdue(world.clock.now, 10.0)
    assert (world.story, called) == ([("a", QUOTA_EXCEEDED)], [1])


def test_a_group_that_the_store_could_not_take_is_refused_at_the_end_of_the_turn() -> None:
    world = World(ShardLimits(group_bytes_max=1000))
    world.add(run_group(payload=bytes(1000)), "large")
    world.add(run_group(payload=bytes(1000)))
    world.add(run_group(), "small")
    assert world.story == []
    world.clock.settle()
    assert sorted(world.story, key=str) == [("large", QUOTA_EXCEEDED), ("small", 0), ("stored", 0, 1)]
    assert world.shard.messages_given_up == 2
    world.shard.check_invariants()


def test_a_log_that_ends_fails_the_shard_until_it_is_restarted() -> None:
    world = World(ShardLimits(batch_bytes_max=100))
    errors: list[object] = []
    called: list[int] = []
    world.shard.on_failed = errors.append
    world.add(run_group(), "z")
    world.clock.advance(1.0)
    world.log.hold()
    for name in "abc":
        world.add(run_group(payload=bytes(90)), name)
    world.clock.settle()
    error = Deposed("another owner")
    world.log.fail(error)
    world.log.release()
    world.shard.wait(lambda: called.append(1))
    world.clock.settle()
    assert world.story[2:] == [(name, QUOTA_EXCEEDED) for name in "abc"]
    assert (errors, world.shard.failed, called) == ([error], error, [1])
    world.shard.check_invariants()
    world.add(run_group(), "d")
    assert world.story[-1] == ("c", QUOTA_EXCEEDED)
    world.clock.settle()
    assert world.story[-1] == ("d", QUOTA_EXCEEDED)
    assert world.shard.messages_given_up == 4

    with pytest.raises(CallerError):
        world.shard.restart(0)  # less than what was stored
    world.log.fail(None)
    world.shard.restart(2)  # what was under way turns out to be stored
    assert (world.shard.head, world.shard.stored, world.shard.recent.batches) == (2, 2, [])
    world.add(run_group(), "e")
    world.clock.advance(1.0)
    assert world.story[-2:] == [("stored", 2, 3), ("e", 0)]
    with pytest.raises(CallerError):
        world.shard.restart(3)
    world.shard.check_invariants()


def test_a_restart_at_the_same_place_keeps_what_is_in_memory() -> None:
    world = World()
    world.add(run_group())
    world.clock.advance(1.0)
    world.log.fail(Deposed("x"))
    world.add(run_group())
    world.clock.advance(1.0)
    world.shard.restart(1)
    assert world.shard.recent.find(0) is world.stored[0]
    world.shard.check_invariants()


def test_an_answer_without_an_append_is_a_broken_invariant() -> None:
    world = World()
    answers = []
    world.shard = type(world.shard)(
        0, lambda _, done: answers.append(done), world.clock.call_later, world.clock.time, world.stored.append
    )
    world.add(run_group())
    world.clock.settle()
    answers[0](1)
    with pytest.raises(InvariantError):
        answers[0](2)


def test_what_it_counts() -> None:
    world = World(ShardLimits(linger_s=0.0))
    for count in (1, 500):
        world.add(run_group(count=count))
        world.clock.settle()
    shard = world.shard
    assert (shard.batches_appended, shard.messages_appended) == (2, 501)
    assert shard.bytes_appended == world.log.bytes


class Faults:
    """Stands in for the armed fault points of a process under test."""

    armed = True

    def __init__(self, world: World, *broken: str) -> None:
        self._world = world
        self._broken = broken

    def hit(self, point: str) -> None:
        self._world.story.append((point,))

    def broken(self, name: str) -> bool:
        return name in self._broken


def armed(monkeypatch: pytest.MonkeyPatch, world: World, *broken: str) -> None:
    stand_in = Faults(world, *broken)
    for name in ("armed", "hit", "broken"):
        monkeypatch.setattr(faults, name, getattr(stand_in, name))


def test_its_fault_points_are_hit_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    armed(monkeypatch, world)
    world.add(run_group(), "a")
    world.clock.settle()
    assert world.story == [
        ("journal.append",),
        ("journal.stored",),
        ("stored", 0, 1),
        ("a", 0),
        ("journal.acknowledged",),
    ]


def test_a_broken_build_acknowledges_before_the_append(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    armed(monkeypatch, world, "ack_before_append")
    world.log.hold()
    world.add(run_group(), "a")
    world.clock.settle()
    assert world.story == [("journal.append",), ("a", 0)]
    world.log.release()
    world.clock.settle()
    assert world.story.count(("a", 0)) == 1


def test_a_broken_build_swaps_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    armed(monkeypatch, world, "batches_swapped")
    for number in range(4):
        world.add(run_group(b"t/%d" % number))
    world.clock.settle()
    assert [group.topic for group in world.batches()[0].groups] == [b"t/2", b"t/3", b"t/0", b"t/1"]

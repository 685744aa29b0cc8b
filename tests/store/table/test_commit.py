"""Group commit: one record under way, in order, done after the answer, bounds that say so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from brookmq.base.errors import InvariantError
from brookmq.store.errors import Deposed, StoreError
from brookmq.store.table.commit import GroupCommit
from brookmq.store.table.format import (
    FIRST_PIECE,
    LAST_PIECE,
    PIECE,
    WHOLE,
    content_of,
    entry_of,
    form_of,
    split_changes,
)
from brookmq.store.table.interface import Entry, part_of
from brookmq.store.table.limits import TableLimits
from tests.store.table.simulated import Loop

LIMITS = TableLimits(linger_s=0.002, record_bytes=1_000, record_bytes_max=2_000, piece_bytes_max=3_000)


class World:
    """A commit with a log that answers when it is told."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.sent: list[tuple[float, bytes]] = []
        self.answer: Callable[[int | StoreError], None] | None = None
        self.appended: list[int] = []
        self.follower: bytes | None = None
        self.done: list[object] = []
        self.failures: list[StoreError] = []
        self.sequence = 10
        self.commit = GroupCommit(
            self.append,
            self.loop.call_later,
            lambda: self.loop.now,
            LIMITS,
            self.sequence,
            self.heard,
            lambda: self.done.append("all"),
            self.failures.append,
        )

    def append(self, body: bytes, done: Callable[[int | StoreError], None]) -> None:
        assert self.answer is None, "one record under way"
        self.sent.append((self.loop.now, body))
        self.answer = done

    def heard(self, sequence: int, body: bytes, parts: set[int]) -> bytes | None:
        self.appended.append(sequence)
        follower, self.follower = self.follower, None
        return follower

    def stored(self) -> None:
        assert self.answer is not None
        self.sequence += 1
        answer, self.answer = self.answer, None
        answer(self.sequence)
        self.commit.check_invariants()

    def change(self, number: int, size: int = 10) -> None:
        key = b"k%d" % number
        self.commit.change(part_of(key), key, bytes(size), lambda: self.done.append(number))
        self.commit.check_invariants()

    def turns(self, seconds: float = 1.0) -> None:
        ends_at = self.loop.now + seconds
        while self.loop._events and self.loop._events[0][0] <= ends_at and self.answer is None:
            self.loop.step()
            self.commit.check_invariants()

    def keys(self, index: int) -> list[bytes]:
        return [entry[0] for entry in entries(self.sent[index][1])]


def entries(body: bytes) -> list[Entry]:
    tail: dict[int, list[tuple[int, bytes]]] = {}
    split_changes(content_of(body), 1, tail, "")
    return sorted(entry_of(change) for changes in tail.values() for _, change in changes)


def test_what_comes_in_one_turn_is_one_record_and_done_in_order_after_the_answer() -> None:
    world = World()
    for number in range(3):
        world.change(number)
    assert world.sent == [], "nothing is appended within a change"
    world.turns()
    assert len(world.sent) == 1
    assert world.keys(0) == [b"k0", b"k1", b"k2"]
    assert world.done == []
    assert world.commit.oldest_waiting(world.loop.now + 3) == pytest.approx(3)
    world.stored()
    assert world.done == [0, 1, 2, "all"]
    assert world.commit.waiting_bytes == 0
    assert world.commit.idle
    assert world.commit.done_sequence == 11
    assert world.commit.oldest_waiting(world.loop.now) == 0.0


def test_what_comes_meanwhile_is_the_next_record_not_sooner_than_the_linger() -> None:
    world = World()
    world.change(0)
    world.turns()
    began = world.sent[0][0]
    world.change(1)
    world.change(2)
    world.stored()
    world.turns()
    assert world.sent[1][0] == pytest.approx(began + LIMITS.linger_s)
    assert world.keys(1) == [b"k1", b"k2"]


def test_a_records_worth_does_not_linger_and_one_holds_no_more_than_its_bound() -> None:
    world = World()
    world.change(0)
    world.turns()
    began = world.sent[0][0]
    for number in range(1, 8):
        world.change(number, size=600)
    world.stored()
    world.turns()
    assert world.sent[1][0] == began
    assert [len(world.keys(1))] == [3]
    for _ in range(2):
        world.stored()
        world.turns()
    assert [len(world.keys(index)) for index in (1, 2, 3)] == [3, 3, 1]
    world.stored()
    assert world.done == [0, "all", 1, 2, 3, "all", 4, 5, 6, "all", 7, "all"]


def test_a_large_change_goes_in_pieces_and_is_done_after_the_last() -> None:
    world = World()
    world.change(0, size=8_000)
    world.change(1)
    for form in (FIRST_PIECE, PIECE, LAST_PIECE):
        world.turns()
        assert form_of(world.sent[-1][1], "") == form
        assert world.done == []
        assert world.commit.settled is (form == FIRST_PIECE)
        world.stored()
    assert world.done == [0, "all"]
    assert world.commit.done_sequence == 13
    assert entries(b"xx" + b"".join(content_of(body) for _, body in world.sent)) == [(b"k0", bytes(8_000))]
    world.turns()
    assert form_of(world.sent[-1][1], "") == WHOLE


def test_a_follower_is_appended_right_behind() -> None:
    world = World()
    world.change(0)
    world.turns()
    world.follower = b"\x01\x03follower"
    world.change(1)
    world.stored()
    world.turns()
    assert world.sent[1][1] == b"\x01\x03follower"
    world.change(2)
    world.stored()
    world.turns()
    assert world.keys(2) == [b"k1", b"k2"]
    world.stored()
    assert world.done == [0, "all", "all", 1, 2, "all"]


def test_a_done_that_raises_keeps_nobody_else_from_theirs() -> None:
    world = World()

    def bug() -> None:
        raise ZeroDivisionError

    world.commit.change(1, b"a", b"", bug)
    world.change(1)
    world.commit.change(1, b"c", b"", None)
    world.turns()
    world.change(2)
    with pytest.raises(ZeroDivisionError):
        world.stored()
    assert world.done == []
    assert not world.commit.settled
    world.turns()
    assert world.done == [1, "all"]
    world.stored()
    assert world.done == [1, "all", 2, "all"]
    assert world.commit.idle


def test_changes_within_a_done_are_the_next_record() -> None:
    world = World()
    world.commit.change(1, b"a", b"", lambda: world.change(5))
    world.turns()
    world.stored()
    world.turns()
    assert world.keys(1) == [b"k5"]


def test_a_log_that_ends_fails_it_and_nothing_is_done() -> None:
    world = World()
    world.change(0)
    world.turns()
    world.change(1)
    assert world.answer is not None
    answer, world.answer = world.answer, None
    answer(Deposed("another"))
    world.change(2)
    world.turns()
    assert [str(error) for error in world.failures] == ["another"]
    assert world.done == []
    assert len(world.sent) == 1
    assert world.commit.waiting_bytes > 0


def test_an_answer_to_nothing_is_a_bug() -> None:
    world = World()
    world.change(0)
    world.turns()
    assert world.answer is not None
    answer = world.answer
    world.stored()
    with pytest.raises(InvariantError):
        answer(12)

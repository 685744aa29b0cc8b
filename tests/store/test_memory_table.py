"""The twin in memory keeps what it says: order, what a crash leaves, and loading in parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pytest

from brookmq.store.memory_table import MemoryTable
from brookmq.store.table.interface import META_KEY, META_PART, PARTS, Entry, part_of
from tests.store.table.owners import Owner


class Turns:
    """Turns of a loop, when a test says so."""

    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()

    def settle(self) -> None:
        while self.soon:
            self.soon.popleft()()


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def table(turns: Turns) -> MemoryTable:
    return MemoryTable(turns.soon.append)


def test_a_new_one_is_loaded_and_changes_are_done_in_order_in_the_next_turn(table: MemoryTable, turns: Turns) -> None:
    owner = Owner(table)
    assert table.all_loaded
    assert table.meta_state() == (b"", [])
    owner.change(b"a", b"1")
    owner.change(b"b", b"2")
    assert owner.done == []
    assert table.waiting_bytes == 4
    turns.settle()
    assert owner.done == [(b"a", b"1"), (b"b", b"2")]
    assert table.waiting_bytes == 0
    table.check_invariants()


def test_what_is_held_is_done_when_told(turns: Turns) -> None:
    now = 5.0
    table = MemoryTable(turns.soon.append, lambda: now)
    owner = Owner(table)
    table.hold()
    for number in range(3):
        owner.change(b"k%d" % number, b"x")
    turns.settle()
    assert owner.done == []
    now = 7.5
    assert table.oldest_waiting(now) == 2.5
    table.release(1)
    turns.settle()
    assert owner.done == [(b"k0", b"x")]
    table.release()
    assert [key for key, _ in owner.done] == [b"k0", b"k1", b"k2"]
    assert table.oldest_waiting(now) == 0.0
    owner.change(b"k3", b"x")
    turns.settle()
    assert owner.done[-1] == (b"k3", b"x")


@pytest.mark.parametrize("unanswered", [0, 1, 2])
def test_a_crash_leaves_what_was_done_and_some_of_the_rest(table: MemoryTable, turns: Turns, unanswered: int) -> None:
    owner = Owner(table)
    owner.change(b"a", b"1")
    owner.change(META_KEY, b"epoch 1")
    turns.settle()
    table.hold()
    owner.change(b"a", b"2")
    owner.change(b"b", b"2")
    again = table.reopened(unanswered)
    turns.settle()
    assert len(owner.done) == 2, "the dead one answers nobody"
    assert again.meta_state() == (b"", [b"epoch 1"])
    assert not again.all_loaded
    heir = Owner(again)
    again.begin_loading()
    turns.settle()
    assert again.all_loaded
    expected = {b"a": b"1", META_KEY: b"epoch 1"}
    expected.update([(b"a", b"2"), (b"b", b"2")][:unanswered])
    assert heir.states == expected


def test_a_part_is_loaded_when_asked_for_with_what_was_changed_meanwhile(table: MemoryTable, turns: Turns) -> None:
    owner = Owner(table)
    owner.change(b"a", b"1")
    owner.change(b"other", b"1")
    turns.settle()
    again = table.reopened()
    heir = Owner(again)
    assert not again.loaded(part_of(b"a"))
    assert again.loaded(part_of(b"nothing"))
    woken: list[int] = []
    again.change(b"a", b"2")
    again.load(part_of(b"a"), lambda: woken.append(1))
    assert woken == []
    turns.settle()
    assert woken == [1]
    assert heir.states == {b"a": b"2"}
    assert not again.all_loaded


def test_snapshots_give_states_and_later_changes_ops(table: MemoryTable, turns: Turns) -> None:
    owner = Owner(table)
    for number in range(50):
        owner.change(b"k%d" % number, b"old")
    owner.change(META_KEY, b"m1")
    turns.settle()
    table.snapshot_all()
    owner.change(b"k7", b"new")
    owner.change(b"k8", b"")
    owner.change(META_KEY, b"m2")
    turns.settle()
    again = table.reopened()
    assert again.meta_state() == (b"m1", [b"m2"])
    heir = Owner(again)
    again.begin_loading()
    turns.settle()
    assert heir.states == owner.states
    assert b"k8" not in heir.states
    again.check_invariants()


def test_a_full_one_says_so_and_calls_when_there_is_room(turns: Turns) -> None:
    table = MemoryTable(turns.soon.append, waiting_bytes_max=3)
    owner = Owner(table)
    told: list[str] = []
    table.wait(lambda: told.append("at once"))
    assert told == []
    turns.settle()
    assert told == ["at once"]
    table.hold()
    owner.change(b"a", b"1")
    assert not table.full
    owner.change(b"b", b"1")
    assert table.full
    table.wait(lambda: told.append("room"))
    turns.settle()
    assert told == ["at once"]
    table.release(1)
    assert told == ["at once", "room"]


def test_parts_are_by_hash_and_meta_has_its_own() -> None:
    assert part_of(META_KEY) == META_PART == PARTS
    assert {part_of(b"%d" % number) for number in range(20_000)} == set(range(PARTS))
    assert part_of(b"c" + "Gerät".encode()) == 809  # stored tables depend on it


def test_a_part_that_is_taken_in_steps_is_loaded_at_their_end(turns: Turns) -> None:
    before = MemoryTable(turns.soon.append)
    Owner(before).change(b"a", b"1")
    turns.settle()
    table = before.reopened()
    seen: list[Entry] = []
    woken: list[bool] = []

    def take(part: int, states: list[Entry], ops: list[Entry]) -> Iterator[None]:
        yield
        seen.extend(ops)

    table.on_part = take
    part = part_of(b"a")
    table.load(part, lambda: woken.append(table.loaded(part)))
    turns.soon.popleft()()
    assert not table.loaded(part)
    table.change(b"a", b"2")
    turns.settle()
    assert woken == [True]
    assert seen == [(b"a", b"1"), (b"a", b"2")]

"""A small table that is whole in memory: what was stored is there again, and nothing is asked too early."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from brookmq.base.errors import CallerError
from brookmq.store.memory_table import MemoryTable
from brookmq.store.table.states import KeyedStates


class World:
    def __init__(self, table: MemoryTable | None = None) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.table = table or MemoryTable(self.soon.append)
        self.table._call_soon = self.soon.append
        self.states = KeyedStates(self.table, self.soon.append)
        self.told: list[str] = []
        self.states.when_loaded(lambda: self.told.append("loaded"))

    def settle(self) -> None:
        while self.soon:
            self.soon.popleft()()

    def reopened(self, unanswered: int = 0) -> World:
        return World(self.table.reopened(unanswered))


def test_what_was_put_is_there_after_a_crash_with_and_without_snapshots() -> None:
    world = World()
    world.states.begin()
    world.settle()
    assert world.told == ["loaded"]
    for number in range(50):
        world.states.put(b"k%d" % number, b"%d" % number, lambda number=number: world.told.append(str(number)))  # type: ignore[misc]
    assert world.states.get(b"k7") == b"7"
    assert world.told == ["loaded"], "nothing is done before it is stored"
    world.settle()
    assert world.told == ["loaded", *map(str, range(50))]
    world.table.snapshot_all()
    assert world.states.remove(b"k7", lambda: world.told.append("gone"))
    assert not world.states.remove(b"k7")
    world.states.put(b"k8", b"eight")
    world.settle()
    assert world.told[-1] == "gone"

    again = world.reopened()
    assert not again.states.loaded
    for ask in (lambda: again.states.get(b"k8"), lambda: again.states.put(b"a", b""), lambda: again.states.items(b"")):
        with pytest.raises(CallerError, match="before it is loaded"):
            ask()
    again.states.begin()
    again.settle()
    assert again.told == ["loaded"]
    assert again.states.get(b"k7") is None
    assert again.states.get(b"k8") == b"eight"
    assert len(again.states.items(b"k")) == 49
    assert again.states.items(b"k1") == sorted((b"k%d" % n, b"%d" % n) for n in (1, *range(10, 20)))
    again.states.when_loaded(lambda: again.told.append("at once"))
    again.settle()
    assert again.told == ["loaded", "at once"]
    again.states.clear()
    again.settle()
    assert again.reopened().table.all_loaded is False
    assert again.states.items(b"") == []


def test_a_crash_takes_what_was_not_stored() -> None:
    world = World()
    world.states.begin()
    world.settle()
    world.table.hold()
    world.states.put(b"a", b"1")
    world.states.put(b"b", b"2")
    again = world.reopened(1)
    again.states.begin()
    again.settle()
    assert again.states.items(b"") == [(b"a", b"1")]


def test_who_watches_is_told_of_changes_by_whomever() -> None:
    world = World()
    world.states.begin()
    world.settle()
    told: list[tuple[bytes, bytes | None]] = []
    world.states.watch(b"k", lambda key: told.append((key, world.states.get(key))))
    world.states.put(b"k1", b"a")
    world.states.put(b"other", b"a")
    world.states.put(b"k1", b"b")
    world.states.clear()
    assert told == [(b"k1", b"a"), (b"k1", b"b"), (b"k1", None)]
    assert not world.states.remove(b"k1")
    assert len(told) == 3

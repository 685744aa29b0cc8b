"""Loading: who waits comes first, the background leaves time to others, changes meanwhile are not lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from brookmq.base.errors import InvariantError
from brookmq.store.errors import RecordsLost, StoreError
from brookmq.store.table.format import encode_change, entry_header
from brookmq.store.table.interface import META_PART, Entry
from brookmq.store.table.loading import READ_PARTS_MAX, Found, Loading, Snapshot
from tests.store.table.simulated import Loop


def snapshot(part: int, covered: int = 50) -> Snapshot:
    key = b"key of %d" % part
    return Snapshot(covered, entry_header(len(key), 5) + key + b"state")


class World:
    def __init__(self, snapshotted: set[int], tail: dict[int, list[tuple[int, bytes]]] | None = None) -> None:
        self.loop = Loop()
        self.asked: list[list[int]] = []
        self.answer: Callable[[Found], None] | None = None
        self.given: list[tuple[int, int, list[Entry], list[Entry]]] = []
        self.failures: list[StoreError] = []
        self.cost_s = 0.0
        self.loading = Loading(
            self.get,
            self.give,
            self.failures.append,
            self.loop.call_later,
            lambda: self.loop.now,
            0.002,
            snapshotted,
            tail or {},
        )

    def get(self, parts: list[int], done: Callable[[Found], None]) -> None:
        assert self.answer is None, "one request under way"
        self.asked.append(parts)
        self.answer = done

    def give(self, part: int, covered: int, states: list[Entry], ops: list[Entry]) -> Iterator[None] | None:
        self.loop.now += self.cost_s
        self.given.append((part, covered, states, ops))
        return None

    def found(self, parts: list[int] | None = None) -> None:
        assert self.answer is not None
        answer, self.answer = self.answer, None
        answer({part: snapshot(part) for part in (self.asked[-1] if parts is None else parts)})

    def turns(self) -> None:
        while self.loop.step():
            pass

    @property
    def parts(self) -> list[int]:
        return [part for part, *_ in self.given]


def test_what_has_nothing_in_the_store_is_loaded() -> None:
    world = World(set(), {META_PART: [(1, encode_change(META_PART, b"", b"op"))]})
    assert world.loading.all_loaded
    woken: list[int] = []
    world.loading.load(3, lambda: woken.append(3))
    assert woken == []
    world.turns()
    assert woken == [3]
    assert world.given == []


def test_a_part_comes_with_the_changes_that_its_snapshot_does_not_cover() -> None:
    tail = {7: [(50, encode_change(7, b"a", b"old")), (51, encode_change(7, b"a", b"new"))]}
    world = World({7, 8}, tail)
    assert not world.loading.loaded(7)
    world.loading.note(7, b"b", b"newest")
    woken: list[int] = []
    world.loading.load(7, lambda: woken.append(1))
    world.loading.load(7, lambda: woken.append(2))
    world.turns()
    assert world.asked == [[7]]
    world.loading.note(7, b"c", b"while it is read")
    world.found()
    world.turns()
    assert world.given == [
        (7, 50, [(b"key of 7", b"state")], [(b"a", b"new"), (b"b", b"newest"), (b"c", b"while it is read")])
    ]
    assert woken == [1, 2]
    assert world.loading.loaded(7)
    assert not world.loading.all_loaded
    assert world.asked == [[7]], "nothing else before it is asked for"


def test_a_part_without_a_snapshot_needs_no_reading() -> None:
    world = World(set(), {7: [(50, encode_change(7, b"a", b"op"))]})
    world.loading.begin()
    world.turns()
    assert world.given == [(7, 0, [], [(b"a", b"op")])]
    assert world.loading.all_loaded


def test_all_are_loaded_in_the_background_and_who_waits_comes_first() -> None:
    world = World(set(range(100)))
    world.loading.begin()
    world.turns()
    assert world.asked == [list(range(READ_PARTS_MAX))]
    world.loading.load(90, lambda: None)
    world.turns()
    world.found([0, 1, 2])  # an answer need not have all
    world.turns()
    assert world.asked[1] == [90]
    world.found()
    world.turns()
    assert world.parts == [0, 1, 2, 90]
    while not world.loading.all_loaded:
        world.found()
        world.turns()
    assert sorted(world.parts) == list(range(100))


def test_who_waits_does_not_wait_for_what_is_ready_for_others() -> None:
    world = World(set(range(40)))
    world.cost_s = 0.003
    world.loading.begin()
    world.turns()
    world.found(list(range(20)))
    world.loop.step()  # one slice: one part
    assert world.parts == [0]
    world.loading.load(15, lambda: None)
    world.loop.step()
    assert world.parts == [0, 15]


def test_the_background_takes_at_most_half_of_the_time() -> None:
    world = World(set(range(20)))
    world.cost_s = 0.003
    began = world.loop.now
    world.loading.begin()
    world.turns()
    world.found()
    world.turns()
    assert len(world.given) == 20
    assert world.loop.now - began >= 2 * 20 * 0.003 - 0.004


def test_small_parts_are_given_many_in_a_slice() -> None:
    world = World(set(range(32)))
    world.loading.begin()
    world.turns()
    world.found()
    world.loop.step()
    assert len(world.given) == 32


@pytest.mark.parametrize("broken", [RecordsLost("gone"), {5: Snapshot(1, b"no entries")}])
def test_what_cannot_be_read_is_told_once(broken: Found) -> None:
    world = World({5, 6})
    world.loading.begin()
    world.turns()
    assert world.answer is not None
    world.answer(broken)
    world.turns()
    assert len(world.failures) == 1
    assert world.given == []
    world.loading.load(6, lambda: None)
    world.turns()
    assert len(world.asked) == 1


def test_an_end_ends_it() -> None:
    world = World({5})
    world.loading.begin()
    world.turns()
    world.loading.end()
    world.found()
    world.turns()
    assert world.given == []


def test_an_answer_without_parts_is_a_bug() -> None:
    world = World({5})
    world.loading.begin()
    world.turns()
    with pytest.raises(InvariantError):
        world.found([])


class SteppedWorld(World):
    """An owner that needs three steps for each part, of 1 ms each."""

    def __init__(self, snapshotted: set[int]) -> None:
        super().__init__(snapshotted)
        self.steps: list[int] = []
        self.ops: dict[int, list[Entry]] = {}

    def give(self, part: int, covered: int, states: list[Entry], ops: list[Entry]) -> Iterator[None]:
        super().give(part, covered, states, ops)
        self.ops[part] = ops
        return self.take(part)

    def take(self, part: int) -> Iterator[None]:
        for _ in range(3):
            self.steps.append(part)
            self.loop.now += 0.001
            yield


def test_a_large_part_is_given_over_several_slices_and_loaded_when_it_is_whole() -> None:
    world = SteppedWorld({5, 6})
    woken: list[list[int]] = []
    world.loading.load(5, lambda: woken.append([*world.steps]))
    world.turns()
    world.found()
    world.loop.step()
    assert world.steps == [5, 5]
    assert not world.loading.loaded(5)
    world.loading.note(5, b"key", b"made meanwhile")
    assert world.ops[5] == [(b"key", b"made meanwhile")]
    world.turns()
    assert woken == [[5, 5, 5]]
    assert world.loading.loaded(5)
    assert world.parts == [5], "it is given once"
    assert world.asked == [[5]], "and read once"


def test_who_waits_does_not_wait_for_the_rest_of_a_part_for_others() -> None:
    world = SteppedWorld({5, 6})
    world.loading.begin()
    world.turns()
    world.found()
    world.loop.step()
    assert world.steps == [5, 5]
    world.loading.load(6, lambda: None)
    world.turns()
    assert world.steps == [5, 5, 6, 6, 6, 5]
    assert world.loading.all_loaded


def test_an_end_ends_it_between_two_steps() -> None:
    world = SteppedWorld({5})
    world.loading.begin()
    world.turns()
    world.found()
    world.loop.step()
    world.loading.end()
    world.turns()
    assert world.steps == [5, 5]
    assert not world.loading.loaded(5)

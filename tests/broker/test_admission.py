"""A few in each turn, the others in line, nobody before who came earlier."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from brookmq.base.counters import Counters
from brookmq.broker.admission import Admission
from brookmq.broker.outlet import Turn


class Door:
    def __init__(self) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.admission = Admission(Turn(self.soon.append, Counters()), 2)
        self.came: list[int] = []

    def arrive(self, *numbers: int) -> None:
        for number in numbers:
            self.admission.run(partial(self.came.append, number))

    def turn(self) -> None:
        for _ in range(len(self.soon)):
            self.soon.popleft()()


def test_some_come_at_once_and_the_others_in_line() -> None:
    door = Door()
    door.arrive(1, 2, 3, 4, 5)
    assert door.came == [1, 2]
    door.turn()
    assert door.came == [1, 2, 3, 4]
    door.arrive(6)
    assert door.came == [1, 2, 3, 4], "5 came before"
    door.turn()
    assert door.came == [1, 2, 3, 4, 5, 6]


def test_nothing_is_scheduled_when_nobody_comes() -> None:
    door = Door()
    door.arrive(1, 2, 3)
    while door.soon:
        door.turn()
    assert door.came == [1, 2, 3]
    assert door.admission.free()


def test_whoever_is_let_in_may_line_up_again() -> None:
    door = Door()

    def again() -> None:
        door.came.append(0)
        if len(door.came) < 9:
            door.admission.line_up(again)

    door.admission.line_up(again)
    turns = 0
    while door.soon:
        door.turn()
        turns += 1
    assert len(door.came) == 9
    assert turns >= 5, "two in each turn"

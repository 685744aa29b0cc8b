"""Who comes in when thousands come at once: a few in each turn of the loop, the others wait in line.

A node that was restarted has its whole fleet at the door, and each client brings work: its session, its filters, what
it has missed. The clients that are there already must not notice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from brookmq.broker.outlet import Turn

STEPS_IN_A_TURN = 4  # some 100 to 300 µs each


class Admission:
    """Steps of many clients, in the order in which they came. The line is bounded by the connections there are."""

    def __init__(self, turn: Turn, steps_in_a_turn: int = STEPS_IN_A_TURN) -> None:
        self.turn = turn
        self.steps_in_a_turn = steps_in_a_turn
        self.waiting: deque[Callable[[], None]] = deque()
        self.taken = 0  # in this turn
        self._scheduled = False

    def free(self) -> bool:
        """Whether a step may be taken now; it counts as taken then."""
        if self.waiting or self.taken >= self.steps_in_a_turn:
            return False
        self.taken += 1
        self._schedule()
        return True

    def line_up(self, step: Callable[[], None]) -> None:
        """Call ``step`` when its turn has come."""
        self.waiting.append(step)
        self._schedule()

    def run(self, step: Callable[[], None]) -> None:
        """Now, or when its turn has come."""
        if self.free():
            step()
        else:
            self.line_up(step)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.turn.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._scheduled = False
        self.taken = 0
        while self.waiting and self.taken < self.steps_in_a_turn:
            self.taken += 1
            self.waiting.popleft()()
        if self.taken:
            self._schedule()

"""Answers that wait for the store, but not for ever.

All wait for the same time (``store.wait``), so they are in the order of their deadlines as they come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Wait:
    """One that waits; called when what it waits for is there."""

    __slots__ = ("answer", "deadline", "give_up", "over")

    def __init__(self, deadline: float, answer: Callable[[], None], give_up: Callable[[], None]) -> None:
        self.deadline = deadline
        self.answer = answer
        self.give_up = give_up
        self.over = False

    def __call__(self) -> None:
        if not self.over:
            self.over = True
            self.answer()


class Waits:
    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self._waiting: deque[Wait] = deque()

    def begin(self, answer: Callable[[], None], give_up: Callable[[], None]) -> Wait:
        """``answer`` is called when the result is, in time; else ``give_up``, once."""
        wait = Wait(self.clock() + self.seconds, answer, give_up)
        self._waiting.append(wait)
        return wait

    def tick(self) -> None:
        now = self.clock()
        while self._waiting and (self._waiting[0].over or self._waiting[0].deadline <= now):
            wait = self._waiting.popleft()
            if not wait.over:
                wait.over = True
                wait.give_up()

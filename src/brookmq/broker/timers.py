"""Things that are due later: delayed wills and the ends of sessions, in one heap.

A timer names the session and the generation it was set for. A client that comes back raises the generation, so its old
timers are void without being searched for; void ones leave the heap when they are due, or when they have become as many
as the others: a client that comes and goes for days shall not leave a timer each time.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple

from brookmq.broker.session import Session

Kind = Literal["will", "expiry"]


SWEEP_COUNT_MIN = 1024  # below that, void timers are not worth looking for


class Timer(NamedTuple):
    due: float  # unix seconds
    number: int  # in the order of setting: makes timers of one moment comparable
    kind: Kind
    session: Session
    generation: int


class Timers:
    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._number = 0
        self._sweep_count = SWEEP_COUNT_MIN  # timers at which void ones are looked for

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, due: float, kind: Kind, session: Session) -> None:
        self._number += 1
        heappush(self._heap, Timer(due, self._number, kind, session, session.generation))
        if len(self._heap) > self._sweep_count:
            self._heap = [timer for timer in self._heap if timer.generation == timer.session.generation]
            heapify(self._heap)
            self._sweep_count = max(SWEEP_COUNT_MIN, 2 * len(self._heap))

    def due(self, now: float, limit: int) -> list[Timer]:
        """Up to ``limit`` timers that are due and not void."""
        found: list[Timer] = []
        while self._heap and self._heap[0].due <= now and len(found) < limit:
            timer = heappop(self._heap)
            if timer.generation == timer.session.generation:
                found.append(timer)
        return found

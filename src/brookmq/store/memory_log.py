"""A log in memory: the twin of the ``append(body, done)`` of a log in the store, for tests, simulations and nodes that
keep nothing on disk.

Answers come through ``call_soon`` as those of a store would, one at a time and in order. It can hold them back, fail,
and crash: then what had no answer is in the log, or not, as the test decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from brookmq.store.errors import StoreError
from brookmq.store.record import DATA

Done = Callable[[int | StoreError], None]
CallSoon = Callable[[Callable[[], None]], object]


class MemoryRecord(NamedTuple):
    """What was appended, as it was given."""

    body: bytes
    kind: int
    subject: str


class MemoryLog:
    """``records`` are those that are stored, by sequence; the first has 1, as in the store."""

    def __init__(self, call_soon: CallSoon, bytes_max: int | None = None) -> None:
        self.records: dict[int, MemoryRecord] = {}
        self.last_sequence = 0
        self.bytes = 0  # of the bodies in ``records``
        self.holding = False  # answers wait for ``release``
        self.failure: StoreError | None = None  # the answer to everything that comes
        self._call_soon = call_soon
        self._bytes_max = bytes_max  # beyond it the oldest records go, but never the last one; None: all stay
        self._unanswered: deque[tuple[MemoryRecord, Done]] = deque()
        self._due = 0  # answers that were asked of ``call_soon`` and did not come yet
        self._life = 0  # grows with each crash: what was asked for before it never comes

    @property
    def unanswered(self) -> int:
        """How many appends wait for their answer."""
        return len(self._unanswered)

    def append(self, body: bytes, done: Done, kind: int = DATA, subject: str = "") -> None:
        """Takes a record; ``done`` gets its sequence, or the failure that was set."""
        self._unanswered.append((MemoryRecord(body, kind, subject), done))
        if not self.holding:
            self._answer_later(1)

    def hold(self) -> None:
        """From now on no answer comes before ``release``."""
        self.holding = True

    def release(self, count: int | None = None) -> None:
        """Answers so many of those that wait, the oldest first; all of them, and those to come, when none is said."""
        waiting = len(self._unanswered) - self._due
        if count is None:
            self.holding = False
            self._answer_later(waiting)
        else:
            self._answer_later(min(count, waiting))

    def fail(self, error: StoreError | None) -> None:
        """Every answer from now on is this error, for what waits too, and nothing is stored; None: all is well."""
        self.failure = error

    def crash(self, stored: int = 0) -> None:
        """No answer comes any more to what has none; the first ``stored`` of it are in the log."""
        for record, _ in list(self._unanswered)[:stored]:
            self._store(record)
        self._unanswered.clear()
        self._due = 0
        self._life += 1

    def bodies(self) -> list[bytes]:
        """What is stored, in order."""
        return [record.body for record in self.records.values()]

    def _answer_later(self, count: int) -> None:
        life = self._life
        for _ in range(count):
            self._due += 1
            self._call_soon(lambda: self._answer(life))

    def _answer(self, life: int) -> None:
        if life != self._life:
            return
        self._due -= 1
        record, done = self._unanswered.popleft()
        done(self.failure if self.failure is not None else self._store(record))

    def _store(self, record: MemoryRecord) -> int:
        self.last_sequence += 1
        self.records[self.last_sequence] = record
        self.bytes += len(record.body)
        while self._bytes_max is not None and self.bytes > self._bytes_max and len(self.records) > 1:
            self.bytes -= len(self.records.pop(next(iter(self.records))).body)
        return self.last_sequence

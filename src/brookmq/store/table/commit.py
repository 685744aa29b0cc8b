"""Group commit of a table's changes: one record under way, what comes meanwhile is the next one.

An idle table appends at the end of the turn in which something changed. After that it waits ``linger_s`` between the
beginnings of two appends, unless a record's worth waits: an append costs the store a sync at any size. ``done`` of each
change is called in order once its record is stored, never within ``change``.

A change too large for one record goes alone, in pieces, a record each; it is done when the last one is stored. What
hears of each record may answer with a *follower*, a record of its own, which is appended right behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from brookmq.base import faults
from brookmq.base.errors import InvariantError
from brookmq.store.errors import StoreError
from brookmq.store.table.format import (
    CHANGE_HEADER_BYTES,
    FIRST_PIECE,
    LAST_PIECE,
    PIECE,
    RECORD_STARTS,
    WHOLE,
    change_header,
)
from brookmq.store.table.limits import TableLimits

Done = Callable[[], None]
Append = Callable[[bytes, Callable[[int | StoreError], None]], None]  # answers later, with the record's sequence
CallLater = Callable[[float, Callable[[], None]], object]  # 0.0 seconds: at the end of this turn
Clock = Callable[[], float]


class Record:
    """Changes that will be stored together."""

    __slots__ = ("dones", "parts", "pieces", "since", "size", "taken")

    def __init__(self, since: float) -> None:
        self.pieces: list[bytes] = []  # of the body, in order
        self.size = 0  # of them
        self.parts: set[int] = set()
        self.dones: list[Done | None] = []
        self.taken = 0  # the number of its last change
        self.since = since  # when its first change came

    def bodies(self, piece_bytes_max: int) -> deque[bytes]:
        """What is appended for it: one body, or several for a large change."""
        content = b"".join(self.pieces)
        if len(content) <= piece_bytes_max:
            return deque((RECORD_STARTS[WHOLE] + content,))
        starts = range(0, len(content), piece_bytes_max)
        forms = [FIRST_PIECE, *[PIECE] * (len(starts) - 2), LAST_PIECE]
        return deque(
            RECORD_STARTS[form] + content[start : start + piece_bytes_max]
            for form, start in zip(forms, starts, strict=True)
        )


class GroupCommit:
    """Invariants: records are appended in the order of their changes, one at a time; ``waiting_bytes`` is the size of
    all changes that are not known to be stored; ``done <= stored <= taken`` count changes."""

    def __init__(
        self,
        append: Append,
        call_later: CallLater,
        clock: Clock,
        limits: TableLimits,
        sequence: int,
        on_appended: Callable[[int, bytes, set[int]], bytes | None],
        on_done: Callable[[], None],
        on_failed: Callable[[StoreError], None],
    ) -> None:
        self.waiting_bytes = 0
        self.taken = 0  # changes that were taken, ever
        self.done = 0  # those that are stored, and whose ``done`` was called
        self.done_sequence: int = sequence  # up to here all changes in the log are done
        self.bytes_appended = 0
        self.records_appended = 0
        self.failed: StoreError | None = None
        self._append = append
        self._call_later = call_later
        self._clock = clock
        self._limits = limits
        self._on_appended = on_appended
        self._on_done = on_done
        self._on_failed = on_failed
        self._records: deque[Record] = deque()  # the last one takes changes
        self._follower: bytes | None = None
        self._under_way: Record | None = None
        self._bodies: deque[bytes] = deque()  # of the one under way: the first is being appended
        self._partly = False  # the log has some of its pieces
        self._settling: deque[Done] = deque()  # stored, to be called
        self._last_began = clock() - limits.linger_s
        self._soon = False  # the end of the turn is awaited
        self._timer = False  # the end of the linger is awaited

    @property
    def idle(self) -> bool:
        """Whether everything that was taken is done."""
        return self.done == self.taken

    @property
    def settled(self) -> bool:
        """Whether all that the log has is done: no change is there in part, and nobody is still to be told."""
        return not self._partly and not self._settling

    def change(self, part: int, key: bytes, op: bytes, done: Done | None) -> None:
        """Takes a change."""
        size = CHANGE_HEADER_BYTES + len(key) + len(op)
        records = self._records
        if not records or records[-1].size + size > self._limits.record_bytes_max:
            records.append(Record(self._clock()))
        record = records[-1]
        record.pieces += (change_header(part, len(key), len(op)), key, op)
        record.size += size
        record.parts.add(part)
        record.dones.append(done)
        self.taken += 1
        record.taken = self.taken
        self.waiting_bytes += size
        if self._under_way is None and not self._soon and (not self._timer or record.size >= self._limits.record_bytes):
            self._arm()

    def oldest_waiting(self, now: float) -> float:
        """For how many seconds the oldest change has waited; 0.0 when none waits."""
        if self._under_way is not None:
            return now - self._under_way.since
        return now - self._records[0].since if self._records else 0.0

    # When to append

    def _arm(self) -> None:
        """Something waits and nothing is under way: append when it is time."""
        if self.failed is not None or (not self._records and self._follower is None):
            return
        pause = self._last_began + self._limits.linger_s - self._clock()
        if (
            pause <= 0.0
            or self._follower is not None
            or len(self._records) > 1
            or self._records[0].size >= self._limits.record_bytes
        ):
            if not self._soon:
                self._soon = True
                self._call_later(0.0, self._turn_ended)
        elif not self._timer:
            self._timer = True
            self._call_later(pause, self._lingered)

    def _turn_ended(self) -> None:
        self._soon = False
        if self._under_way is None and (self._records or self._follower is not None) and self.failed is None:
            self._send()

    def _lingered(self) -> None:
        self._timer = False
        if self._under_way is None and not self._soon:
            self._arm()

    def _send(self) -> None:
        self._last_began = self._clock()
        if self._follower is not None:
            self._under_way = Record(self._last_began)
            self._bodies = deque((self._follower,))
            self._follower = None
        else:
            self._under_way = self._records.popleft()
            self._bodies = self._under_way.bodies(self._limits.piece_bytes_max)
        self._send_body()

    def _send_body(self) -> None:
        if faults.armed:
            faults.hit("state.append")
        self._append(self._bodies[0], self._answered)

    # What the log says

    def _answered(self, answer: int | StoreError) -> None:
        record = self._under_way
        if record is None:
            raise InvariantError("an answer, and nothing was under way")
        if isinstance(answer, StoreError):
            self._fail(answer)
            return
        if faults.armed:
            faults.hit("state.stored")
        body = self._bodies.popleft()
        self.bytes_appended += len(body)
        self.records_appended += 1
        self._follower = self._on_appended(answer, body, record.parts)
        self._partly = bool(self._bodies)
        if self._partly:
            self._send_body()
            return
        self._under_way = None
        self.waiting_bytes -= record.size
        self._settling.extend(done for done in record.dones if done is not None)
        self._arm()  # before anybody is told: one that raises must not keep the others waiting
        self._settle(record.taken, answer)

    def _settle(self, taken: int, sequence: int) -> None:
        """Calls what waited. One that raises is its owner's bug; the others are called all the same."""
        settling = self._settling
        try:
            while settling:
                settling.popleft()()
        finally:
            if settling:
                self._call_later(0.0, lambda: self._settle(taken, sequence))
            else:
                self.done = max(self.done, taken)
                self.done_sequence = max(self.done_sequence, sequence)
                self._on_done()

    def _fail(self, error: StoreError) -> None:
        """The log has ended: whether the record under way is stored is not known, and nothing more will be."""
        self.failed = error
        self._on_failed(error)

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        records = [*([self._under_way] if self._under_way is not None else ()), *self._records]
        rules = {
            "what waits is counted": self.waiting_bytes == sum(record.size for record in records),
            "changes are counted": self.taken - self.done >= sum(len(record.dones) for record in records),
            "in the order in which they came": [r.taken for r in records if r.dones]
            == sorted(r.taken for r in records if r.dones),
            "no more than a record holds": all(
                len(record.dones) <= 1 or record.size <= self._limits.record_bytes_max for record in records
            ),
            "what waits will be appended": not self._records
            or self._under_way is not None
            or self._soon
            or self._timer
            or self.failed is not None,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError("; ".join(broken))

"""One shard's appending: groups come in, batches go to its log, and those who wait are told.

Group commit: one batch is under way at a time (the log allows no more), and what comes meanwhile is the next batch, so
batches grow with the load. An idle shard appends at the end of the turn in which something came. After that it waits
``linger`` between the beginnings of two appends, unless a batch is worth an append of its own: each costs the store a
sync and two processes some 0.3 ms at any size, and without the pause a trickle of messages would cost one each.

When a batch is stored: first ``on_stored`` (receivers get the messages), then its tickets in the order in which they
came (publishers get their acknowledgements). Nobody is told anything inside ``add``.

A log that ends (another owner, a refusal for good) fails the shard: whether the batch under way is stored is not known,
and all who wait are told that it is not. ``restart`` begins anew behind what the log turns out to have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from brookmq.base import faults
from brookmq.base.errors import CallerError, InvariantError
from brookmq.mqtt.reasons import QUOTA_EXCEEDED
from brookmq.store.errors import StoreError
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.recent import RecentBatches

STORED = 0

Done = Callable[[int | StoreError], None]
Append = Callable[[bytes, Done], None]  # ``done`` gets the record's sequence, or why there is none; never twice
CallLater = Callable[[float, Callable[[], None]], object]  # 0.0 seconds: at the end of this turn


class Ticket(Protocol):
    """Somebody who waits for a group."""

    def settle(self, reason: int, /) -> None:
        """Called once: 0 when it is stored, else the MQTT reason code to tell the publisher."""


class Shard:
    """Invariants: ``stored <= head``; they are equal when nothing is under way; ``pending_bytes`` is the size of all
    groups that are not known to be stored; recent batches end at ``stored`` and have no gap between them."""

    __slots__ = (
        "_append",
        "_call_later",
        "_clock",
        "_everything",
        "_groups",
        "_last_began",
        "_on_stored",
        "_refused",
        "_soon",
        "_tickets",
        "_timer",
        "_times",
        "_waiters",
        "_waiting_bytes",
        "batches_appended",
        "bytes_appended",
        "everything",
        "failed",
        "head",
        "limits",
        "messages_appended",
        "number",
        "on_failed",
        "pending_bytes",
        "recent",
        "stored",
        "under_way",
        "under_way_bytes",
        "under_way_tickets",
        "under_way_times",
    )

    def __init__(
        self,
        number: int,
        append: Append,
        call_later: CallLater,
        clock: Callable[[], float],
        on_stored: Callable[[Batch], None],
        limits: ShardLimits | None = None,
        head: int = 0,
    ) -> None:
        self.number = number
        self.limits = limits if limits is not None else ShardLimits()
        self.head = head  # the next offset to give
        self.stored = head  # everything below is stored
        self.everything = False  # set while the table of kept filters is loading: batches are marked so
        self.failed: StoreError | None = None  # why nothing is taken any more
        self.on_failed: Callable[[StoreError], None] | None = None
        self.pending_bytes = 0
        self.recent = RecentBatches(self.limits.recent_bytes_max)
        self.batches_appended = 0
        self.messages_appended = 0
        self.bytes_appended = 0  # as they went to the log
        self.under_way: Batch | None = None
        self.under_way_bytes = 0
        self.under_way_tickets: list[Ticket | None] = []
        self.under_way_times: list[float] = []
        self._append = append
        self._call_later = call_later
        self._clock = clock
        self._on_stored = on_stored
        # What waits for the next batches: three lists of one length.
        self._groups: list[Group] = []
        self._tickets: list[Ticket | None] = []
        self._times: list[float] = []
        self._waiting_bytes = 0
        self._everything = False
        self._refused: list[Ticket] = []  # to be told at the end of the turn that their group was not taken
        self._waiters: deque[Callable[[], None]] = deque()
        self._last_began = clock() - self.limits.linger_s
        self._soon = False  # the end of the turn is awaited
        self._timer = False  # the end of the linger is awaited

    # -- what comes

    def add(self, group: Group, ticket: Ticket | None) -> None:
        """Takes a group. Its ticket is settled later, never in here; ask ``full`` before."""
        size = group.size()
        if self.failed is not None or size > self.limits.group_bytes_max:
            if ticket is not None:
                self._refused.append(ticket)
                self._arm_soon()
            return
        self._groups.append(group)
        self._tickets.append(ticket)
        self._times.append(self._clock())
        self._waiting_bytes += size
        self.pending_bytes += size
        if self.everything:
            self._everything = True
        if self.under_way is None and not self._soon:
            self._arm()

    @property
    def full(self) -> bool:
        """Whether publishers to it should wait; see ``wait``."""
        return self.pending_bytes > self.limits.pending_bytes_max

    def wait(self, callback: Callable[[], None]) -> None:
        """Calls back once there is room. Those who wait are called in order, as long as those before left room."""
        self._waiters.append(callback)

    def overdue(self, now: float, wait_s: float) -> None:
        """Tells those who have waited for so long that their message is not stored. What no append has taken yet
        leaves; what is under way can't be called back and may be stored all the same."""
        since = now - wait_s
        tickets = _take_overdue(self.under_way_tickets, self.under_way_times, since)
        if self._times and self._times[0] <= since:
            count = _older(self._times, since)
            size = 0
            for group in self._groups[:count]:
                size += group.size()
            tickets += self._tickets[:count]
            self._forget(count, size)
            self.pending_bytes -= size
        for ticket in tickets:
            if ticket is not None:
                ticket.settle(QUOTA_EXCEEDED)
        self._let_in()

    # -- when to append

    def _arm(self) -> None:
        """Something waits and nothing is under way: append when it is time."""
        if self._waiting_bytes >= self.limits.batch_bytes:
            self._arm_soon()
            return
        if self._timer:
            return
        pause = self._last_began + self.limits.linger_s - self._clock()
        if pause <= 0.0:
            self._arm_soon()
        else:
            self._timer = True
            self._call_later(pause, self._lingered)

    def _arm_soon(self) -> None:
        if not self._soon:
            self._soon = True
            self._call_later(0.0, self._turn_ended)

    def _turn_ended(self) -> None:
        self._soon = False
        if self._refused:
            refused, self._refused = self._refused, []
            for ticket in refused:
                ticket.settle(QUOTA_EXCEEDED)
        if self.under_way is None and self._groups:
            self._send()

    def _lingered(self) -> None:
        self._timer = False
        if self.under_way is None and self._groups and not self._soon:
            if self._last_began + self.limits.linger_s <= self._clock():
                self._send()
            else:  # an append began since this timer was set
                self._arm()

    # -- appending

    def _send(self) -> None:
        """Seals a batch of what has waited longest, and hands it to the log."""
        if faults.armed and faults.broken("batches_swapped"):
            self._swap()
        count, size = self._cut()
        batch = Batch(self.number, self.head, self._groups[:count], self._everything)
        tickets, times = self._tickets[:count], self._times[:count]
        self._forget(count, size)
        body = encode_batch(batch)
        self.head = batch.end
        self.under_way = batch
        self.under_way_bytes = size
        self.under_way_tickets, self.under_way_times = tickets, times
        self._last_began = self._clock()
        self.bytes_appended += len(body)
        if faults.armed:
            faults.hit("journal.append")
            if faults.broken("ack_before_append"):
                self._settle(STORED)
        self._append(body, self._answered)

    def _cut(self) -> tuple[int, int]:
        """How many of the waiting groups make the next batch, and their size."""
        if self._waiting_bytes <= self.limits.batch_bytes_max:
            return len(self._groups), self._waiting_bytes
        count = size = 0
        for group in self._groups:
            more = group.size()
            if count and size + more > self.limits.batch_bytes_max:
                break
            size += more
            count += 1
        return count, size

    def _forget(self, count: int, size: int) -> None:
        """The first of the waiting groups wait no longer."""
        del self._groups[:count]
        del self._tickets[:count]
        del self._times[:count]
        self._waiting_bytes -= size
        if not self._groups:
            self._everything = False

    def _swap(self) -> None:
        """The wrong order, for the tests of those who check it."""
        half = len(self._groups) // 2
        self._groups = self._groups[half:] + self._groups[:half]
        self._tickets = self._tickets[half:] + self._tickets[:half]

    # -- what the log says

    def _answered(self, answer: int | StoreError) -> None:
        batch = self.under_way
        if batch is None:
            raise InvariantError(f"shard {self.number}: an answer, and nothing was under way")
        if isinstance(answer, StoreError):
            self._fail(answer)
            return
        if faults.armed:
            faults.hit("journal.stored")
        batch.sequence = answer
        self.stored = batch.end
        self.pending_bytes -= self.under_way_bytes
        self.under_way = None
        self.under_way_bytes = 0
        self.batches_appended += 1
        self.messages_appended += batch.count
        self.recent.add(batch)
        self._on_stored(batch)
        self._settle(STORED)
        if faults.armed:
            faults.hit("journal.acknowledged")
        self._let_in()
        if self._groups and self.under_way is None and not self._soon:
            if self._waiting_bytes >= self.limits.batch_bytes:
                self._send()
            else:
                self._arm()

    def _settle(self, reason: int) -> None:
        tickets, self.under_way_tickets, self.under_way_times = self.under_way_tickets, [], []
        for ticket in tickets:
            if ticket is not None:
                ticket.settle(reason)

    def _let_in(self) -> None:
        while self._waiters and not self.full:
            self._waiters.popleft()()

    def _fail(self, error: StoreError) -> None:
        self.failed = error
        tickets = self.under_way_tickets + self._tickets
        self.under_way = None
        self.under_way_bytes = 0
        self.under_way_tickets, self.under_way_times = [], []
        self._forget(len(self._groups), self._waiting_bytes)
        self.pending_bytes = 0
        for ticket in tickets:
            if ticket is not None:
                ticket.settle(QUOTA_EXCEEDED)
        self._let_in()
        if self.on_failed is not None:
            self.on_failed(error)

    def restart(self, head: int) -> None:
        """Takes groups again, from this offset on: the end of what the log has."""
        if self.failed is None:
            raise CallerError(f"shard {self.number} has not failed")
        if head < self.stored:
            raise CallerError(f"shard {self.number}: {self.stored} messages were stored, and now there are {head}")
        if head != self.stored:  # what was under way is stored, and nobody here has it
            self.recent.clear()
        self.failed = None
        self.head = self.stored = head

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        waiting = sum(group.size() for group in self._groups)
        rules = {
            "what waits is counted": self._waiting_bytes == waiting,
            "what is pending is counted": self.pending_bytes == waiting + self.under_way_bytes,
            "one place for each": len(self._groups) == len(self._tickets) == len(self._times),
            "times rise": self._times == sorted(self._times),
            "head is behind stored by what is under way": self.failed is not None
            or self.head == (self.under_way.end if self.under_way is not None else self.stored),
            "what waits will be sent": not self._groups or self.under_way is not None or self._soon or self._timer,
            "who waits finds no room": not self._waiters or self.full,
            "nothing waits after a failure": self.failed is None or self.pending_bytes == 0,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError(f"shard {self.number}: {'; '.join(broken)}")
        self.recent.check_invariants(self.stored)


def _older(times: list[float], since: float) -> int:
    """How many of these rising times are not after ``since``."""
    count = 0
    while count < len(times) and times[count] <= since:
        count += 1
    return count


def _take_overdue(tickets: list[Ticket | None], times: list[float], since: float) -> list[Ticket | None]:
    """Takes out the tickets that have waited since then or longer."""
    count = _older(times, since)
    taken = tickets[:count]
    del tickets[:count]
    del times[:count]
    return taken

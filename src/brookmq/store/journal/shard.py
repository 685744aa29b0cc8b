"""One shard's appending: groups come in, batches go to its log, and those who wait are told.

Group commit: one batch is under way at a time (the log allows no more), and what comes meanwhile is the next batch, so
batches grow with the load. An idle shard appends at the end of the turn in which something came. After that it waits
``linger`` between the beginnings of two appends, unless a batch is worth an append of its own: each costs the store a
sync and two processes some 0.3 ms at any size, and without the pause a trickle of messages would cost one each.

When a batch is stored: first ``on_stored`` (receivers get the messages), then its tickets in the order in which they
came (publishers get their acknowledgements). Nobody is told anything inside ``add``.

Bounds: above ``pending_bytes_max`` the shard is ``full``, and publishers are to wait until it calls them; what waits
too long is given up by ``overdue``; a group that the store could never take is refused.

A log that ends (another owner, a refusal for good) fails the shard: whether the batch under way is stored is not known,
and all who wait are told that it is not. ``restart`` begins anew behind what the log turns out to have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from brookmq.base import faults
from brookmq.base.errors import CallerError, InvariantError
from brookmq.mqtt.reasons import QUOTA_EXCEEDED
from brookmq.store.errors import StoreError
from brookmq.store.journal.batch import Batch, encode_batch
from brookmq.store.journal.group import Group
from brookmq.store.journal.limits import ShardLimits
from brookmq.store.journal.recent import RecentBatches
from brookmq.store.journal.waiting import Ticket, Waiting, settle_all

STORED = 0
TIMER_SLACK_S = 0.0005  # event loops keep time to the millisecond: what is due within half of one is due

Done = Callable[[int | StoreError], None]
Append = Callable[[bytes, Done], None]  # ``done`` gets the record's sequence, or why there is none; called once
CallLater = Callable[[float, Callable[[], None]], object]  # 0.0 seconds: at the end of this turn


class Shard:
    """Invariants: ``stored`` and ``head`` are equal unless a batch is under way; ``pending_bytes`` is the size of all
    groups that are not known to be stored; recent batches end at ``stored``."""

    __slots__ = (
        "_append", "_call_later", "_clock", "_last_began", "_on_stored", "_pressed", "_refused", "_soon", "_taken",
        "_timer", "_waiting", "batches_appended", "bytes_appended", "everything", "failed", "head", "limits",
        "messages_appended", "messages_given_up", "number", "on_failed", "pending_bytes", "recent", "stored",
        "under_way",
    )  # fmt: skip

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
        self.messages_given_up = 0  # refused, overdue, or caught in a failure; those under way may be stored
        self.under_way: Batch | None = None
        self._taken = Waiting()  # the groups of the batch under way
        self._waiting = Waiting()  # those of the next ones
        self._append = append
        self._call_later = call_later
        self._clock = clock
        self._on_stored = on_stored
        self._refused: list[Ticket | None] = []  # to be told at the end of the turn that their group was not taken
        self._pressed: deque[Callable[[], None]] = deque()  # publishers that wait for room
        self._last_began = clock() - self.limits.linger_s
        self._soon = False  # the end of the turn is awaited
        self._timer = False  # the end of the linger is awaited

    # -- what comes

    def add(self, group: Group, ticket: Ticket | None) -> None:
        """Takes a group. Its ticket is settled later, never in here; ask ``full`` before."""
        size = group.size()
        if self.failed is not None or size > self.limits.group_bytes_max:
            self.messages_given_up += group.count
            self._refused.append(ticket)
            self._arm_soon()
            return
        waiting = self._waiting
        waiting.add(group, ticket, self._clock())
        self.pending_bytes += size
        if self.everything:
            waiting.everything = True
        if self.under_way is None and not self._soon:
            self._arm()

    @property
    def full(self) -> bool:
        """Whether publishers to it should wait; see ``wait``."""
        return self.pending_bytes > self.limits.pending_bytes_max

    def wait(self, callback: Callable[[], None]) -> None:
        """Calls back once when there is room, at once if there is; in order, as long as those before left some."""
        self._pressed.append(callback)
        self._let_in()

    def overdue(self, now: float, wait_s: float) -> None:
        """Tells those who have waited for so long that their message is not stored. What no append has taken yet
        leaves; what is under way can't be called back and may be stored all the same."""
        since = now - wait_s
        tickets = self._taken.overdue_tickets(since)
        gone = self._waiting.overdue(since)
        self.pending_bytes -= gone.bytes
        self.messages_given_up += gone.messages
        settle_all(tickets, QUOTA_EXCEEDED)
        gone.settle(QUOTA_EXCEEDED)
        self._let_in()

    # -- when to append

    def _pause(self) -> float:
        """Seconds for which what waits has to wait; 0 when it is due."""
        if self._waiting.bytes >= self.limits.batch_bytes:
            return 0.0
        pause = self._last_began + self.limits.linger_s - self._clock()
        return pause if pause > TIMER_SLACK_S else 0.0

    def _arm(self) -> None:
        """Something waits and nothing is under way: append when it is time."""
        pause = self._pause()
        if pause == 0.0:
            self._arm_soon()
        elif not self._timer:
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
            settle_all(refused, QUOTA_EXCEEDED)
        self._send_or_arm()

    def _lingered(self) -> None:
        self._timer = False
        self._send_or_arm()

    def _send_or_arm(self) -> None:
        if self.under_way is None and self._waiting.groups and not self._soon:
            if self._pause() == 0.0:
                self._send()
            else:
                self._arm()

    # -- appending

    def _send(self) -> None:
        """Seals a batch of what has waited longest, and hands it to the log."""
        if faults.armed and faults.broken("batches_swapped"):
            self._waiting.swap()
        taken = self._waiting.cut(self.limits.batch_bytes_max)
        batch = Batch(self.number, self.head, taken.groups, taken.everything)
        body = encode_batch(batch)
        self.head = batch.end
        self.under_way = batch
        self._taken = taken
        self._last_began = self._clock()
        self.bytes_appended += len(body)
        if faults.armed:
            faults.hit("journal.append")
            if faults.broken("ack_before_append"):
                taken.settle(STORED)
        self._append(body, self._answered)

    def _answered(self, answer: int | StoreError) -> None:
        batch, taken = self.under_way, self._taken
        if batch is None:
            raise InvariantError(f"shard {self.number}: an answer, and nothing was under way")
        if isinstance(answer, StoreError):
            self._fail(answer)
            return
        if faults.armed:
            faults.hit("journal.stored")
        batch.sequence = answer
        self.stored = batch.end
        self.pending_bytes -= taken.bytes
        self.under_way = None
        self._taken = Waiting()
        self.batches_appended += 1
        self.messages_appended += batch.count
        self.recent.add(batch)
        self._on_stored(batch)
        taken.settle(STORED)
        if faults.armed:
            faults.hit("journal.acknowledged")
        self._let_in()
        self._send_or_arm()

    def _let_in(self) -> None:
        while self._pressed and not self.full:
            self._pressed.popleft()()

    # -- the end of a log

    def _fail(self, error: StoreError) -> None:
        taken, waiting = self._taken, self._waiting
        self.failed = error
        self.under_way = None
        self._taken, self._waiting = Waiting(), Waiting()
        self.pending_bytes = 0
        self.messages_given_up += taken.messages + waiting.messages
        taken.settle(QUOTA_EXCEEDED)
        waiting.settle(QUOTA_EXCEEDED)
        self._let_in()
        if self.on_failed is not None:
            self.on_failed(error)

    def restart(self, head: int) -> None:
        """Takes groups again, from this offset on: the end of what the log has. What lies between ``stored`` and it was
        under way when the log ended: ``on_stored`` never had it, so readers find it in the store."""
        if self.failed is None:
            raise CallerError(f"shard {self.number} has not failed")
        if head < self.stored:
            raise CallerError(f"shard {self.number}: {self.stored} messages were stored, and now there are {head}")
        if head != self.stored:
            self.recent.clear()
        self.failed = None
        self.head = self.stored = head

    def check_invariants(self) -> None:
        """Raises when what must hold between two calls does not."""
        waiting, taken = self._waiting, self._taken
        rules = {
            "what waits is counted": waiting.bytes == sum(group.size() for group in waiting.groups),
            "messages are counted": waiting.messages == sum(group.count for group in waiting.groups),
            "what is pending is counted": self.pending_bytes == waiting.bytes + taken.bytes,
            "one place for each": len(waiting.groups) == len(waiting.tickets) == len(waiting.times),
            "as many tickets as times": len(taken.tickets) == len(taken.times) <= len(taken.groups),
            "times rise": taken.times + waiting.times == sorted(taken.times + waiting.times),
            "what is taken is under way": bool(taken.groups) == (self.under_way is not None),
            "head is where the last batch ends": self.failed is not None
            or self.head == (self.under_way.end if self.under_way is not None else self.stored),
            "what waits will be sent": not waiting.groups or self.under_way is not None or self._soon or self._timer,
            "who waits finds no room": not self._pressed or self.full,
            "nothing waits after a failure": self.failed is None or self.pending_bytes == 0,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError(f"shard {self.number}: {'; '.join(broken)}")
        self.recent.check_invariants(self.stored)

"""Delayed publish: a message to ``$delayed/SECONDS/topic`` is published to ``topic`` when its time has come.

SECONDS is an interval of up to 4,294,967 seconds (49.7 days). A larger number is a point in time in unix seconds, as
users of this extension know it; one in the past is due at once, one further away than the longest delay is refused.

The message counts as published when it is due: its message expiry begins then, otherwise a message delayed for longer
than it lives could never arrive.

A message that is due is *taken*, published, and then *finished*: in the store it stays until it is finished, since a
crash in between must not lose it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, nsmallest
from typing import NamedTuple

from brookmq.base.errors import InvariantError, PeerError
from brookmq.base.message import Message

PREFIX = b"$delayed/"
INTERVAL_SECONDS_MAX = 4_294_967  # 32 bits of milliseconds; a larger number is a point in time
TOPIC_NAME_INVALID = 0x90
_ORIGIN = b"delayed\0"
_DIGITS_MAX = 10  # 10 digits of unix seconds reach the year 2286


def origin_of(number: int) -> bytes:
    """Names a delayed message in the journal, once it is published."""
    return _ORIGIN + number.to_bytes(8, "big")


def is_delayed(origin: bytes) -> bool:
    """Whether an origin in the journal is that of a delayed message."""
    return origin.startswith(_ORIGIN)


def parse(topic: bytes) -> tuple[int, bytes] | None:
    """The number and the topic of a delayed publish, None for any other topic; PeerError 0x90 when it is malformed."""
    if not topic.startswith(PREFIX):
        return None
    digits, _, target = topic[len(PREFIX) :].partition(b"/")
    if not digits.isdigit() or len(digits) > _DIGITS_MAX:
        raise PeerError(TOPIC_NAME_INVALID, "delayed publish: the level after $delayed is not a number of seconds")
    if not target:
        raise PeerError(TOPIC_NAME_INVALID, "delayed publish: no topic after the number of seconds")
    if target.startswith(PREFIX):
        raise PeerError(TOPIC_NAME_INVALID, "delayed publish: a delay within a delay")
    return int(digits), target


def postponed(message: Message, target: bytes, due: float, now: float) -> Message:
    """The message as it will be published when it is due: to ``target``, its expiry counted from then."""
    return Message(
        target,
        message.payload,
        message.qos,
        message.retain,
        message.properties,
        message.expires_at + max(due - now, 0.0) if message.expires_at else 0.0,
        due,
        message.client_id,
        message.username,
    )


class DelayedEntry(NamedTuple):
    """One waiting message, as listings show it."""

    id: int  # counts up, never given twice
    due: float  # unix seconds
    message: Message


class DelayedMessages:
    """Messages that wait for their time, in the order of their time (equal times: in the order of arrival)."""

    def __init__(self, count_max: int, delay_max: int = INTERVAL_SECONDS_MAX, bytes_max: int = 0) -> None:
        self.count_max = count_max  # messages, 0 = no limit
        self.delay_max = delay_max  # seconds
        self.bytes_max = bytes_max  # sum of Message.size(), 0 = no limit
        self.bytes = 0  # of all that wait or are taken
        self.refused = 0  # messages that a limit kept out
        self.last_id = 0
        self.on_add: Callable[[DelayedEntry], None] | None = None  # told of every message that was taken in
        self.on_gone: Callable[[int], None] | None = None  # told of every id that is finished or removed
        self._entries: dict[int, DelayedEntry] = {}
        self._taken: dict[int, DelayedEntry] = {}  # due, and not finished yet
        self._heap: list[tuple[float, int]] = []  # (due, id); an id that is no longer an entry was removed

    @property
    def count(self) -> int:
        """How many messages wait."""
        return len(self._entries)

    def due_at(self, seconds: int, now: float) -> float:
        """When a message with this SECONDS level is due; PeerError 0x90 when that is too far away."""
        delay = seconds if seconds <= INTERVAL_SECONDS_MAX else seconds - now
        if abs(delay) > self.delay_max:
            raise PeerError(TOPIC_NAME_INVALID, f"delayed publish: more than {self.delay_max} seconds away")
        return now + max(delay, 0)

    def add(self, message: Message, due: float) -> bool:
        """Keep a message until it is due; False when a limit refuses it."""
        if (self.count_max and len(self._entries) + len(self._taken) >= self.count_max) or (
            self.bytes_max and self.bytes + message.size() > self.bytes_max
        ):
            self.refused += 1
            return False
        self.put(message, due)
        return True

    def put(self, message: Message, due: float) -> None:
        """The same without limits, for what another node had taken in."""
        self.last_id += 1
        entry = DelayedEntry(self.last_id, due, message)
        self.restore(entry)
        if self.on_add is not None:
            self.on_add(entry)

    def restore(self, entry: DelayedEntry) -> None:
        """Put back what was kept. No limit holds: it was taken in once."""
        self._entries[entry.id] = entry
        self.bytes += entry.message.size()
        heappush(self._heap, (entry.due, entry.id))

    def take_due(self, now: float, limit: int) -> list[DelayedEntry]:
        """Take out up to ``limit`` messages whose time has come, earliest first. ``finish`` each when it is
        published."""
        taken: list[DelayedEntry] = []
        while len(taken) < limit and self._heap and self._heap[0][0] <= now:
            entry = self._entries.pop(heappop(self._heap)[1], None)
            if entry is not None:
                self._taken[entry.id] = entry
                taken.append(entry)
        return taken

    def finish(self, entry_id: int) -> None:
        """A message that was taken has been published: nothing of it has to be kept any more."""
        entry = self._taken.pop(entry_id, None)
        if entry is not None:
            self._gone(entry)

    def due(self, now: float, limit: int) -> list[Message]:
        """The same as ``take_due`` and ``finish`` in one, for a caller to whom a crash is no matter."""
        taken = self.take_due(now, limit)
        for entry in taken:
            self.finish(entry.id)
        return [entry.message for entry in taken]

    def take_all(self) -> list[DelayedEntry]:
        """Take everything out, to be added again under other numbers."""
        entries = [*self._entries.values()]
        self._entries.clear()
        self._heap.clear()
        self.bytes -= sum(entry.message.size() for entry in entries)
        return entries

    def peek(self, entry_id: int) -> DelayedEntry | None:
        """One that waits, or that is taken and not finished."""
        return self._entries.get(entry_id) or self._taken.get(entry_id)

    def next_due(self) -> float | None:
        """When the next message is due; None when nothing waits."""
        while self._heap and self._heap[0][1] not in self._entries:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def remove(self, entry_id: int) -> Message | None:
        """Take one out before its time; None when it is not there (any more)."""
        entry = self._entries.pop(entry_id, None)
        if entry is not None:
            self._gone(entry)
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._entries):
            # What was removed early stays in the heap until its time: never more than as much again.
            self._heap = [(waiting.due, waiting.id) for waiting in self._entries.values()]
            heapify(self._heap)
        return entry.message if entry is not None else None

    def page(self, after: int, limit: int) -> list[DelayedEntry]:
        """A page of a listing in the order of arrival: up to ``limit`` entries with an id above ``after``."""
        return [self._entries[each] for each in nsmallest(limit, (each for each in self._entries if each > after))]

    def _gone(self, entry: DelayedEntry) -> None:
        self.bytes -= entry.message.size()
        if self.on_gone is not None:
            self.on_gone(entry.id)

    def check_invariants(self) -> None:
        """Raise InvariantError when the parts disagree; for tests."""
        if self._entries.keys() & self._taken.keys():
            raise InvariantError("delayed: a message that waits and is taken")
        if not set(self._entries) <= {entry_id for _, entry_id in self._heap}:
            raise InvariantError("delayed: a message that would never become due")
        kept = [*self._entries.values(), *self._taken.values()]
        if self.bytes != sum(entry.message.size() for entry in kept):
            raise InvariantError("delayed: the bytes are not those of the messages")

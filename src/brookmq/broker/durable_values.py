"""Retained and delayed messages, kept in the store: what is acknowledged is there after a restart.

``RetainedStore`` and ``DelayedMessages`` stay what is asked; they tell this module of every change, and it writes the
change to their table. After a start the table hands the parts back one by one. Nothing that was set or deleted
meanwhile is overwritten: the table has these changes too, behind the older ones, so a part that is loaded is folded up
to now, and only what the stores do not have is put into them.

An acknowledgement waits for the record in this way, whatever it was that the publish changed:

    before = values.taken
    broker.publish(message, …)
    if values.taken != before:
        values.after(acknowledge)

What the node itself publishes under ``$SYS/`` is not kept: it is about this run of the node.

Delayed messages have numbers that are never given twice, not even by a node that has not loaded its table yet: numbers
are reserved in blocks, and the block is the one value that a table has at once when it is opened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from brookmq.base.message import Message
from brookmq.broker.delayed import DelayedEntry, DelayedMessages, origin_of
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.replay import Replays
from brookmq.broker.retained import RetainedStore, part_of_topic
from brookmq.store.journal.group import Group
from brookmq.store.message_record import decode_message, encode_message
from brookmq.store.table.interface import META_KEY, META_PART, PARTS, Entry, Table
from brookmq.store.value_record import (
    DELAYED_KEY,
    DELETED,
    SET,
    decode_delayed,
    decode_numbers,
    delayed_key,
    delayed_number,
    encode_delayed,
    encode_numbers,
    retained_key,
    state_after,
)

MOMENTS_MAX = 16
NUMBERS_RESERVED = 1 << 20  # at a time; what a stopped node had left of its block is never used


class DurableValues:
    """Invariant: of a loaded part, the stores have exactly what the table has, but for ``$SYS/`` topics."""

    def __init__(self, table: Table, retained: RetainedStore, delayed: DelayedMessages, replays: Replays) -> None:
        self.table = table
        self.taken = 0  # changes handed to the table
        self.stored = 0  # of these, how many are stored
        self._retained = retained
        self._delayed = delayed
        self._replays = replays
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()  # (taken, callback), in order
        self._numbers: dict[int, set[int]] = {}  # of delayed messages, by part
        self._reserved = 0  # numbers up to this one are ours to give
        self.went_out: dict[bytes, Group] = {}  # delayed messages that the journal has, by their origin
        self.on_loaded: Callable[[], Any] = lambda: None  # all is there, and what that changed is stored
        self._moments: deque[tuple[int, list[int]]] = deque()  # (taken, ends of the journal then), in order
        self._behind: list[int] = []  # the last answer of ``behind``
        self._asked: set[int] = set()  # parts that are loaded ahead of others
        table.on_part = self._on_part
        table.encode_part = self._encode_part
        retained.on_set = self._retained_set
        retained.on_delete = self._retained_deleted
        delayed.on_add = self._delayed_added
        delayed.on_gone = self._delayed_gone
        replays.loaded = self.loaded

    def begin_with_what_is_there(self, looked_from: list[int]) -> None:
        """As ``begin``; what was set before the store could be opened is written now, and wins. ``looked_from`` is
        where this start has begun to look through the journal."""
        self._behind = looked_from
        early = [message for part in range(PARTS) for topic in self._retained.topics(part)
                 if (message := self._retained.peek(topic)) is not None]  # fmt: skip
        delayed = self._delayed.take_all()
        self.begin()
        for message in early:
            self._retained_set(message)
        for entry in delayed:
            self._delayed.add(entry.message, entry.due)

    def begin(self) -> None:
        """The table is open: reserve numbers and load what it has."""
        state, ops = self.table.meta_state()
        for op in ops:
            state = state_after(op) or b""
        self._reserved = self._delayed.last_id = decode_numbers(state)
        self._reserve()
        self.table.begin_loading()

    def after(self, callback: Callable[[], None]) -> None:
        """Calls back once everything that has been taken so far is stored; at once when it is."""
        if self.stored == self.taken:
            callback()
        else:
            self._waiting.append((self.taken, callback))

    def loaded(self, topic_filter: bytes) -> bool:
        """Whether all that a filter can match is there; if not, what it needs of a single part is loaded first."""
        if self.table.all_loaded:
            return True
        levels = topic_filter.split(b"/")
        if b"+" in levels or levels[-1] == b"#":
            return False
        part = part_of_topic(topic_filter)
        if self.table.loaded(part):
            return True
        if part not in self._asked:
            self._asked.add(part)
            self.table.load(part, self._replays.wake)
        return False

    def regain(self, message: Message, now: float, done: Callable[[], None]) -> None:
        """A message that the journal has and that this table may not have, since the node died: it is retained unless
        its topic has a later one. ``done`` when that is stored."""
        part = part_of_topic(message.topic)

        def put() -> None:
            kept = self._retained.peek(message.topic)
            if kept is None or kept.published_at <= message.published_at:  # those that came together have one time
                self._retained.set(message, now)
            self.after(done)

        if self.table.loaded(part):
            put()
        else:
            self.table.load(part, put)

    def behind(self, heads: list[int]) -> list[int]:
        """Ends of the journal of a moment before which every change is stored: a start that looks through it from there
        finds all retained messages whose values a crash may take. ``heads`` are the ends now."""
        moments = self._moments
        moments.append((self.taken, heads))
        while len(moments) > 1 and moments[1][0] <= self.stored:
            moments.popleft()
        if moments[0][0] <= self.stored:
            self._behind = moments[0][1]
        if len(moments) > MOMENTS_MAX:
            del moments[1]  # the store is silent: an answer that lies further back is right as well
        return self._behind

    # -- backups, and people who want to be forgotten

    def count(self) -> int:
        """How many values there are, about: what is not loaded yet is not counted."""
        return self._retained.count + self._delayed.count

    def put(self, key: bytes, state: bytes) -> None:
        """Take a value of a backup, whatever the key had. A delayed message gets a new number."""
        if key[:1] == DELAYED_KEY:
            due, message = decode_delayed(state)
            self._delayed.put(message, due)
        else:
            self._retained.put(decode_message(state))

    def clear(self) -> None:
        """Remove all that is loaded, but for what the node says of itself."""
        for part in range(PARTS):
            for topic in self._retained.topics(part):
                if not topic.startswith(SYS_PREFIX):
                    self._retained.delete(topic)
        for entry in self._delayed.page(0, self._delayed.count):
            self._delayed.remove(entry.id)

    def forget(self, client_id: str) -> int:
        """Remove the delayed messages of a client; how many there were. Retained ones are their topics' values."""
        theirs = [entry for entry in self._delayed.page(0, self._delayed.count) if entry.message.client_id == client_id]
        for entry in theirs:
            self._delayed.remove(entry.id)
        return len(theirs)

    # -- changes

    def _change(self, key: bytes, op: bytes) -> None:
        self.taken += 1
        self.table.change(key, op, self._stored)

    def _stored(self) -> None:
        self.stored += 1
        waiting = self._waiting
        while waiting and waiting[0][0] <= self.stored:
            waiting.popleft()[1]()

    def _retained_set(self, message: Message) -> None:
        if not message.topic.startswith(SYS_PREFIX):
            self._change(retained_key(message.topic), SET + encode_message(message))

    def _retained_deleted(self, topic: bytes, existed: bool) -> None:
        """What does not exist here may still exist in a part that is not loaded."""
        if (existed or not self.table.loaded(part_of_topic(topic))) and not topic.startswith(SYS_PREFIX):
            self._change(retained_key(topic), DELETED)

    def _delayed_added(self, entry: DelayedEntry) -> None:
        if entry.id >= self._reserved:
            self._reserve()
        key = delayed_key(entry.id)
        self._numbers.setdefault(self.table.part_of(key), set()).add(entry.id)
        self._change(key, SET + encode_delayed(entry.due, entry.message))

    def _delayed_gone(self, number: int) -> None:
        key = delayed_key(number)
        part = self.table.part_of(key)
        numbers = self._numbers.get(part)
        if numbers is not None:
            numbers.discard(number)
            if not numbers:
                del self._numbers[part]
        self._change(key, DELETED)

    def _reserve(self) -> None:
        self._reserved += NUMBERS_RESERVED
        self._change(META_KEY, SET + encode_numbers(self._reserved))

    # -- parts

    def _on_part(self, part: int, states: list[Entry], ops: list[Entry]) -> None:
        now_kept: dict[bytes, bytes | None] = dict(states)
        for key, op in ops:
            now_kept[key] = state_after(op)
        for key, state in now_kept.items():
            if state is None:
                continue
            if key[:1] == DELAYED_KEY:
                self._restore_delayed(part, delayed_number(key), state)
            else:
                self._retained.restore(decode_message(state))
        self._asked.discard(part)
        self._replays.turn.call_soon(self._part_is_there)

    def _restore_delayed(self, part: int, number: int, state: bytes) -> None:
        group = self.went_out.pop(origin_of(number), None)
        if group is not None:
            self._finish(number, group)
        elif self._delayed.peek(number) is None:
            due, message = decode_delayed(state)
            self._delayed.restore(DelayedEntry(number, due, message))
            self._numbers.setdefault(part, set()).add(number)

    def _finish(self, number: int, group: Group) -> None:
        """A delayed message that went out before the node died: it may be a retained one."""

        def gone() -> None:
            self._change(delayed_key(number), DELETED)

        if group.retain:
            self.regain(group.message(), group.published_at, gone)
        else:
            gone()

    def _part_is_there(self) -> None:
        if self.table.all_loaded:
            self._replays.wake()
            self.after(self.on_loaded)

    def _encode_part(self, part: int) -> Iterator[Entry]:
        if part == META_PART:
            yield META_KEY, encode_numbers(self._reserved)
            return
        for topic in self._retained.topics(part):
            message = self._retained.peek(topic)
            if message is not None and not topic.startswith(SYS_PREFIX):
                yield retained_key(topic), encode_message(message)
        for number in [*self._numbers.get(part, ())]:
            entry = self._delayed.peek(number)
            if entry is not None:
                yield delayed_key(number), encode_delayed(entry.due, entry.message)

    def check_invariants(self) -> None:
        """For tests, when the table is loaded: its numbers of delayed messages are those that are there."""
        numbers = {number for part in self._numbers.values() for number in part}
        assert all(self._delayed.peek(number) is not None for number in numbers), "delayed: a number without a message"
        assert self.stored <= self.taken

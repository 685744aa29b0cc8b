"""Rows of a query that are published exactly once, whoever dies in between: query, driver or node.

A query publishes its rows in partitions; a row is named by query, partition, batch and number, and these rise. For each
partition the node keeps the last row up to which all are stored, and drops what is sent again up to there.

Within one life of the node that is all: rows are taken in order, so the last one that was taken says it; the answer
waits until all of them are stored. When the node dies, some of the rows behind the kept position may be stored and
others not, as they go to several shards. So each has an origin, and a start finds those that the journal has: they are
written down *beyond* the position, and dropped one by one when they are sent again. As with wills, a floor under the
watermark makes sure that a start looks from far enough back.

A row that nobody keeps (no kept session wants it, no filter captures it, it is not retained) is gone with the node, and
published again: whoever was connected is not any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from brookmq.base.message import Message
from brookmq.broker.keeping import Keeper
from brookmq.store.journal.group import Group
from brookmq.store.pipeline_record import (
    SINK_KEY,
    Row,
    SinkPosition,
    decode_sink,
    encode_sink,
    is_sink,
    origin_of,
    row_of,
    sink_key,
)
from brookmq.store.table.states import KeyedStates

DAY_S = 86_400.0
FORGET_S = 90 * DAY_S  # after that long without a row a query is taken for gone
FLOOR = b"sinks"

Publish = Callable[[Message, bytes, Callable[[], None], float], None]  # as for wills
Regain = Callable[[Group, Callable[[], None]], None]


class Found(Protocol):
    """What a start found in the journal."""

    looked_from: list[int]
    retained: dict[bytes, Group]
    regain: Regain


class _Portion:
    """Rows that were taken together; ``left`` of them are not stored."""

    __slots__ = ("done", "floor", "last", "left")

    def __init__(self, last: Row, floor: bytes, done: Callable[[], None]) -> None:
        self.last = last
        self.left = 1  # until all are taken
        self.floor = floor
        self.done = done


class _Partition:
    """``taken``: the last row of this life of the node, or the kept one. ``portions`` are not stored, in order."""

    __slots__ = ("beyond", "portions", "stored", "taken")

    def __init__(self, kept: SinkPosition) -> None:
        self.taken = kept.row
        self.stored = kept.row
        self.beyond = set(kept.beyond)
        self.portions: deque[_Portion] = deque()


class Sinks:
    """``publish`` is the broker's way for messages that nobody would send again (``Patient``)."""

    def __init__(self, keeper: Keeper, publish: Publish) -> None:
        self.states: KeyedStates | None = None
        self._keeper = keeper
        self._publish = publish
        self._partitions: dict[bytes, _Partition] = {}  # with rows on their way
        self._found: dict[bytes, set[Row]] = {}  # in the journal, by key
        self._retained: list[tuple[bytes, Row, Group]] = []  # of these, the retained ones
        self._numbers = 0  # of portions

    # -- the start

    def look_through(self, groups: Iterable[Group]) -> None:
        """Groups of the journal from the watermark on."""
        for group in groups:
            if is_sink(group.origin):
                key, row = row_of(group.origin)
                self._found.setdefault(key, set()).add(row)
                if group.retain:
                    self._retained.append((key, row, group))

    def begin(self, states: KeyedStates, found: Found, now: float) -> None:
        """The broker has its journal; what was found is written down before the next start may look from later."""
        self.states = states
        retained = [(key, row, found.retained.get(group.topic, group)) for key, row, group in self._retained]
        self._retained.clear()
        if self._found:
            self._keeper.floors[FLOOR] = found.looked_from or [0] * len(self._keeper.journaling.heads())
        states.when_loaded(lambda: self._loaded(retained, found.regain, now))

    def _loaded(self, retained: list[tuple[bytes, Row, Group]], regain: Regain, now: float) -> None:
        assert self.states is not None
        for key, state in self.states.items(SINK_KEY):
            if decode_sink(state).written_at < now - FORGET_S and key not in self._found:
                self.states.remove(key)
        again = [group for key, row, group in retained if row > self._kept(key).row]
        left = len(again)

        def regained() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                self._write_found(now)

        for group in again:
            regain(group, regained)
        if not again:
            regained()

    def _write_found(self, now: float) -> None:
        found, self._found = self._found, {}
        written = 0

        def one_is_written() -> None:
            nonlocal written
            written += 1
            if written == len(found):
                self._keeper.floors.pop(FLOOR, None)

        for key, rows in found.items():
            kept = self._kept(key)
            beyond = kept.beyond | {row for row in rows if row > kept.row}
            self._put(key, SinkPosition(kept.row, now, frozenset(beyond)), one_is_written)

    @property
    def ready(self) -> bool:
        """Whether rows can be taken: what was kept and found is known."""
        return self.states is not None and self.states.loaded and not self._found

    # -- rows

    def position(self, key: bytes) -> Row:
        """Up to where all rows are stored."""
        partition = self._partitions.get(key)
        return self._kept(key).row if partition is None else partition.stored

    def take(self, key: bytes, first: Row, messages: Sequence[Message], now: float, done: Callable[[], None]) -> None:
        """Rows from ``first`` on; ``done`` when all of them, and all before, are stored and that is written down.

        PeerError when one of them can't be published: those before it are taken, it and those behind it are not.
        """
        partition = self._partitions.get(key)
        if partition is None:
            partition = self._partitions[key] = _Partition(self._kept(key))
        last = Row(first.batch, first.row + len(messages) - 1)
        if last <= partition.stored:
            done()
            return
        self._numbers += 1
        floor = FLOOR + self._numbers.to_bytes(8, "big")
        self._keeper.floors[floor] = self._keeper.journaling.heads()
        portion = _Portion(partition.taken, floor, done)
        partition.portions.append(portion)

        def one_is_stored() -> None:
            portion.left -= 1
            if portion.left == 0:
                self._advance(key, partition)

        try:
            for number, message in enumerate(messages, first.row):
                row = Row(first.batch, number)
                if row <= partition.taken:
                    continue
                if row not in partition.beyond:
                    portion.left += 1
                    try:
                        self._publish(message, origin_of(key, row), one_is_stored, now)
                    except BaseException:
                        portion.left -= 1
                        raise
                partition.taken = portion.last = row
        except BaseException:
            portion.done = _nobody
            raise
        finally:
            one_is_stored()

    def forget(self, query: str) -> None:
        """Nothing is known of a query any more, but of its rows that are on their way."""
        assert self.states is not None
        first = sink_key(query, 0)
        for key, _ in self.states.items(first[:-4]):  # the partition ends a key
            if len(key) == len(first) and key not in self._partitions:
                self.states.remove(key)

    def _advance(self, key: bytes, partition: _Partition) -> None:
        """The portions that are stored, up to the first that is not: a position has nothing missing below it."""
        while partition.portions and partition.portions[0].left == 0:
            portion = partition.portions.popleft()
            partition.beyond = {row for row in partition.beyond if row > portion.last}
            self._put(
                key,
                SinkPosition(portion.last, self._keeper.now, frozenset(partition.beyond)),
                lambda portion=portion: self._written(key, partition, portion),  # type: ignore[misc]
            )

    def _written(self, key: bytes, partition: _Partition, portion: _Portion) -> None:
        partition.stored = max(partition.stored, portion.last)
        self._keeper.floors.pop(portion.floor, None)
        if not partition.portions and partition.stored >= partition.taken:
            self._partitions.pop(key, None)  # what is written down says all
        portion.done()

    def _kept(self, key: bytes) -> SinkPosition:
        assert self.states is not None
        state = self.states.get(key)
        return SinkPosition() if state is None else decode_sink(state)

    def _put(self, key: bytes, position: SinkPosition, done: Callable[[], None]) -> None:
        assert self.states is not None
        self.states.put(key, encode_sink(position), done)


def _nobody() -> None:
    """Who waited was told otherwise."""

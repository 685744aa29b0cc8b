"""Declared readers of the journal: how far each has come, kept through restarts, and what is lost to it.

A reader tells its position now and then. One that was heard of within ``journal.readers_wait`` is *alive* and holds
back the age limit of the journal (`retention`); one that was not is shown until somebody drops it. A reader of another
journal than this one (a new data folder) holds back nothing: its offsets mean nothing here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from brookmq.base.alarms import Alarms
from brookmq.base.errors import OperationError
from brookmq.node.lost_ranges import LostRanges
from brookmq.ops.pipeline_view import ReaderInfo
from brookmq.store.journal.journal import Journal
from brookmq.store.pipeline_record import READER_KEY, ReaderState, decode_reader, encode_reader, reader_key
from brookmq.store.table.states import KeyedStates

log = logging.getLogger("brookmq.node")

READERS_MAX: Final = 1000
SEEN_EVERY_S: Final = 30.0  # a reader that stands still is written down again after this time
ALARM: Final = "journal_reader_lost"


class DeclaredReaders:
    """``wait_s`` is ``journal.readers_wait``."""

    def __init__(self, states: KeyedStates, journal: Journal, alarms: Alarms, wait_s: float) -> None:
        self._states = states
        self._journal = journal
        self._alarms = alarms
        self._wait_s = wait_s
        self.loaded = False  # whether all that are kept are known: before that nothing may be taken for read
        self._known: dict[str, ReaderState] = {}
        self._counted: dict[str, LostRanges] = {}  # what is in the count of a reader
        states.when_loaded(self._load)

    def put(
        self, name: str, position: Mapping[int, int], filters: Sequence[str], lost: int | None, done: Callable[[], None]
    ) -> None:
        """What a reader tells; ``done`` when it is stored. ``lost`` is its own count, if it has one."""
        now = time.time()
        before = self._known.get(name)
        if before is None and len(self._known) >= READERS_MAX:
            raise OperationError(f"there are {READERS_MAX} readers already; drop one: brookmq ctl readers drop NAME")
        count = len(self._journal.shards)
        if any(shard >= count for shard in position):
            raise LookupError(f"there is no shard {max(position)}: the journal has {count}")
        full = {shard: position.get(shard, 0) for shard in range(count)}
        details = before.details if before is not None else {}
        if lost is None:
            lost = before.lost if before is not None else 0
        state = ReaderState(self._journal.identity.name, full, tuple(filters), now, lost, details)
        self._known[name] = state
        if before is not None and _same(before, state) and now - before.seen_at < SEEN_EVERY_S:
            self._known[name] = before  # as it is in the store
            done()
            return
        self._states.put(reader_key(name), encode_reader(state), done)
        self._look_at(name, state)

    def lose(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]], done: Callable[[], None]) -> None:
        """Offsets that a reader has found to be gone: they are counted once, however often it tells."""
        before = self._known[name]
        counted = self._counted.setdefault(name, LostRanges())
        count = len(self._journal.shards)
        if any(shard >= count for shard in ranges):
            raise LookupError(f"there is no shard {max(ranges)}: the journal has {count}")
        lost = sum(counted.add(shard, *each) for shard, found in ranges.items() for each in found)
        if not lost:
            done()
            return
        log.warning("the reader %s has skipped %d journal messages that are gone", name, lost)
        self._known[name] = replace(before, lost=before.lost + lost, seen_at=time.time())
        self._states.put(reader_key(name), encode_reader(self._known[name]), done)

    def drop(self, name: str, done: Callable[[], None]) -> bool:
        """Forget a reader; false if there is none, and then nobody is told."""
        if self._known.pop(name, None) is None:
            return False
        self._counted.pop(name, None)
        self._alarms.deactivate(f"{ALARM}/{name}", time.time())
        return self._states.remove(reader_key(name), done)

    def get(self, name: str) -> ReaderInfo | None:
        state = self._known.get(name)
        return None if state is None else self._info(name, state)

    def all(self) -> list[ReaderInfo]:
        """By name."""
        return [self._info(name, state) for name, state in sorted(self._known.items())]

    def floor(self, shard: int) -> int | None:
        """The first offset that a reader which is alive has not read; None when there is no such reader."""
        offsets = [state.position.get(shard, 0) for state in self._known.values() if self._alive(state)]
        return min(offsets, default=None)

    def watch(self) -> None:
        """Looks whether retention has taken what somebody has not read."""
        for name, state in self._known.items():
            self._look_at(name, state)

    def _load(self) -> None:
        for key, state in self._states.items(READER_KEY):
            self._known.setdefault(key[1:].decode(), decode_reader(state))
        self.loaded = True

    def _alive(self, state: ReaderState) -> bool:
        return self._current(state) and state.seen_at > time.time() - self._wait_s

    def _current(self, state: ReaderState) -> bool:
        return state.journal == self._journal.identity.name

    def _shortfall(self, name: str, state: ReaderState) -> int:
        """What is gone before the reader has got there, and it does not know yet."""
        if not self._current(state):
            return 0
        counted = self._counted.get(name, LostRanges())
        firsts = ((shard, at, self._journal.first_offset(shard)) for shard, at in state.position.items())
        return sum(counted.uncounted(shard, at, first) for shard, at, first in firsts)

    def _info(self, name: str, state: ReaderState) -> ReaderInfo:
        lag = sum(
            max(0, shard.stored - state.position.get(shard.number, 0)) if self._current(state) else 0
            for shard in self._journal.shards
        )
        return ReaderInfo(
            name,
            state.journal,
            {str(shard): offset for shard, offset in state.position.items()},
            list(state.filters),
            state.seen_at,
            lag,
            state.lost + self._shortfall(name, state),
            self._alive(state),
        )

    def _look_at(self, name: str, state: ReaderState) -> None:
        lost, alarm = self._shortfall(name, state), f"{ALARM}/{name}"
        if not lost:
            self._alarms.deactivate(alarm, time.time())
            return
        message = f"retention removed {lost} journal messages before the reader {name} could read them"
        if self._alarms.activate(alarm, {"reader": name, "messages": lost}, message, time.time()):
            log.warning("%s", message)


def _same(one: ReaderState, other: ReaderState) -> bool:
    return (one.position, one.filters, one.lost, one.journal) == (
        other.position,
        other.filters,
        other.lost,
        other.journal,
    )

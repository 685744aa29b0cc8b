"""Fault points: places in the production code where a test can make a process die, and the proof that it got there.

What is promised for a crash holds at every moment, but some moments last microseconds, and random kills miss them. So
they have names: ``if faults.armed: faults.hit("journal.append")``. Without ``BROOKMQ_FAULTS`` in the environment that
is one attribute look-up.

``BROOKMQ_FAULTS`` is the path of a *ledger*: a small file that test and node map into their memory. The node counts in
it, and what was counted survives kill -9 of the node; the test writes orders into it ("at the third hit from now on
kill the store") while the node runs.

The ledger has *breaks* too: ways to make a node wrong on purpose, so that a test can show that it would notice. A break
is in the production code as well (``if faults.armed and faults.broken("dedup_off")``), since what a checker has to
catch is the real code with one rule missing. And it can lower *bounds*, so that what happens once an hour happens in a
test of a minute.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Final

from brookmq.base.errors import OperationError

ENVIRONMENT: Final = "BROOKMQ_FAULTS"

POINTS: Final[dict[str, str]] = {
    "journal.append": "A batch is sealed and is about to be handed to its log.",
    "journal.stored": "The store has a batch, and nobody was told: no receiver, no publisher.",
    "journal.acknowledged": "The acknowledgements of a batch are in the outlets, and may not have left the process.",
    "journal.summary": "A part of the index is about to be written as a summary.",
    "journal.ownership": "A shard is about to be seized, at start or from another owner.",
    "state.append": "A record of changes of a table (sessions, retained) is about to be handed to its log.",
    "state.stored": "The store has a record of changes, and what waited for it was not done yet.",
    "snapshot.write": "A part of a table is about to be written as a snapshot.",
    "snapshot.purge": "All snapshots are stored that cover the oldest changes, which are about to be purged.",
    "session.sent": "A strict session's SENT is stored, and the PUBLISH packets are about to go out.",
    "session.pubrel": "A subscriber's PUBREC is stored, and the PUBREL is about to go out.",
    "session.released": "A publisher's PUBREL is stored as released, and the PUBCOMP is about to go out.",
    "will.taken": "A will is stored as taken, and is about to be published.",
}

BREAKS: Final[dict[str, str]] = {
    "ack_before_append": "PUBACK and PUBREC go out before the store has the message.",
    "cursor_too_early": "A session's progress is stored before its messages were sent and acknowledged.",
    "dedup_off": "A QoS 2 packet id that is open already does not stop the message from being taken again.",
    "batches_swapped": "Two batches of a shard are appended in the wrong order.",
}

BOUNDS: Final[dict[str, str]] = {
    "table.tail_records": "Records of a table's log that no snapshot covers, before snapshots are written.",
}


class Victim(IntEnum):
    """Who dies at a point."""

    NODE = 1  # the process that hits it; its own store dies with it
    STORE = 2  # the store's process, where the node has one of its own
    BOTH = 3  # the store first


_ROW: Final = struct.Struct("<QQQQ")  # hits, the hit at which somebody dies (0: none), who, how often that happened
_HITS, _AT, _WHO, _FIRED = range(0, _ROW.size, 8)
_NUMBER: Final = struct.Struct("<Q")
_BOUNDS_AT: Final = _ROW.size * len(POINTS)
_BREAKS_AT: Final = _BOUNDS_AT + 8 * len(BOUNDS)
_SIZE: Final = _BREAKS_AT + len(BREAKS)
_STORE_PROGRAM: Final = "nats-server"


class Ledger:
    """The file that a test and its nodes share. One node at a time counts in it."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), _SIZE)
        except (OSError, ValueError) as error:
            raise OperationError(f"{ENVIRONMENT}: {path} is no ledger of fault points: {error}") from None
        self._rows = {name: _ROW.size * place for place, name in enumerate(POINTS)}
        self._bounds = {name: _BOUNDS_AT + 8 * place for place, name in enumerate(BOUNDS)}
        self._breaks = {name: _BREAKS_AT + place for place, name in enumerate(BREAKS)}

    @classmethod
    def create(cls, path: Path, *breaks: str, bounds: Mapping[str, int] | None = None) -> Ledger:
        """A new ledger, without orders; for the test."""
        path.write_bytes(bytes(_SIZE))
        made = cls(path)
        for name, value in (bounds or {}).items():
            made._put(made._bounds[name], value)
        for name in breaks:
            made._map[made._breaks[name]] = 1
        return made

    def close(self) -> None:
        self._map.close()

    # for the test

    def order(self, point: str, who: Victim, after: int = 1) -> None:
        """Somebody dies at the hit of ``point`` that is so many hits away; takes the place of an earlier order."""
        row = self._rows[point]
        self._put(row + _AT, 0)
        self._put(row + _WHO, who)
        self._put(row + _AT, self._get(row + _HITS) + after)

    def withdraw(self) -> None:
        """No order stands any more."""
        for row in self._rows.values():
            self._put(row + _AT, 0)

    def hits(self) -> dict[str, int]:
        """How often each point was hit."""
        return {name: self._get(row + _HITS) for name, row in self._rows.items()}

    def fired(self) -> dict[str, int]:
        """How often somebody died at each point."""
        return {name: self._get(row + _FIRED) for name, row in self._rows.items()}

    # for the node

    def hit(self, point: str) -> None:
        """Counts, and carries out the order that stands for this hit."""
        row = self._rows[point]
        hits = self._get(row + _HITS) + 1
        self._put(row + _HITS, hits)
        at = self._get(row + _AT)
        if not 0 < at <= hits:  # an order that came a moment too late for its hit takes the next one
            return
        self._put(row + _AT, 0)
        who = Victim(self._get(row + _WHO))
        store = None if who is Victim.NODE else _store_pid()
        if who is Victim.STORE and store is None:
            return
        self._put(row + _FIRED, self._get(row + _FIRED) + 1)
        if store is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(store, signal.SIGKILL)
        if who is not Victim.STORE:
            os.kill(os.getpid(), signal.SIGKILL)

    def broken(self, name: str) -> bool:
        return bool(self._map[self._breaks[name]])

    def bound(self, name: str, normal: int) -> int:
        return self._get(self._bounds[name]) or normal

    def _get(self, place: int) -> int:
        number: int = _NUMBER.unpack_from(self._map, place)[0]
        return number

    def _put(self, place: int, number: int) -> None:
        _NUMBER.pack_into(self._map, place, number)


def _store_pid() -> int | None:
    """The store among the children of this process."""
    for file in Path("/proc/self/task").glob("*/children"):
        for child in file.read_text("ascii").split():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                if Path("/proc", child, "comm").read_text("utf-8").strip() == _STORE_PROGRAM:
                    return int(child)
    return None


_ledger: Final = Ledger(Path(os.environ[ENVIRONMENT])) if os.environ.get(ENVIRONMENT) else None
armed: Final = _ledger is not None


def hit(point: str) -> None:
    """The node is at this point. Ask ``armed`` before."""
    if _ledger is not None:
        _ledger.hit(point)


def broken(name: str) -> bool:
    """Whether the node is to be wrong in this way. Ask ``armed`` before."""
    return _ledger is not None and _ledger.broken(name)


def bound(name: str, normal: int) -> int:
    """A bound, which is the normal one unless a test has lowered it; for defaults, asked once."""
    return normal if _ledger is None else _ledger.bound(name, normal)

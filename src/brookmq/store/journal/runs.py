"""Which records of a shard a reader outside of the node has to fetch for a range of offsets: *runs* of sequences.

Readers fetch records from the store themselves, and the node's index says which. A run is a stretch of the stream that
is read whole: batches of it follow each other without a gap in their offsets, so that a reader can see whether one is
missing; between them are records of other kinds, which it passes over. What lies between two runs holds nothing wanted.
Runs that are close together are one, since a few records more cost less than a request more; and their number is
bounded, by closing the smallest gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from brookmq.store.errors import Ambiguous
from brookmq.store.journal.index import Found, Hole, Missing, ShardIndex, by_part
from brookmq.store.journal.seeking import Seeker
from brookmq.store.journal.summary import Summary

CLOSE: Final = 8  # records that are read for nothing rather than left out
RUNS_MAX: Final = 1000  # of a shard in one plan
BATCHES_MAX: Final = 20_000  # looked at at a time: then runs are made of them


class Run(NamedTuple):
    """Records from ``first`` to ``last`` (sequences, both included), for the offsets from ``start`` to before ``end``
    of the range that was asked about."""

    first: int
    last: int
    start: int
    end: int


class ShardRuns:
    """Makes the runs of one shard."""

    def __init__(self, index: ShardIndex, seeker: Seeker) -> None:
        self._index = index
        self._seeker = seeker

    async def whole(self, start: int, end: int) -> list[Run]:
        """All records of a range that is stored: one run, or none when what was there is gone."""
        if start >= end:
            return []
        first, last = await self._place(start), await self._place(end - 1)
        return [] if first is None or last is None else [Run(first[2], last[2], max(start, first[0]), end)]

    async def some(self, start: int, end: int, wanted: frozenset[int]) -> list[Run]:
        """The records of a range that may hold one of these ids."""
        runs: list[Run] = []
        offset, parts = start, by_part(wanted)
        held: dict[int, Summary | Hole] = {}
        while offset < end and parts:
            answer = self._index.step(offset, parts, end, held)
            if isinstance(answer, Missing):
                if not answer.parts:  # the newest batches are being read again after a start
                    runs += await self.whole(offset, end)
                    break
                for part in answer.parts:
                    held[part] = self._index.found(part, offset, await self._seeker.summaries(part, offset))
                continue
            held.clear()
            until = min(answer.end, end)
            if answer.batches is None:
                runs += await self.whole(offset, until)
            else:
                runs += (_run(found, offset, until) for found in answer.batches)
            if len(runs) > BATCHES_MAX:
                runs = bounded(joined(runs))
            offset = until
        return bounded(joined(runs))

    async def _place(self, offset: int) -> Found | None:
        """The batch with this offset, or the first one behind it when it is gone."""
        found = self._index.place_of(offset)
        if found is not None:
            return found
        rows = await self._seeker.rows(offset)
        if not rows:
            return None
        if rows[0].end <= offset:
            raise Ambiguous(f"shard {self._seeker.number}: offset {offset} was not found")
        return rows[0].base, rows[0].end, rows[0].sequence


def _run(found: Found, start: int, end: int) -> Run:
    base, ending, sequence = found
    return Run(sequence, sequence, max(base, start), min(ending, end))


def joined(runs: Iterable[Run]) -> list[Run]:
    """The same in order, those that are close together as one. A batch may be in several: its summaries cut it."""
    result: list[Run] = []
    for run in sorted(runs):
        before = result[-1] if result else None
        if before is not None and run.first - before.last <= CLOSE + 1:
            result[-1] = _both(before, run)
        else:
            result.append(run)
    return result


def bounded(runs: list[Run], count_max: int = RUNS_MAX) -> list[Run]:
    """No more than so many, by joining those with the least between them."""
    if len(runs) <= count_max:
        return runs
    gaps = sorted(range(1, len(runs)), key=lambda at: runs[at].first - runs[at - 1].last)
    closed = set(gaps[: len(runs) - count_max])
    result: list[Run] = []
    for at, run in enumerate(runs):
        if at in closed:
            result[-1] = _both(result[-1], run)
        else:
            result.append(run)
    return result


def _both(one: Run, other: Run) -> Run:
    return Run(one.first, max(one.last, other.last), min(one.start, other.start), max(one.end, other.end))

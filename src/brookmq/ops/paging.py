"""Listings of any size, read page by page without holding the event loop.

A table of the broker is a dict in no useful order, and it changes while somebody reads it. A :class:`Listing` takes its
keys once, sorts them in small parts, each in its own slice of time, and merges as many as a page needs. The cursor is
the last key of the page before, so it stays good when the sorted keys are forgotten, when rows come and go, and when
the node restarts.

What it costs with 100,000 keys in one dict: 10 to 15 ms to copy them, the one piece that can't be cut (the time goes
into touching every key once), 13 slices of 2 ms to sort them, and then about a millisecond to find a page. Larger
tables have to come in parts, each of them copied in a slice of its own.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import merge
from itertools import chain, islice
from time import monotonic
from typing import Generic

from brookmq.ops.view import Page, Row

PART_KEYS = 8192
"""Keys sorted at a time: about 2 ms of a slow core."""

SLICE_S = 0.003
"""Time after which a long search gives the loop back, a small part of the 20 ms that anything may take."""

SCANNED_ROWS_MAX = 50_000
"""Rows that one page may look at. A rare match answers with a short page and a cursor, not with a long wait."""

SNAPSHOT_AGE_MAX_S = 30.0
"""How long later pages may use the keys that the first page took."""


class Listing(Generic[Row]):
    """The rows of one table in the order of their keys.

    ``parts`` gives the table's keys as one or more iterables. A container (a dict, a list) is copied in one go; a
    generator is read in slices, and has to bear that the table changes in between. ``row`` makes the row of a key, or
    ``None`` when it is gone by now.
    """

    def __init__(self, parts: Callable[[], Iterable[Iterable[str]]], row: Callable[[str], Row | None]) -> None:
        self._parts = parts
        self._row = row
        self._snapshot: list[list[str]] | None = None
        self._forgetting: asyncio.TimerHandle | None = None
        self._taking = asyncio.Lock()

    async def page(self, after: str, limit: int, matches: Callable[[Row], bool] | None = None) -> Page[Row]:
        """The first ``limit`` rows whose keys come after ``after`` and that match."""
        snapshot = await self._keys(fresh=not after)
        items: list[Row] = []
        slice_ends = monotonic() + SLICE_S
        last = after
        following = _following(snapshot, after)
        for key in islice(following, SCANNED_ROWS_MAX):
            last = key
            row = self._row(key)
            if row is not None and (matches is None or matches(row)):
                items.append(row)
                if len(items) == limit:
                    break
            if monotonic() > slice_ends:
                await asyncio.sleep(0)
                slice_ends = monotonic() + SLICE_S
        more = next(following, None) is not None
        return Page(items, last if more else None)

    async def _keys(self, *, fresh: bool) -> list[list[str]]:
        """The table's keys in sorted parts: taken anew for a first page, so that it shows who came just now."""
        async with self._taking:
            if fresh or self._snapshot is None:
                self._snapshot = await _sorted_parts(self._parts())
                if self._forgetting is not None:
                    self._forgetting.cancel()
                self._forgetting = asyncio.get_running_loop().call_later(SNAPSHOT_AGE_MAX_S, self._forget)
            return self._snapshot

    def _forget(self) -> None:
        """Let go of the keys (8 MB for a million); a later page takes them again."""
        self._snapshot = None
        self._forgetting = None


async def _sorted_parts(parts: Iterable[Iterable[str]]) -> list[list[str]]:
    sorted_parts: list[list[str]] = []
    keys = chain.from_iterable(map(_steady, parts))
    while part := sorted(islice(keys, PART_KEYS)):
        sorted_parts.append(part)
        await asyncio.sleep(0)
    return sorted_parts


def _steady(part: Iterable[str]) -> Iterable[str]:
    """Keys that can be read in slices: of a container, which may change in between, those that it has now."""
    return list(part) if isinstance(part, Collection) else part


def _following(sorted_parts: list[list[str]], after: str) -> Iterator[str]:
    """All keys greater than ``after``, in order, worked out as far as they are asked for."""
    tails = (map(part.__getitem__, range(bisect_right(part, after), len(part))) for part in sorted_parts)
    return iter(merge(*tails))

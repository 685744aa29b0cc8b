"""Markers in a table's log, so that a start reads few records although many small ones were appended.

A trickle of changes makes a record for each, and reading one costs some 20 µs at any size: a tail of 12 MiB could take
seconds. So after every ``range_records`` records a *marker* is appended. It names the range behind the marker before
it, and repeats the range's records as a *digest* if they are small together; what is large is read as it is.

``Ranges`` decides when a marker is due. ``Walk`` is the way back from the log's end, from marker to marker. Both have
no store in them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from brookmq.store.table.format import MARKER, Marker, decode_marker, encode_marker, form_of
from brookmq.store.table.limits import TableLimits

Body = bytes | None  # of a record; None for one of ownership
NO_MARKER: Final = 0


class Ranges:
    """The records since the last marker."""

    def __init__(self, limits: TableLimits, previous: int) -> None:
        self._limits = limits
        self._previous = previous  # the sequence of the last marker
        self._bodies: list[tuple[int, Body]] = []
        self._count = 0
        self._bytes = 0

    def appended(self, sequence: int, body: Body) -> bytes | None:
        """A record is in the log; returns the marker that has to be appended right behind it, if one has to."""
        if body is not None and form_of(body, "a record of our own") == MARKER:
            self._previous = sequence
            self._bodies.clear()
            self._count = self._bytes = 0
            return None
        self._count += 1
        self._bytes += len(body) if body is not None else 0
        if self._bytes <= self._limits.digest_bytes_max:
            self._bodies.append((sequence, body))
        else:
            self._bodies.clear()
        if self._count < self._limits.range_records:
            return None
        return encode_marker(Marker(self._previous, self._bytes <= self._limits.digest_bytes_max, self._bodies))


class Walk:
    """Collects the records ``first`` to ``last`` of a log: ``ranges`` says what to read, ``take`` gets it.

    What is not there any more is not missed: it was purged, and so was all before it.
    """

    def __init__(self, first: int, last: int, window: int) -> None:
        self._first = first
        self._last = last
        self._window = window
        self._bodies: dict[int, Body] = {}
        self._markers: dict[int, Marker] = {}

    def take(self, sequence: int, body: Body, where: str) -> None:
        """A record that was read."""
        self._bodies[sequence] = body
        if body is not None and form_of(body, where) == MARKER:
            self._markers[sequence] = decode_marker(body, where)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """What to read, range by range; each has to be taken before the next is asked for."""
        upper = self._last
        lower = max(self._first, upper - self._window + 1)
        yield lower, upper
        at = max(self._markers, default=NO_MARKER)
        if not at:
            if lower > self._first:
                yield self._first, lower - 1
            return
        plain: deque[tuple[int, int]] = deque()
        while at in self._markers:
            marker = self._markers[at]
            if marker.digest:
                self._bodies |= {sequence: body for sequence, body in marker.bodies if self._first <= sequence < at}
            else:
                plain.append((max(self._first, marker.previous + 1), min(at, lower) - 1))
            at = marker.previous
            if at >= self._first and at not in self._markers:
                yield at, at
        yield from (span for span in plain if span[0] <= span[1])

    def records(self) -> Iterator[tuple[int, Body]]:
        """All of them, by sequence."""
        for sequence in sorted(self._bodies):
            yield sequence, self._bodies[sequence]

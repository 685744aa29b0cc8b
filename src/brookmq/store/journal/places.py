"""Where in a shard's stream an offset is: a memory of *boundaries*, and the guess between two of them.

A boundary is an offset and a sequence that cut the shard at the same place: every batch at a lower sequence ends at or
before the offset, every batch at this sequence or a higher one begins at or behind it. Each record that is read or
written tells one or two. Between two boundaries the place of an offset is guessed by proportion, since batches of a
shard are much alike; every third guess halves instead, so that the search ends soon whatever they look like.

Boundaries stay true when retention removes records: they say nothing about what is still there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

PLACES_MAX: Final = 8192  # boundaries of a shard; with more, every second one is forgotten
HALVE_EVERY: Final = 3


class Bounds(NamedTuple):
    """The boundaries around an offset: ``low_offset <= offset < high_offset``."""

    low_offset: int
    low: int  # sequence
    high_offset: int
    high: int  # sequence

    def guess(self, offset: int, turn: int) -> int:
        """A sequence between the two, at or below the place of the offset if batches are alike."""
        if turn % HALVE_EVERY == HALVE_EVERY - 1:
            return (self.low + self.high) // 2
        share = (offset - self.low_offset) * (self.high - self.low) // (self.high_offset - self.low_offset)
        return min(self.low + share, self.high - 1)


class Places:
    """The boundaries of one shard. Both columns rise."""

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._sequences: list[int] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, offset: int, sequence: int) -> None:
        """Remembers a boundary. Of several sequences for one offset (records without messages between) one will do."""
        at = bisect_left(self._offsets, offset)
        if at < len(self._offsets) and self._offsets[at] == offset:
            return
        self._offsets.insert(at, offset)
        self._sequences.insert(at, sequence)
        if len(self._offsets) > PLACES_MAX:
            del self._offsets[1:-1:2]
            del self._sequences[1:-1:2]

    def forget_below(self, offset: int) -> None:
        """What lies below is gone from the store; the last boundary at or below stays, as the lower end."""
        count = bisect_right(self._offsets, offset) - 1
        if count > 0:
            del self._offsets[:count]
            del self._sequences[:count]

    def around(self, offset: int, stored: int, end: int) -> Bounds:
        """The boundaries around an offset below ``stored``; ``end`` is the sequence behind the last batch."""
        at = bisect_right(self._offsets, offset)
        low_offset, low = (self._offsets[at - 1], self._sequences[at - 1]) if at else (0, 1)
        if at < len(self._offsets) and self._offsets[at] < stored:
            return Bounds(low_offset, low, self._offsets[at], max(self._sequences[at], low))
        return Bounds(low_offset, low, stored, max(end, low))

    def check_invariants(self) -> list[str]:
        """What must hold and does not."""
        rules = {
            "offsets rise": self._offsets == sorted(set(self._offsets)),
            "sequences rise": self._sequences == sorted(self._sequences),
            "one sequence each": len(self._offsets) == len(self._sequences),
            "bounded": len(self._offsets) <= PLACES_MAX,
        }
        return [rule for rule, holds in rules.items() if not holds]

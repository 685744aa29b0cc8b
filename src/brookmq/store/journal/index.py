"""Which batches of a shard hold which filter ids: in memory for the newest, in summaries for the others.

Each batch that is stored leaves its filter ids in ``Postings``, in 64 parts by id. After every few batches the part
that was covered least is written as a summary: a record of the same stream that names the batches of its range by id.
So every part is covered to within about 512 batches of the head, no append waits for more than one small record, and a
start has to read no more than those batches again. The part's ids leave memory when its summary is stored.

A reader asks step by step: ``step`` answers for a range of offsets from what is in memory (postings, summaries that
were read), or says what has to be read first. A range that no summary covers although it should (a hole) has no answer
by id and is read whole. Batches that were matched for all, because the table of filters was still loading, are in the
answer for every id.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from brookmq.base.errors import InvariantError
from brookmq.store.journal.batch import Batch, joined_filters
from brookmq.store.journal.cache import Cache
from brookmq.store.journal.postings import PARTS, Postings
from brookmq.store.journal.summary import RANGE_MAX, Summary, encode_summary

BATCHES_PER_SUMMARY: Final = 8
PAIRS_MAX: Final = 2_000_000  # 16 MB; with more, a summary follows each batch until there are fewer

Found = tuple[int, int, int]  # base, end and sequence of a batch


class Answer(NamedTuple):
    """What holds from the offset that was asked about up to ``end``."""

    end: int
    batches: list[Found] | None  # in order; None: it is not known, so all of them may


class Missing(NamedTuple):
    """Parts whose summaries at the offset have to be read first; none: the newest batches are being read again."""

    parts: list[int]


class Draft(NamedTuple):
    """A summary to be stored: ``ShardIndex.stored`` wants it back when it is."""

    part: int
    body: bytes
    upto: int  # number of the first batch that it does not cover


class Row(NamedTuple):
    """What the index keeps of a batch."""

    base: int
    end: int
    sequence: int
    everything: bool
    filters: bytes


class Hole:
    """A range of a part that no summary covers; in the cache it stands where the summary would."""

    size = 100

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


def by_part(wanted: Iterable[int]) -> list[tuple[int, list[int]]]:
    """Filter ids with their parts."""
    parts: dict[int, list[int]] = {}
    for one in wanted:
        parts.setdefault(one % PARTS, []).append(one)
    return sorted(parts.items())


def row_of(batch: Batch) -> Row:
    """A batch as the index keeps it."""
    return Row(batch.base, batch.end, batch.sequence, batch.everything, joined_filters(batch.groups))


class ShardIndex:
    """The index of one shard.

    ``covers[part]``: where the last summary of a part ends; from there on its ids are in memory. The newest batches are
    numbered from ``_number``; their columns begin with the first one that some part's summaries do not cover.
    """

    def __init__(self, shard: int, start: int, summaries: Cache[Summary | Hole]) -> None:
        self.covers = [start] * PARTS
        self.settled = True  # False while batches without a summary are being read again
        self._shard = shard
        self._summaries = summaries
        self._postings = Postings()
        self._number = 0  # of the first batch in the columns
        self._bases = array("Q")
        self._ends = array("Q")
        self._sequences = array("Q")
        self._everything: list[int] = []  # numbers
        self._waiting: list[Row] = []  # batches that were stored before the index was settled
        self._since = 0  # batches since the last summary
        self.writing = False  # a draft is out

    @property
    def pairs(self) -> int:
        """Ids in memory, counted once for each batch that has them."""
        return self._postings.size

    @property
    def uncovered(self) -> int:
        """Batches that a start would have to read again."""
        return len(self._ends) - bisect_right(self._ends, min(self.covers))

    def line(self, part: int) -> int:
        """Where a part's summaries are in the cache."""
        return self._shard * PARTS + part

    # Writing

    def resume(self, summary: Summary) -> None:
        """At a start: the last summary of a part, as far as it reaches beyond what retention has left."""
        if summary.end > self.covers[summary.part]:
            self.covers[summary.part] = summary.end
            self._summaries.put(self.line(summary.part), summary.start, summary)

    def add(self, batch: Batch) -> None:
        """Takes a batch that was stored, right behind the one before; it waits while older ones are read again."""
        row = row_of(batch)
        if self.settled:
            self._take(row)
            self._since += 1
        else:
            self._waiting.append(row)

    def recover(self, row: Row) -> None:
        """At a start: takes a batch that was read again. Parts take only what their own summaries do not cover."""
        number = self._number + len(self._bases)
        for part, end in enumerate(self.covers):
            if end > row.base:
                self._postings.begin(part, number + 1)
        self._take(row)

    def settle(self) -> None:
        """All batches without a summary were read again."""
        self.settled = True
        waiting, self._waiting = self._waiting, []
        for row in waiting:
            self._take(row)
        self._since = BATCHES_PER_SUMMARY

    def _take(self, row: Row) -> None:
        number = self._number + len(self._bases)
        if row.base < (self._ends[-1] if self._ends else min(self.covers)):
            raise InvariantError(f"shard {self._shard}: offset {row.base} is in the index already")
        self._bases.append(row.base)
        self._ends.append(row.end)
        self._sequences.append(row.sequence)
        if row.everything:
            self._everything.append(number)
        self._postings.add(number, row.filters)

    def draft(self, *, at_once: bool = False) -> Draft | None:
        """A summary that is due, for the part that is covered least; one at a time is out."""
        if self.writing or not self._bases or not self.settled:
            return None
        if self._since < BATCHES_PER_SUMMARY and self._postings.size <= PAIRS_MAX and not at_once:
            return None
        end = self._ends[-1]
        part = min(range(PARTS), key=self.covers.__getitem__)
        if self._postings.size > PAIRS_MAX:
            part = max(range(PARTS), key=self._postings.pairs)
        start = self.covers[part]
        if start >= end:
            return None
        self._since = 0
        self.writing = True
        low = bisect_right(self._ends, start)
        if self._bases[low] - start > RANGE_MAX // 2:  # offsets were left out behind a journal that had aged away
            start = self._bases[low]
        high = min(len(self._bases), bisect_left(self._ends, start + RANGE_MAX - 1))
        numbers = self._number + low, self._number + high
        everything = [number for number in self._everything if numbers[0] <= number < numbers[1]]
        named, *lists = self._postings.encode(part, *numbers, everything)
        places = {number: place for place, number in enumerate(named)} if everything else {}
        body = encode_summary(
            part,
            (start, self._ends[high - 1]),
            (self._sequences[low], self._sequences[high - 1] + 1),
            [self._found(number - self._number) for number in named],
            [places[number] for number in everything],
            (lists[0], lists[1], lists[2]),
        )
        return Draft(part, body, numbers[1])

    def stored(self, draft: Draft) -> None:
        """A draft is a summary now; its part's ids leave memory."""
        self.writing = False
        summary = Summary(draft.body, f"the summary of part {draft.part}")
        self._summaries.put(self.line(draft.part), summary.start, summary)
        self._postings.begin(draft.part, draft.upto)
        self.covers[draft.part] = summary.end
        gone = bisect_right(self._ends, min(self.covers))
        if gone >= BATCHES_PER_SUMMARY:
            del self._bases[:gone], self._ends[:gone], self._sequences[:gone]
            self._number += gone
            self._everything = [number for number in self._everything if number >= self._number]

    def dropped(self) -> None:
        """The draft that was out could not be stored."""
        self.writing = False

    # Reading

    def step(
        self, offset: int, parts: list[tuple[int, list[int]]], stored: int, held: Mapping[int, Summary | Hole]
    ) -> Answer | Missing:
        """What is known about these ids from an offset on, below ``stored``.

        ``held`` has summaries by part that the asker keeps itself, as the cache may be too small for all of them.
        """
        end = stored
        known = settled = True
        in_memory: list[int] = []
        summaries: list[tuple[Summary, list[int]]] = []
        missing: list[int] = []
        for part, ids in parts:
            if offset >= self.covers[part]:
                settled = self.settled
                in_memory += ids
                continue
            summary = held.get(part)
            if summary is None or not summary.start <= offset < summary.end:
                summary = self._summaries.find(self.line(part), offset)
            if summary is None:
                missing.append(part)
            else:
                end = min(end, summary.end)
                if isinstance(summary, Summary):
                    summaries.append((summary, ids))
                else:
                    known = False
        if missing or not settled:
            return Missing(missing)
        if not known:
            return Answer(end, None)
        found: set[Found] = set()
        for summary, ids in summaries:
            found.update(summary.find(ids, offset, end))
        if in_memory:
            found.update(self._newest(in_memory, offset, end))
        return Answer(end, sorted(found))

    def found(self, part: int, offset: int, summaries: list[Summary]) -> Summary | Hole:
        """A part's summaries from the first that ends behind an offset were read; none: there is none in the store.

        Returns the one for the offset.
        """
        line = self.line(part)
        for summary in reversed(summaries):  # the first one is wanted first: it is to be the newest in the cache
            self._summaries.put(line, summary.start, summary)
        start = summaries[0].start if summaries else max(self.covers[part], offset + 1)
        if start <= offset:
            return summaries[0]
        hole = Hole(offset, start)
        self._summaries.put(line, offset, hole)
        return hole

    def place_of(self, offset: int) -> Found | None:
        """The batch with this offset, if it is one of the newest."""
        at = bisect_right(self._ends, offset)
        return self._found(at) if at < len(self._bases) and self._bases[at] <= offset else None

    def _newest(self, ids: list[int], offset: int, end: int) -> Iterable[Found]:
        first = self._number + bisect_right(self._ends, offset)
        last = self._number + bisect_left(self._bases, end)
        numbers = {number for number in self._everything if first <= number < last}
        for one in ids:
            numbers.update(self._postings.find(one, first, last))
        return [self._found(number - self._number) for number in numbers]

    def _found(self, at: int) -> Found:
        return self._bases[at], self._ends[at], self._sequences[at]

"""Reading a shard's stream by offset: batches in a row, batches by name, summaries, the oldest, by time.

Every method is one attempt: it raises ``StoreError`` when the store does not answer, and is tried again by who asked.
Where in the stream an offset is comes from ``Places``; each record that is read makes that more precise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from brookmq.store.errors import Ambiguous, BadRecord
from brookmq.store.journal.batch import Batch, decode_batch, decode_filters
from brookmq.store.journal.index import Row
from brookmq.store.journal.places import Bounds, Places
from brookmq.store.journal.summary import Summary
from brookmq.store.reader import Lanes, Record, leader_record
from brookmq.store.record import HEADER_BYTES, decode_header
from brookmq.store.streams import look

RUN_RECORDS: Final = 16  # batches in one request: the one that is wanted and what will be wanted next
RUN_BYTES: Final = 512 * 1024
SUMMARIES_BYTES: Final = 256 * 1024
NEAR: Final = 16  # records between two boundaries: read in a row instead of searched
NEAR_SUMMARIES: Final = 1200  # the same for summaries: two of a part lie some 600 records apart


class Placed(Protocol):
    """A batch, or what the index keeps of one."""

    @property
    def base(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def sequence(self) -> int: ...


Item = TypeVar("Item", bound=Placed)
Decode = Callable[[int, int, bytes], Item]  # of a shard, the batch at a sequence


def decode_row(shard: int, sequence: int, body: bytes) -> Row:
    """What the index keeps of a batch, from its record's body."""
    base, end, everything, filters = decode_filters(shard, sequence, body)
    return Row(base, end, sequence, everything, filters)


class Seeker:
    """Reads one shard."""

    def __init__(self, number: int, lanes: Lanes, stored: Callable[[], int]) -> None:
        self.number = number
        self.places = Places()
        self.last = 0  # sequence of the last batch
        self.batches_read = 0
        self.lanes = lanes
        self._stored = stored
        self._subject = batches_subject(number)

    async def run(self, offset: int) -> tuple[list[Batch], int]:
        """The batches from the one with this offset on, and a sequence at or before its place.

        The first one begins behind the offset when what was there is gone; none comes when all are.
        """
        return await self._run(offset, decode_batch)

    async def rows(self, offset: int) -> list[Row]:
        """The same, as the index has them: without unpacking their messages."""
        return (await self._run(offset, decode_row))[0]

    async def _run(self, offset: int, decode: Decode[Item]) -> tuple[list[Item], int]:
        bounds = self._bounds(offset)
        turn = 0
        while True:
            near = bounds.low_offset == offset or bounds.high - bounds.low <= NEAR
            first = bounds.low if near else bounds.guess(offset, turn)
            turn += 1
            batches = await self._decoded(await self._next(first, RUN_RECORDS if near else 1), decode)
            for place, batch in enumerate(batches):
                if batch.end > offset and (batch.base <= offset or place or first <= bounds.low):
                    return batches[place:], bounds.low
            if batches and batches[0].base <= offset:
                bounds = bounds._replace(low_offset=batches[-1].end, low=batches[-1].sequence + 1)
            elif first <= bounds.low:
                if (await look(self.lanes.link, self.lanes.stream)).first_sequence > self.last:
                    return [], bounds.low
                raise Ambiguous(f"{self.lanes.stream}: offset {offset} is stored and not there yet")
            else:
                bounds = bounds._replace(high=first, high_offset=batches[0].base if batches else bounds.high_offset)
            if bounds.high <= bounds.low:
                bounds = bounds._replace(high=max(self.last + 1, bounds.low + 1), high_offset=self._stored())
                if turn > 200:
                    raise Ambiguous(f"{self.lanes.stream}: offset {offset} was not found")

    async def named(self, sequences: list[int]) -> list[Batch]:
        """The batches at these sequences, which are close together; the first ones of them, if they are large."""
        records = await self._next(sequences[0], sequences[-1] - sequences[0] + 1)
        return await self._batches([record for record in records if record[0] <= sequences[-1]])

    async def leaders(self, sequence: int) -> Batch | None:
        """A batch as the stream's leader has it; None when it is gone."""
        record = await leader_record(self.lanes.link, self.lanes.stream, sequence)
        return None if record is None else (await self._batches([(sequence, record)]))[0]

    async def summaries(self, part: int, offset: int) -> list[Summary]:
        """A part's summaries from the one that covers an offset on; none when none ends behind it.

        A summary covers all batches up to where it was written. So the one that covers an offset is the first one
        behind the batch with this offset.
        """
        subject = summaries_subject(self.number, part)
        bounds = self._bounds(offset)
        turn = 0
        while True:
            near = bounds.low_offset == offset or bounds.high - bounds.low <= NEAR_SUMMARIES
            first = bounds.low if near else bounds.guess(offset, turn)
            turn += 1
            records = await self.lanes.next(first, subject, 64 if near else 1, SUMMARIES_BYTES)
            summaries = [self._summary(*record) for record in records]
            for place, summary in enumerate(summaries):
                if summary.end > offset and (near or summary.start <= offset):
                    return summaries[place:]
            if near and not summaries:
                return []
            if summaries and summaries[-1].end <= offset:
                bounds = bounds._replace(low_offset=summaries[-1].end, low=records[-1][0] + 1)
                bounds = bounds._replace(high=max(bounds.high, bounds.low))
            else:
                bounds = bounds._replace(
                    high=first, high_offset=summaries[0].start if summaries else bounds.high_offset
                )

    async def oldest(self, known: int = 0) -> tuple[int, int] | None:
        """Offset and sequence of the first batch that is still there, or ``stored`` when none is.

        None when the stream begins where it is known to: then nothing was read.
        """
        stored = self._stored()  # before asking: what is stored meanwhile is not gone
        state = await look(self.lanes.link, self.lanes.stream)
        if state.first_sequence == known:
            return None
        batches = await self._batches(await self._next(state.first_sequence, 1))
        return (batches[0].base if batches else stored), state.first_sequence

    async def at_time(self, unix_time: float) -> int:
        """The offset of the first message that was published at this time or later; ``stored`` when there is none."""
        state = await look(self.lanes.link, self.lanes.stream)
        low, high = state.first_sequence, self.last + 1  # every batch below ``low`` is too old, none at ``high`` is
        found: Batch | None = None
        while low < high:
            middle = (low + high) // 2
            batches = await self._batches(await self._next(middle, 1))
            if batches and batches[0].last_time < unix_time:
                low = batches[0].sequence + 1
            else:
                found = batches[0] if batches else found
                high = middle
        if found is None or found.last_time < unix_time:
            batches = await self._batches(await self._next(low, 1))
            found = batches[0] if batches else None
        if found is not None:
            for group in found.groups:
                if group.published_at >= unix_time:
                    return group.first
        return self._stored()

    # Records

    async def _next(self, first: int, count: int) -> list[Record]:
        return await self.lanes.next(first, self._subject, count, RUN_BYTES)

    async def _batches(self, records: list[Record]) -> list[Batch]:
        return await self._decoded(records, decode_batch)

    async def _decoded(self, records: list[Record], decode: Decode[Item]) -> list[Item]:
        items: list[Item] = []
        for sequence, record in records:
            if items:
                await asyncio.sleep(0)  # a batch takes some milliseconds to unpack, and others wait
            try:
                decode_header(record, sequence)
                item = decode(self.number, sequence, record[HEADER_BYTES:])
            except BadRecord:
                if items:
                    break  # what stands before it can be read; who comes to it will hear
                raise
            self.places.put(item.base, sequence)
            items.append(item)
        if items:
            self.places.put(items[-1].end, items[-1].sequence + 1)
        self.batches_read += len(items)
        return items

    def _summary(self, sequence: int, record: bytes) -> Summary:
        decode_header(record, sequence)
        summary = Summary(record[HEADER_BYTES:], f"{self.lanes.stream}, the summary at {sequence}")
        self.places.put(summary.start, summary.first)
        self.places.put(summary.end, summary.next)
        return summary

    def floor(self, offset: int) -> int:
        """A sequence at or before the place of an offset; what is wanted from the same one is read once."""
        return self._bounds(offset).low

    def _bounds(self, offset: int) -> Bounds:
        return self.places.around(offset, self._stored(), self.last + 1)


def stream_name(shard: int) -> str:
    """The stream of a shard."""
    return f"JOURNAL_{shard}"


def batches_subject(shard: int) -> str:
    """Where the batches of a shard are."""
    return f"journal_{shard}"


def summaries_subject(shard: int, part: int | str) -> str:
    """Where the summaries of a part are; ``*`` for all parts."""
    return f"journal_{shard}.index.{part}"

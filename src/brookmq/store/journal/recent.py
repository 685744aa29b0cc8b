"""The last batches of a shard, kept in memory: a reader that is nearly at the head needs no store."""

from __future__ import annotations

from itertools import pairwise

from brookmq.base.errors import InvariantError
from brookmq.store.journal.batch import Batch


class RecentBatches:
    """Batches without a gap between them, the oldest first, bounded by what they take in memory."""

    __slots__ = ("batches", "bytes", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.batches: list[Batch] = []
        self.bytes = 0
        self.bytes_max = bytes_max  # beyond it the oldest leave; a batch that is larger by itself does not stay

    def add(self, batch: Batch) -> None:
        """Takes the batch behind the last one."""
        self.batches.append(batch)
        self.bytes += batch.size
        excess = 0
        while self.bytes > self.bytes_max:
            oldest = self.batches[excess]
            self.bytes -= oldest.size
            excess += 1
        if excess:
            del self.batches[:excess]

    def clear(self) -> None:
        self.batches.clear()
        self.bytes = 0

    def find(self, offset: int) -> Batch | None:
        """The batch with this offset, if it is here."""
        place = self.place(offset)
        return self.batches[place] if place >= 0 else None

    def place(self, offset: int) -> int:
        """Where in ``batches`` the one with this offset is; -1 when it is not here."""
        batches = self.batches
        count = len(batches)
        if count == 0:
            return -1
        first, last = batches[0], batches[count - 1]
        if offset < first.base or offset >= last.end:
            return -1
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            at = batches[middle]
            if at.end > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def check_invariants(self, end: int) -> None:
        """Raises when what must hold does not; ``end`` is where the last batch has to end."""
        batches = self.batches
        rules = {
            "no gap": all(earlier.end == later.base for earlier, later in pairwise(batches)),
            "they end where the shard does": not batches or batches[len(batches) - 1].end == end,
            "their bytes are counted": self.bytes == sum(batch.size for batch in batches),
            "their bytes are bounded": self.bytes <= self.bytes_max,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError(f"recent batches: {'; '.join(broken)}")

"""Memory for what was read from the store, shared by all readers and all shards: the least recently used goes first."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Cached(Protocol):
    """Something with a place on a line (offsets of a shard, or of a shard's part) and a size in bytes."""

    @property
    def size(self) -> int: ...
    @property
    def end(self) -> int: ...


Item = TypeVar("Item", bound=Cached)


class Cache(Generic[Item]):
    """Items on lines. ``bytes`` is the size of all, and at most ``bytes_max`` unless the newest alone is larger."""

    def __init__(self, bytes_max: int, lines: int) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self._items: OrderedDict[tuple[int, int], Item] = OrderedDict()  # by line and start, oldest use first
        self._starts: list[list[int]] = [[] for _ in range(lines)]  # of the items on each line, sorted

    def __len__(self) -> int:
        return len(self._items)

    def put(self, line: int, start: int, item: Item) -> None:
        """Takes an item; one that is there already stays, unless the new one reaches further."""
        key = (line, start)
        there = self._items.get(key)
        if there is not None:
            if there.end >= item.end:
                self._items.move_to_end(key)
                return
            self._remove(key)
        self._items[key] = item
        insort(self._starts[line], start)
        self.bytes += item.size
        while self.bytes > self.bytes_max and len(self._items) > 1:
            oldest = next(iter(self._items))
            self._remove(oldest)

    def get(self, line: int, start: int) -> Item | None:
        """The item that starts there."""
        key = (line, start)
        item = self._items.get(key)
        if item is not None:
            self._items.move_to_end(key)
        return item

    def find(self, line: int, place: int) -> Item | None:
        """The item that has this place between its start and its end."""
        starts = self._starts[line]
        at = bisect_right(starts, place)
        if at == 0:
            return None
        key = (line, starts[at - 1])
        item = self._items[key]
        if item.end <= place:
            return None
        self._items.move_to_end(key)
        return item

    def forget_below(self, line: int, place: int) -> None:
        """Removes what ends at or before a place: it is gone from the store."""
        for start in self._starts[line][: bisect_right(self._starts[line], place)]:
            if self._items[line, start].end <= place:
                self._remove((line, start))

    def _remove(self, key: tuple[int, int]) -> None:
        line, start = key
        self.bytes -= self._items.pop(key).size
        starts = self._starts[line]
        del starts[bisect_right(starts, start) - 1]

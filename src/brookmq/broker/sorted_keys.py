"""A sorted set of byte strings that stays quick at a million of them, for walks that outlive changes.

Python's own containers do not fit: a dictionary cannot be walked while it changes, and one sorted list moves megabytes
at each insertion. So the keys are a list of short sorted lists; to find one is two binary searches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from itertools import pairwise

from brookmq.base.errors import InvariantError

CHUNK_KEYS_MAX = 1024  # keys of one sorted list: an insertion moves at most 8 KiB


class SortedKeys:
    """A sorted set of keys as a list of short sorted lists, so that no operation moves or copies all of them."""

    __slots__ = ("_chunks", "_firsts")

    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = []  # none is empty; each has at most CHUNK_KEYS_MAX keys
        self._firsts: list[bytes] = []  # _firsts[i] == _chunks[i][0]

    def add(self, key: bytes) -> None:
        """Add a key that is not in the set."""
        if not self._chunks:
            self._chunks.append([key])
            self._firsts.append(key)
            return
        index = max(bisect_right(self._firsts, key) - 1, 0)
        chunk = self._chunks[index]
        insort(chunk, key)
        self._firsts[index] = chunk[0]
        if len(chunk) > CHUNK_KEYS_MAX:
            # Keys that come in order fill the last list: cutting off only its end keeps the lists full then.
            cut = len(chunk) - 1 if index == len(self._chunks) - 1 and chunk[-1] is key else len(chunk) // 2
            self._chunks.insert(index + 1, chunk[cut:])
            self._firsts.insert(index + 1, chunk[cut])
            del chunk[cut:]

    def remove(self, key: bytes) -> None:
        """Remove a key that is in the set."""
        index = bisect_right(self._firsts, key) - 1
        chunk = self._chunks[index]
        del chunk[bisect_left(chunk, key)]
        if chunk:
            self._firsts[index] = chunk[0]
        else:
            del self._chunks[index], self._firsts[index]

    def run(self, start: bytes) -> tuple[list[bytes], int]:
        """Where the least key >= ``start`` is: a list of keys in order and an index in it; an empty list at the end.

        The list belongs to the set: it is good until the set changes.
        """
        if not self._chunks:
            return [], 0
        index = max(bisect_right(self._firsts, start) - 1, 0)
        chunk = self._chunks[index]
        offset = bisect_left(chunk, start)
        if offset < len(chunk):
            return chunk, offset
        return (self._chunks[index + 1], 0) if index + 1 < len(self._chunks) else ([], 0)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            yield from chunk

    def check_invariants(self) -> None:
        """Raise InvariantError when the structure is broken; for tests."""
        if self._firsts != [chunk[0] for chunk in self._chunks]:
            raise InvariantError("sorted keys: the first keys are not those of the lists")
        if not all(0 < len(chunk) <= CHUNK_KEYS_MAX for chunk in self._chunks):
            raise InvariantError("sorted keys: a list that is empty or too long")
        if not all(a < b for a, b in pairwise(self)):
            raise InvariantError("sorted keys: not sorted, or a key twice")

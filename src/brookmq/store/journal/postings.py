"""The plain twin of ``postings.pyx``: which of the newest batches hold which filter ids, in parts by id.

It is what runs without a compiler, and what the compiled form is tested against; the reasons stand there.
"""

from __future__ import annotations

import struct
from itertools import groupby
from operator import itemgetter
from typing import Final

COMPILED = False
PARTS: Final = 64


class Postings:
    """Filter ids of batches that no summary covers."""

    def __init__(self) -> None:
        self.size = 0  # pairs of a filter id and a batch, over all parts
        self._begin = [0] * PARTS
        self._parts: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]

    def add(self, number: int, filters: bytes) -> None:
        """Takes the ids (4 bytes each, big endian) in batch ``number``, which is higher than any before."""
        for filter_id in sorted(set(struct.unpack(f">{len(filters) // 4}I", filters))):
            part = filter_id % PARTS
            if number >= self._begin[part]:
                self._parts[part].append((filter_id, number))
                self.size += 1

    def begin(self, part: int, number: int) -> None:
        """Forgets what a part has about batches below ``number``, and takes no more of it."""
        self._begin[part] = number
        kept = [entry for entry in self._parts[part] if entry[1] >= number]
        self.size -= len(self._parts[part]) - len(kept)
        self._parts[part] = kept

    def pairs(self, part: int) -> int:
        """How much a part has."""
        return len(self._parts[part])

    def find(self, filter_id: int, first: int, last: int) -> list[int]:
        """The batches from ``first`` to before ``last`` that hold an id."""
        return [number for one, number in self._parts[filter_id % PARTS] if one == filter_id and first <= number < last]

    def encode(self, part: int, first: int, last: int, also: list[int]) -> tuple[list[int], bytes, bytes, bytes]:
        """A part as its summary has it, for batches from ``first`` to before ``last``.

        Returns the batches that it names (and those in ``also``), in order; the ids, sorted; where each one's list
        ends; and the lists: places in the first of these, each as the distance from the one before.
        """
        entries = sorted(entry for entry in self._parts[part] if first <= entry[1] < last)
        named = sorted({number for _, number in entries}.union(also))
        places = {number: place for place, number in enumerate(named)}
        ids: list[int] = []
        ends: list[int] = []
        lists = bytearray()
        for filter_id, members in groupby(entries, key=itemgetter(0)):
            before = 0
            for _, number in members:
                _put_varint(lists, places[number] - before)
                before = places[number]
            ids.append(filter_id)
            ends.append(len(lists))
        return named, struct.pack(f"<{len(ids)}I", *ids), struct.pack(f"<{len(ends)}I", *ends), bytes(lists)


def read_list(data: bytes, start: int, end: int) -> list[int]:
    """The places in the list at ``data[start:end]``."""
    found: list[int] = []
    place = value = shift = 0
    for byte in data[start:end]:
        value |= (byte & 0x7F) << shift
        if byte >= 0x80:
            shift += 7
            continue
        place += value
        found.append(place)
        value = shift = 0
    return found


def _put_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)

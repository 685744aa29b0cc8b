"""The memory that all readers share."""

from __future__ import annotations

import random

from brookmq.store.journal.cache import Cache


class Piece:
    def __init__(self, start: int, end: int, size: int = 10) -> None:
        self.start, self.end, self.size = start, end, size


def test_found_by_any_place_in_it() -> None:
    cache: Cache[Piece] = Cache(1000, 2)
    piece = Piece(10, 20)
    cache.put(0, 10, piece)
    assert all(cache.find(0, place) is piece for place in range(10, 20))
    assert cache.find(0, 9) is cache.find(0, 20) is cache.find(1, 15) is None
    assert cache.get(0, 10) is piece
    assert cache.get(0, 11) is None


def test_the_least_recently_used_leaves_first() -> None:
    cache: Cache[Piece] = Cache(30, 1)
    for start in (0, 10, 20):
        cache.put(0, start, Piece(start, start + 10))
    cache.get(0, 0)
    cache.find(0, 15)
    cache.put(0, 30, Piece(30, 40))
    assert [start for start in (0, 10, 20, 30) if cache.get(0, start)] == [0, 10, 30]


def test_one_that_is_larger_than_the_bound_stays_until_the_next() -> None:
    cache: Cache[Piece] = Cache(30, 1)
    cache.put(0, 0, Piece(0, 10))
    cache.put(0, 10, Piece(10, 20, size=100))
    assert (len(cache), cache.bytes) == (1, 100)
    cache.put(0, 20, Piece(20, 30))
    assert (len(cache), cache.bytes) == (1, 10)


def test_of_two_with_one_start_the_longer_stays() -> None:
    cache: Cache[Piece] = Cache(1000, 1)
    short, long = Piece(0, 10), Piece(0, 20, size=30)
    for first, second in ((short, long), (long, short)):
        cache.put(0, 0, first)
        cache.put(0, 0, second)
        assert cache.get(0, 0) is long
        assert cache.bytes == 30


def test_what_retention_removed_leaves() -> None:
    cache: Cache[Piece] = Cache(1000, 2)
    for line in range(2):
        for start in range(0, 100, 10):
            cache.put(line, start, Piece(start, start + 10))
    cache.forget_below(0, 55)
    assert [place for place in range(0, 100, 10) if cache.find(0, place)] == [50, 60, 70, 80, 90]
    assert len(cache) == 15


def test_bytes_and_places_agree_after_any_use() -> None:
    chance = random.Random(1)
    cache: Cache[Piece] = Cache(300, 3)
    for _ in range(3000):
        line, start = chance.randrange(3), chance.randrange(0, 1000, 10)
        if chance.random() < 0.05:
            cache.forget_below(line, start)
        else:
            cache.put(line, start, Piece(start, start + chance.choice([5, 10]), chance.randrange(1, 60)))
        found = cache.find(chance.randrange(3), chance.randrange(1000))
        assert found is None or found.size > 0
        assert cache.bytes <= 300
    pieces = [piece for line in range(3) for start in range(0, 1000, 10) if (piece := cache.get(line, start))]
    assert len(pieces) == len(cache)
    assert sum(piece.size for piece in pieces) == cache.bytes

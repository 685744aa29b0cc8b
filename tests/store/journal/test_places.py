"""Where an offset is: boundaries around it are true, and the search between them ends."""

from __future__ import annotations

import random

import pytest

from brookmq.store.journal.places import PLACES_MAX, Places


class Stream:
    """Batches at some of the sequences of a stream: (base, end, sequence)."""

    def __init__(self, seed: int, count: int) -> None:
        chance = random.Random(seed)
        self.batches: list[tuple[int, int, int]] = []
        base, sequence = chance.randrange(1000), chance.randrange(1, 100)
        for _ in range(count):
            end = base + chance.choice([1, 2, 500, 5000])
            self.batches.append((base, end, sequence))
            base, sequence = end, sequence + chance.choice([1, 1, 1, 2, 40])
        self.stored, self.end = base, self.batches[-1][2] + 1

    def at(self, offset: int) -> tuple[int, int, int]:
        return next(batch for batch in self.batches if batch[1] > offset)

    def next(self, sequence: int) -> tuple[int, int, int] | None:
        return next((batch for batch in self.batches if batch[2] >= sequence), None)


@pytest.mark.parametrize("seed", range(20))
def test_boundaries_around_an_offset_hold_its_batch(seed: int) -> None:
    chance = random.Random(seed)
    stream = Stream(seed, 200)
    places = Places()
    for base, end, sequence in chance.sample(stream.batches, 20):
        places.put(base, sequence)
        places.put(end, sequence + 1)
    assert not places.check_invariants()
    for _ in range(100):
        offset = chance.randrange(stream.batches[0][0], stream.stored)
        bounds = places.around(offset, stream.stored, stream.end)
        assert bounds.low_offset <= offset < bounds.high_offset
        assert bounds.low <= stream.at(offset)[2] < bounds.high


@pytest.mark.parametrize("seed", range(20))
def test_a_search_from_nothing_is_short(seed: int) -> None:
    chance = random.Random(seed)
    stream = Stream(seed, 2000)
    places = Places()
    for _ in range(30):
        offset = chance.randrange(stream.batches[0][0], stream.stored)
        bounds = places.around(offset, stream.stored, stream.end)
        for turn in range(40):
            guess = bounds.guess(offset, turn)
            assert bounds.low <= guess < bounds.high
            found = stream.next(guess)
            if found is None or found[0] > offset:
                bounds = bounds._replace(high=guess, high_offset=found[0] if found else bounds.high_offset)
            elif found[1] <= offset:
                bounds = bounds._replace(low=found[2] + 1, low_offset=found[1])
            else:
                break
        else:
            raise AssertionError(f"{offset} was not found in 40 turns")


def test_what_retention_removed_is_forgotten_but_for_the_lower_end() -> None:
    places = Places()
    for offset in range(0, 1000, 10):
        places.put(offset, 1 + offset // 10)
    places.forget_below(505)
    assert len(places) == 50
    assert places.around(503, 1000, 200)[:2] == (500, 51)
    places.forget_below(2000)
    assert len(places) == 1


def test_the_memory_is_bounded_and_stays_true() -> None:
    stream = Stream(1, 2 * PLACES_MAX)
    places = Places()
    for base, _, sequence in stream.batches:
        places.put(base, sequence)
        places.put(base, sequence + 1)  # the first one that was said for an offset stays
    assert PLACES_MAX // 2 <= len(places) <= PLACES_MAX
    assert not places.check_invariants()
    for base, end, sequence in stream.batches[:: PLACES_MAX // 16]:
        bounds = places.around(base, stream.stored, stream.end)
        assert bounds.low <= sequence < bounds.high
        assert end <= stream.stored

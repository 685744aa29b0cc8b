"""Hundreds of stories of clients, crashes and a slow store, each of which comes out of its seed.

A story with a bad end prints its last lines and its seed; ``BROOKMQ_SIMULATION_SEED=N pytest -k every_story`` tells it
again.
"""

from __future__ import annotations

import os
import time

import pytest

from tests.broker.durability import planted
from tests.broker.durability.ledger import PromiseError
from tests.broker.durability.simulation import Simulation, StoryError

STEPS = 200
SECONDS_MAX = 20.0  # of all stories of the ordinary run; a slow machine tells fewer of them
SEEDS_MIN = 60
SEEDS_MAX = 400
REPLAYED = os.environ.get("BROOKMQ_SIMULATION_SEED", "")


def story(seed: int) -> Simulation:
    return Simulation(seed, STEPS if seed < SEEDS_MAX or seed % 10 else 5 * STEPS)


def tell_all(seconds_max: float = SECONDS_MAX) -> None:
    """As many as there is time for."""
    ends_at = time.monotonic() + seconds_max
    for count, seed in enumerate([int(REPLAYED)] if REPLAYED else range(SEEDS_MAX)):
        if count >= SEEDS_MIN and time.monotonic() > ends_at:
            break
        story(seed).run()


def test_promises_are_kept_in_every_story() -> None:
    tell_all()


@pytest.mark.long
@pytest.mark.parametrize("thousand", range(1, 5))
def test_promises_are_kept_in_thousands_of_stories(thousand: int) -> None:
    for seed in range(1000 * thousand, 1000 * thousand + 1000):
        story(seed).run()


@pytest.mark.parametrize("seed", [0, 7, 23])
def test_a_seed_is_always_the_same_story(seed: int) -> None:
    stories = []
    for _ in range(2):
        simulation = story(seed)
        simulation.run()
        stories.append([*simulation.trace])
    assert stories[0] == stories[1]


@pytest.mark.parametrize("bug", planted.BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: planted.Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(StoryError) as found:
        tell_all(float("inf"))
    assert isinstance(found.value.__cause__, PromiseError)

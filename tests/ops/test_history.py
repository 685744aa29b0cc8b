"""Samples of the last minutes: rates, a bound, and watchers that end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from brookmq.ops import history
from brookmq.ops.history import SAMPLES_MAX, History
from tests.ops.memory_node import MemoryNode


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(history, "monotonic", clock)
    return clock


def in_loop(memory_node: MemoryNode, work: Callable[[History], None]) -> None:
    async def run() -> None:
        work(History(memory_node))

    asyncio.run(run())


def test_rates_are_per_second_of_real_time(memory_node: MemoryNode, clock: Clock) -> None:
    def work(samples: History) -> None:
        memory_node.counted |= {"publishes_received": 100, "dropped_expired": 3, "dropped_queue_full": 4}
        clock.now += 2.0
        samples.take_sample()
        sample = json.loads(samples.encoded())[0]
        assert sample["rates"]["messages_in"] == 50
        assert sample["rates"]["dropped"] == 3.5
        assert sample["totals"]["dropped"] == 7
        clock.now += 1.0
        samples.take_sample()
        assert json.loads(samples.encoded(1))[0]["rates"]["messages_in"] == 0

    in_loop(memory_node, work)


def test_only_the_last_minutes_are_kept(memory_node: MemoryNode, clock: Clock) -> None:
    def work(samples: History) -> None:
        for number in range(SAMPLES_MAX + 5):
            memory_node.measured["connections"] = number
            samples.take_sample()
        kept = json.loads(samples.encoded())
        assert [sample["gauges"]["connections"] for sample in kept] == list(range(5, SAMPLES_MAX + 5))
        assert len(json.loads(samples.encoded(2))) == 2

    in_loop(memory_node, work)


def test_a_gauge_that_is_no_number_does_not_spoil_the_json(memory_node: MemoryNode, clock: Clock) -> None:
    def work(samples: History) -> None:
        memory_node.measured = {"connections": 1, "odd": float("nan")}
        samples.take_sample()
        assert json.loads(samples.encoded())[0]["gauges"] == {"connections": 1}

    in_loop(memory_node, work)


def test_watchers_get_new_samples_and_end_with_the_node(memory_node: MemoryNode) -> None:
    async def watch(samples: History, seen: list[str]) -> None:
        async for sample in samples.watch():
            seen += [sample]

    async def run() -> None:
        samples = History(memory_node)
        seen: list[str] = []
        watching = asyncio.create_task(watch(samples, seen))
        await asyncio.sleep(0)
        assert samples.watchers == 1
        samples.take_sample()
        await asyncio.sleep(0)
        assert len(seen) == 1
        await samples.stop()
        await asyncio.wait_for(watching, 5)
        assert samples.watchers == 0

    asyncio.run(run())

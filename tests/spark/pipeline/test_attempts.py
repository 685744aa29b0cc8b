"""Attempts on their threads, and what has come of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from brookmq.spark.pipeline.attempts import Attempts
from brookmq.spark.pipeline.batches import BatchError
from brookmq.spark.pipeline.query import Calls
from brookmq.spark.pipeline.supervising import Ended, Event, Launched, Lived, Rested, Start, Stop, Wrote
from brookmq.spark.positions import Position
from tests.spark.pipeline.test_statistics import report

WAIT_S = 60.0


class Run:
    """A query without Spark."""

    def __init__(self, name: str, calls: Calls) -> None:
        self.name, self.calls = name, calls
        self.run_id = f"run of {name}"
        self.over = False
        self.error: BatchError | None = None
        self.hurried = threading.Event()
        self.patience_s: float | None = None
        self.closed = False

    def is_over(self) -> bool:
        return self.over

    def outcome(self) -> BatchError | None:
        return self.error

    def stop(self, patience_s: float) -> None:
        self.patience_s = patience_s
        if patience_s:
            assert self.hurried.wait(WAIT_S)
        self.over = True

    def hurry(self) -> None:
        self.hurried.set()

    def close(self) -> None:
        self.closed = True


class World:
    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.trouble: Exception | None = None
        self.attempts = Attempts(self._make, self._launch, lambda: 1.0)  # type: ignore[arg-type]

    def _make(self, name: str, calls: Calls) -> Run:
        run = self.runs[name] = Run(name, calls)
        return run

    def _launch(self, _: Run) -> Position:
        if self.trouble is not None:
            raise self.trouble
        return {0: 7}

    def await_events(self, *wanted: Event) -> None:
        """Exactly these, in this order."""
        found: list[Event] = []
        deadline = time.monotonic() + WAIT_S
        while len(found) < len(wanted):
            assert time.monotonic() < deadline, found
            found += self.attempts.events()
            time.sleep(0.01)
        assert tuple(found) == wanted
        assert list(self.attempts.events()) == []


@pytest.fixture
def world() -> Iterator[World]:
    found = World()
    yield found
    found.attempts.close()


def test_from_start_to_stop(world: World) -> None:
    world.attempts.start(Start("a", 1, "v"))
    world.await_events(Launched("a", 1))
    assert world.attempts.numbers()[0]["a"].lag({0: 9}) == 2
    world.attempts.told("run of somebody", report())
    assert list(world.attempts.events()) == []
    world.attempts.told("run of a", None)
    world.runs["a"].calls.lived()
    world.runs["a"].calls.wrote()
    world.await_events(Lived("a", 1), Rested("a", 1), Wrote("a", 1))
    world.attempts.told("run of a", report(7))
    world.attempts.stop(Stop("a", 1), 10.0)
    world.attempts.stop(Stop("a", 1), 10.0)
    world.attempts.stop(Stop("a", 99), 0.0)  # of another time
    assert list(world.attempts.events()) == []
    world.attempts.stop(Stop("a", 1, at_once=True), 0.0)
    world.await_events(Ended("a", 1))
    assert world.runs["a"].patience_s == 10.0
    assert world.runs["a"].closed
    statistics, warnings = world.attempts.numbers()
    assert (statistics["a"].batch, warnings) == (7, {})


def test_a_query_that_dies(world: World) -> None:
    world.attempts.start(Start("a", 1, "v"))
    world.await_events(Launched("a", 1))
    world.runs["a"].calls.wrote()
    world.runs["a"].error = BatchError("no", for_good=True)
    world.runs["a"].over = True
    world.await_events(Wrote("a", 1), Ended("a", 1, "no", for_good=True))


@pytest.mark.parametrize(
    ("trouble", "message"),
    [(ConnectionError("brookmq: nobody"), "nobody"), (KeyError("bug"), "KeyError: 'bug'")],
)
def test_one_that_cannot_be_started(world: World, trouble: Exception, message: str) -> None:
    world.trouble = trouble
    world.attempts.start(Start("a", 1, "v"))
    world.await_events(Ended("a", 1, message))
    world.trouble = None
    world.attempts.start(Start("a", 2, "v"))
    world.await_events(Launched("a", 2))


def test_actions_that_failed_are_counted_over_starts_until_the_query_is_gone(world: World) -> None:
    world.attempts.start(Start("a", 1, "v"))
    world.runs["a"].calls.action_failed("no")
    statistics, warnings = world.attempts.numbers()
    assert (statistics["a"].actions_failed, warnings) == (1, {"a": "no"})
    world.runs["a"].over = True
    world.await_events(Launched("a", 1), Ended("a", 1))
    world.attempts.start(Start("a", 2, "v"))
    world.attempts.forget(lambda name: False)  # one that runs is not forgotten
    statistics, warnings = world.attempts.numbers()
    assert (statistics["a"].actions_failed, warnings) == (1, {})
    world.runs["a"].over = True
    world.await_events(Launched("a", 2), Ended("a", 2))
    world.attempts.forget(lambda name: False)
    assert world.attempts.numbers() == ({}, {})


def test_a_stop_that_goes_wrong_is_tried_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.attempts.start(Start("a", 1, "v"))
    world.await_events(Launched("a", 1))
    run, stops = world.runs["a"], []

    def stop(patience_s: float) -> None:
        stops.append(patience_s)
        if len(stops) == 1:
            raise ConnectionError("interrupted")
        run.over = True

    run.stop = stop  # type: ignore[method-assign]
    world.attempts.stop(Stop("a", 1), 5.0)
    world.await_events(Ended("a", 1))
    assert stops == [5.0, 0.0]
    assert "interrupted" in caplog.text

"""One attempt at a query, with a real Spark and a real node: batches that come again, and ends between batches."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from brookmq.spark.actions.interface import ActionError, BatchKey, NodeAccess
from brookmq.spark.pipeline.checkpoints import Checkpoints, Generation
from brookmq.spark.pipeline.documents import PipelineNode
from brookmq.spark.pipeline.progress import listen
from brookmq.spark.pipeline.query import Calls, QueryRun, Settings
from brookmq.spark.pipeline.statistics import Statistics
from tests.harness.raw import unique
from tests.spark.journal_node import JournalNode
from tests.spark.pipeline.test_wanted import one, rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from brookmq.spark.pipeline.wanted import WantedQuery

WAIT_S = 120.0


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


class Place:
    """An action in memory that keeps what it was given, by key, as real ones do."""

    def __init__(self) -> None:
        self.written: dict[BatchKey, list[int]] = {}
        self.calls: list[BatchKey] = []
        self.before: Callable[[BatchKey], None] = lambda key: None
        self.after: Callable[[BatchKey], None] = lambda key: None
        self.closed = threading.Event()

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        self.calls.append(key)
        self.before(key)
        rows = 0
        if key not in self.written:
            self.written[key] = [row.v for row in frame.collect()]
            rows = len(self.written[key])
        self.after(key)
        return rows

    def close(self) -> None:
        self.closed.set()

    @property
    def values(self) -> list[int]:
        return sorted(value for values in self.written.values() for value in values)


class World:
    """A rule over topics of its own, whose actions are places in memory."""

    def __init__(self, spark: SparkSession, journal: JournalNode, folder: Path, places: list[Place]) -> None:
        self.spark, self.journal, self.folder, self.places = spark, journal, folder, places
        self.topic = unique("query")
        self.name = unique("rule")
        self.wrote = threading.Event()
        self.failed: list[str] = []
        self.created_at = time.time() - 1.0

    def query(self, **fields: Any) -> WantedQuery:
        actions = [{"type": "console", "rows": number + 1} for number in range(len(self.places))]
        sql = fields.pop("sql", "SELECT CAST(payload.v AS BIGINT) AS v FROM")
        return one(rule(self.name, sql=f'{sql} "{self.topic}"', actions=actions, created_at=self.created_at, **fields))

    def generation(self, query: WantedQuery) -> Generation:
        node = PipelineNode([self.journal.url], None)
        try:
            return Checkpoints(self.folder).prepare(query, node.journal().journal, node)
        finally:
            node.close()

    def start(self, query: WantedQuery | None = None) -> QueryRun:
        query = query or self.query()
        self.wrote.clear()
        calls = Calls(lambda: None, self.wrote.set, self.failed.append)
        run = QueryRun(query, Settings(NodeAccess((self.journal.url,)), 1000), calls)
        run.start(self.spark, self.generation(query))
        return run

    def publish(self, *values: int) -> None:
        self.journal.publish_all([(self.topic, json.dumps({"v": value}).encode()) for value in values])

    def await_over(self, run: QueryRun) -> None:
        deadline = time.monotonic() + WAIT_S
        while not run.is_over():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def world(spark: SparkSession, journal: JournalNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    places = [Place()]

    def make(document: Any, *_: Any, **__: Any) -> Place:
        return places[document.rows - 1]

    monkeypatch.setattr("brookmq.spark.actions.make_action", make)
    return World(spark, journal, tmp_path, places)


def test_a_batch_comes_again_under_its_key_until_it_is_written(world: World) -> None:
    (place,) = world.places

    def die(key: BatchKey) -> None:
        raise ActionError("written, but nobody knows")

    place.after = die
    world.publish(1, 2, 3)
    run = world.start()
    world.await_over(run)
    outcome = run.outcome()
    assert str(outcome) == "written, but nobody knows"
    assert not (outcome and outcome.for_good)
    assert not world.wrote.is_set()
    place.after = lambda key: None
    again = world.start()
    assert world.wrote.wait(WAIT_S)
    again.stop(WAIT_S)
    assert place.values == [1, 2, 3]
    assert len(set(place.calls)) == len(place.written)
    assert len(place.calls) > len(place.written)
    assert {key.query for key in place.calls} == {world.generation(world.query()).query_id}


def test_a_stop_waits_for_the_batch_and_a_changed_rule_goes_on_behind_it(world: World) -> None:
    (place,) = world.places
    inside, go_on = threading.Event(), threading.Event()

    def hold(key: BatchKey) -> None:
        inside.set()
        assert go_on.wait(WAIT_S)

    place.before = hold
    world.publish(1, 2)
    run = world.start()
    assert inside.wait(WAIT_S)
    world.publish(3)  # for the next batch, which is not begun any more
    stopping = threading.Thread(target=run.stop, args=(WAIT_S,))
    stopping.start()
    stopping.join(0.5)
    assert stopping.is_alive()
    go_on.set()
    stopping.join(WAIT_S)
    assert run.is_over()
    assert run.outcome() is None
    written = len(place.values)
    place.before = lambda key: None
    changed = world.query(sql="SELECT CAST(payload.v AS BIGINT) AS v, topic FROM")
    second = world.start(changed)
    deadline = time.monotonic() + WAIT_S
    while len(place.values) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second.stop(WAIT_S)
    assert place.values == [1, 2, 3]
    assert written <= 2
    assert len({key.query for key in place.written}) == 2


def test_a_stop_that_does_not_wait_ends_what_only_waits(world: World) -> None:
    (place,) = world.places
    inside = threading.Event()

    def hold(key: BatchKey) -> None:
        inside.set()
        assert place.closed.wait(WAIT_S)
        raise ActionError("closed")

    place.before = hold
    world.publish(1)
    run = world.start()
    assert inside.wait(WAIT_S)
    run.stop(0.0)
    assert run.is_over()
    assert run.outcome() is None
    place.before = lambda key: None
    again = world.start()
    assert world.wrote.wait(WAIT_S)
    again.stop(WAIT_S)
    assert place.values == [1]


def test_a_rule_says_what_a_failure_means(world: World) -> None:
    bad, good = Place(), Place()
    world.places[:] = [bad, good]

    def refuse(key: BatchKey) -> None:
        raise ActionError("not today")

    bad.before = refuse
    world.publish(1)
    run = world.start(world.query(on_action_failed="continue"))
    assert world.wrote.wait(WAIT_S)
    run.stop(WAIT_S)
    assert (bad.values, good.values, world.failed) == ([], [1], ["not today"])
    world.publish(2)
    run = world.start(world.query(on_action_failed="stop"))
    world.await_over(run)
    outcome = run.outcome()
    assert outcome is not None
    assert (str(outcome), outcome.for_good) == ("not today", True)


def test_rows_for_several_actions_are_counted_once(world: World) -> None:
    world.places[:] = [Place(), Place(), Place()]
    counted = Statistics()
    reports: list[Any] = []

    def told(run_id: str, report: Any) -> None:
        if report is not None:
            reports.append(report["name"])
            if report["name"] == f"rule/{world.name}":
                counted.finished(report, 1.0)

    listener = listen(world.spark, told)
    try:
        world.publish(1, 2, 3)
        world.journal.publish_all([(world.topic, b"no json"), ("elsewhere", b"{}")])
        run = world.start(world.query(sql="SELECT CAST(payload.v AS BIGINT) AS v FROM"))
        deadline = time.monotonic() + WAIT_S
        while counted.matched < 4:
            assert time.monotonic() < deadline, (counted, reports)
            time.sleep(0.05)
        run.stop(WAIT_S)
    finally:
        world.spark.streams.removeListener(listener)
    assert (counted.matched, counted.failed, counted.passed) == (4, 1, 4)
    for place in world.places:
        assert sorted(value or 0 for values in place.written.values() for value in values) == [0, 1, 2, 3]
    ends = world.journal.ends()
    assert counted.lag(ends) == 0


def test_trouble_on_the_way_to_the_rows_is_told_in_a_line(world: World, journal: JournalNode) -> None:
    query = world.query()
    generation = world.generation(query)
    calls = Calls(lambda: None, world.wrote.set, world.failed.append)
    run = QueryRun(query, Settings(NodeAccess(("http://127.0.0.1:1",)), 1000), calls)
    run.start(world.spark, generation)
    world.await_over(run)
    assert str(run.outcome()) == "no node answers (option servers): http://127.0.0.1:1 (refused)"

"""`brookmq pipeline` with a real node and a real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.spark.journal_node import JournalNode
from tests.spark.pipeline.pipeline_process import PipelineProcess, ask, await_, delta_rows


class Place:
    """A node, a folder for tables, and a pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node = JournalNode(folder / "node")
        self.pipeline: PipelineProcess | None = None

    def start(self, *arguments: str) -> PipelineProcess:
        self.pipeline = PipelineProcess(self.node.url, self.folder / "pipeline", *arguments)
        return self.pipeline

    def put_rule(self, name: str, sql: str, *actions: dict[str, Any], **fields: Any) -> None:
        ask(self.node.url, "PUT", f"/rules/{name}", {"sql": sql, "actions": list(actions), **fields})

    def delta(self, name: str) -> dict[str, Any]:
        return {"type": "delta", "path": str(self.folder / name)}

    def rows(self, name: str) -> list[dict[str, Any]]:
        return delta_rows(self.folder / name)

    def has_rows(self, name: str) -> bool:
        return bool(self.rows(name))

    def values(self, name: str, column: str = "v") -> list[Any]:
        return sorted(row[column] for row in self.rows(name))

    def publish(self, *values: int, topic: str = "s/1") -> None:
        self.node.publish_all([(topic, json.dumps({"v": value}).encode()) for value in values], client_id="d1")

    def await_values(self, name: str, values: list[int]) -> None:
        assert self.pipeline is not None
        pipeline = self.pipeline
        await_(lambda: len(self.rows(name)) >= len(values), lambda: f"{self.values(name)}, {pipeline.told()}")
        assert self.values(name) == values

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "brookmq", "pipeline", *arguments, "--servers", self.node.url]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(tmp_path_factory.mktemp("pipeline"))
    yield found
    if found.pipeline is not None and found.pipeline.process.poll() is None:
        found.pipeline.stop()
    found.node.stop()


VALUES = 'SELECT CAST(payload.v AS BIGINT) AS v, topic FROM "s/#"'


def test_no_node_no_pipeline(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "brookmq", "pipeline", "run", "--servers", "http://127.0.0.1:1"]
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "no node answers" in done.stderr


def test_the_life_of_a_pipeline(place: Place) -> None:
    """One story, because Spark takes its time to start: each part stands on those before it."""
    assert place.command("status").returncode == 1
    place.put_rule("values", VALUES, place.delta("values"), {"type": "console", "rows": 1})
    place.publish(1, 2)
    pipeline = place.start()

    # rows of a rule
    place.await_values("values", [1, 2])
    first_rows_s = time.monotonic() - pipeline.started_at
    print(f"first rows after {first_rows_s:.1f} s")
    pipeline.await_query("rule/values", lambda query: query["state"] == "running" and query["passed"] == 2)

    # a rule that fails does not hinder the others; one that is added is taken up
    bad = {"type": "postgresql", "uri": "postgresql://nobody@127.0.0.1:1/none", "table": "t"}
    place.put_rule("broken", VALUES, bad)
    place.put_rule("late", VALUES, place.delta("late"))
    pipeline.await_query("rule/late", lambda query: query["state"] == "running")
    place.publish(3)
    place.await_values("late", [3])
    place.await_values("values", [1, 2, 3])
    failed = pipeline.await_query("rule/broken", lambda query: query["state"] == "failed" and query["restarts"] > 0)
    assert "PostgreSQL" in failed["message"]
    assert pipeline.queries["rule/values"]["restarts"] == 0

    # how it is told
    status = json.loads(place.command("status", "--json").stdout)
    assert status["alive"] is True
    assert {"rule/values", "rule/broken", "rule/late"} <= {one["name"] for one in status["queries"]}
    shown = place.command("status")
    assert shown.returncode == 0
    line = next(line for line in shown.stdout.splitlines() if line.startswith("rule/broken\t"))
    assert line.split("\t")[1] in ("failed", "starting")  # it is tried again and again
    assert "PostgreSQL" in line

    # a change goes on where the rule was; one that is gone is ended
    ask(place.node.url, "DELETE", "/rules/broken")
    place.put_rule("late", VALUES + " WHERE payload.v > 4", place.delta("late"))
    await_(lambda: "rule/broken" not in pipeline.queries, pipeline.told)
    place.publish(4, 5)
    place.await_values("late", [3, 5])

    # the end
    assert pipeline.stop() == 0
    assert pipeline.queries["rule/values"]["state"] == "stopped"
    assert place.command("status").returncode == 1


@pytest.mark.long  # in every run the demo has such tables
def test_the_ready_tables(tmp_path: Path) -> None:
    place = Place(tmp_path)
    try:
        init = place.command("init", "--filter", "s/#", "--path", str(place.folder / "lake"))
        assert init.returncode == 0, init.stderr
        assert "brookmq pipeline run" in init.stdout
        place.publish(1, 2)
        pipeline = place.start()
        for table in ("bronze", "silver", "gold_last"):
            await_(partial(place.has_rows, f"lake/{table}"), pipeline.told)
        assert [json.loads(row["payload"]) for row in place.rows("lake/gold_last")] == [{"v": 2}]
        pipeline.await_query("table/gold_minute", lambda query: query["state"] == "running")
        assert pipeline.stop() == 0
    finally:
        place.node.stop()


@pytest.mark.long
def test_all_that_is_there_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    try:
        place.put_rule("values", VALUES, place.delta("values"))
        for half in range(2):
            place.publish(2 * half, 2 * half + 1)
            once = place.start("--once")
            assert once.wait() == 0, once.told()
            assert place.values("values") == list(range(2 * half + 2))
    finally:
        place.node.stop()

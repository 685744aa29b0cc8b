"""What is shown: a table, lines, JSON."""

from __future__ import annotations

import io
import json
from typing import Any
from uuid import uuid4

from rich.console import Console

from brookmq.base.pipeline_status import PipelineStatus, QueryStatus
from brookmq.spark.pipeline.display import LINES_EVERY_S, JsonDisplay, PlainDisplay, TerminalDisplay, display_for, shown


def query(name: str = "rule/a", **fields: Any) -> QueryStatus:
    return QueryStatus(**{"name": name, "state": "running", "since": 1.0, **fields})


def status(*queries: QueryStatus) -> PipelineStatus:
    return PipelineStatus(
        id=str(uuid4()), master="local[2]", application="local-1", started_at=1.0, queries=list(queries)
    )


def printed(found: PipelineStatus, problem: str | None = None, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(shown(found, problem, width))
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def test_the_table_has_it_all() -> None:
    running = query(batch=3, batch_ms=120.4, rows_per_second=1234.5, lag=7, matched=1000, passed=9, failed=2)
    failed = query("table/b", state="failed", restarts=4, message="no\nnode \x1b[31m answers")
    text = printed(status(running, failed))
    for cell in ("rule/a", "running", "1,234", "120", "1,000", "failed (4)", r"no\nnode \x1b[31m answers"):
        assert cell in text
    assert "\x1b" not in text


def test_a_narrow_terminal_keeps_numbers_and_states() -> None:
    text = printed(status(query("rule/" + 60 * "n", lag=123456, message=100 * "x")), width=80)
    assert "123,456" in text
    assert "running" in text
    assert 100 * "x" in text.replace("\n", "")
    assert all(len(line) <= 80 for line in text.splitlines())


def test_nothing_to_run_and_a_node_that_is_away() -> None:
    text = printed(status(), "no node answers")
    assert "no rule or table is enabled" in text
    assert "no node answers" in text


def test_plain_lines_tell_what_changed() -> None:
    stream = io.StringIO()
    display = PlainDisplay(stream)
    display.note("Spark is starting")
    display.show(status(query(state="starting")), None, 0.0)
    display.show(status(query(state="starting")), None, 1.0)
    display.show(status(query(batch=0, matched=5)), None, 2.0)
    display.show(status(query(batch=1, matched=9)), None, 3.0)  # too soon
    display.show(status(query(batch=2, matched=12)), "away", 2.0 + LINES_EVERY_S)
    display.show(status(query(state="failed", message="no", batch=2)), None, 3.0 + LINES_EVERY_S)
    display.show(status(), None, 4.0 + LINES_EVERY_S)
    lines = stream.getvalue().splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "Spark is starting",
        "rule/a: starting",
        "rule/a: running",
        "rule/a: batch 0",
        "node: away",
        "rule/a: batch 2",
        "node: answers again",
        "rule/a: failed: no",
        "rule/a: removed",
    ]
    assert "matched 12" in lines[5]


def test_json_lines_come_when_something_changed() -> None:
    stream = io.StringIO()
    display = JsonDisplay(stream)
    display.note("hello")
    found = status(query())
    display.show(found, None, 0.0)
    display.show(found.model_copy(update={"queries": [query(since=2.0, rows_per_second=1.0)]}), None, 1.0)
    display.show(found.model_copy(update={"queries": [query(matched=1)]}), None, 2.0)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0] == {"note": "hello"}
    assert [line["queries"][0]["matched"] for line in lines[1:]] == [0, 1]
    assert lines[1]["problem"] is None


def test_what_suits_the_place() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(display_for(io.StringIO(), as_json=False), PlainDisplay)
    assert isinstance(display_for(io.StringIO(), as_json=True), JsonDisplay)
    assert isinstance(display_for(Terminal(), as_json=True), JsonDisplay)
    assert isinstance(display_for(Terminal(), as_json=False), TerminalDisplay)

"""What is counted of a query, from reports as Spark writes them."""

from __future__ import annotations

import json
from typing import Any

from brookmq.spark.pipeline.statistics import OBSERVED, OBSERVED_ROWS, RATE_S, Statistics


def report(batch: int = 0, *, matched: int | None = 10, end: int = 10, lost: int = 0, **others: Any) -> dict[str, Any]:
    observed = {OBSERVED: {"matched": matched, "failed": 1}, OBSERVED_ROWS: {"passed": 4}}
    position = {"journal": "j", "offsets": {"0": end, "1": 5}}
    return {
        "batchId": batch,
        "durationMs": {"triggerExecution": 120},
        "observedMetrics": observed if matched is not None else {},
        "sources": [{"endOffset": json.dumps(position), "latestOffset": {**position, "lost": lost}}],
        **others,
    }


def test_batches_add_up() -> None:
    counted = Statistics()
    counted.finished(report(0, end=10), 1.0)
    counted.finished(report(1, end=30, lost=7), 2.0)
    assert (counted.batch, counted.batch_ms) == (1, 120.0)
    assert (counted.matched, counted.failed, counted.passed, counted.lost) == (20, 2, 8, 7)
    assert counted.position == {0: 30, 1: 5}
    assert counted.lag({0: 40, 1: 5}) == 10
    assert counted.lag({0: 20, 1: 9}) == 4  # a node that was restarted may tell less for a moment


def test_a_batch_that_was_not_read_again_counts_nothing() -> None:
    counted = Statistics()
    counted.finished(report(3, matched=None), 1.0)
    nulls = {OBSERVED: {"matched": None, "failed": None}, OBSERVED_ROWS: {"passed": None}}
    counted.finished(report(4, observedMetrics=nulls), 1.0)
    assert (counted.batch, counted.matched, counted.failed, counted.passed) == (4, 0, 0, 0)


def test_rows_per_second_are_those_of_lately() -> None:
    counted = Statistics()
    assert counted.rows_per_second(0.0) == 0
    counted.finished(report(0), 1.0)
    counted.finished(report(1), 2.0)
    assert counted.rows_per_second(3.0) == 20 / RATE_S
    assert counted.rows_per_second(1.5 + RATE_S) == 10 / RATE_S
    assert counted.rows_per_second(100.0) == 0


def test_lag_is_not_known_before_the_first_batch() -> None:
    counted = Statistics()
    assert counted.lag({0: 5}) is None
    counted.finished(report(sources=[]), 1.0)
    assert counted.lag({0: 5}) is None
    counted.finished(report(), 1.0)
    assert counted.lag(None) is None
    assert counted.lag({0: 99}) is None  # a partition is missing

"""Reports of a pipeline: bounded, and open to newer ones."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from pydantic import ValidationError

from brookmq.base.pipeline_status import MESSAGE_CHARACTERS_MAX, QUERIES_MAX, PipelineStatus


def report(*queries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"id": str(uuid4()), "master": "local[2]", "application": "app-1", "started_at": 1.0}
    return {**head, "queries": list(queries), **fields}


def test_a_report_comes_back_as_it_was() -> None:
    query = {"name": "rule/hot", "state": "running", "batch": 3, "matched": 5, "lag": 7, "rows_per_second": 0.5}
    found = PipelineStatus.model_validate(report(query))
    assert PipelineStatus.model_validate(found.document()) == found
    (told,) = found.queries
    assert (told.name, told.matched, told.passed, told.message) == ("rule/hot", 5, 0, None)


def test_a_newer_pipeline_may_tell_more() -> None:
    query = {"name": "table/raw", "state": "waiting", "colour": "red"}
    assert PipelineStatus.model_validate(report(query, weather="fine")).queries[0].state == "waiting"


def test_a_long_message_is_cut() -> None:
    query = {"name": "rule/hot", "state": "failed", "message": "x" * (MESSAGE_CHARACTERS_MAX + 1)}
    message = PipelineStatus.model_validate(report(query)).queries[0].message
    assert message == "x" * MESSAGE_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (report(id="x"), "id"),
        (report({"name": "hot", "state": "running"}), "name"),
        (report({"name": "rule/hot", "state": "well"}), "state"),
        (report({"name": "rule/hot", "state": "running", "lag": -1}), "lag"),
        (report({"name": "rule/hot", "state": "running", "batch_ms": float("inf")}), "batch_ms"),
        (report(*[{"name": "rule/hot", "state": "running"}] * (QUERIES_MAX + 1)), "queries"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PipelineStatus.model_validate(wrong)

"""The journal over HTTP: what goes in and out, over a node of a few figures."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import httpx
import pytest

from tests.ops.memory_node import MemoryNode

PLAN = "/api/v1/journal/plan"


def test_the_journal_and_the_way_in_where_asked_for(api: httpx.Client) -> None:
    found = api.get("/api/v1/journal").json()
    assert found == {
        "cluster": "brookmq",
        "journal": "0a1b",
        "node": "n@h",
        "capture": ["a/#"],
        "shards": [
            {"shard": 0, "stream": "JOURNAL_0", "subject": "journal_0", "first": 10, "end": 20},
            {"shard": 1, "stream": "JOURNAL_1", "subject": "journal_1", "first": 10, "end": 20},
        ],
        "store": None,
    }
    assert api.get("/api/v1/journal", params={"credential": "true"}).json()["store"] == {
        "servers": ["nats://127.0.0.1:4321"],
        "user": "reader-1",
        "password": "secret",
        "expires_at": 3600.0,
        "inbox": "_INBOX.reader",
        "ca": None,
    }


def test_a_plan(api: httpx.Client, memory_node: MemoryNode) -> None:
    answer = api.post(PLAN, json={"ranges": {"0": [3, 9], "1": [4, 4]}, "filters": ["a/#"], "time": [1.5, 2]})
    assert answer.json() == {"0": [[5, 6, 3, 9]], "1": [[5, 6, 4, 4]], "lost": {"1": 1}}
    assert api.post(PLAN, json={"ranges": {}}).json() == {"lost": {}}
    assert memory_node.journal.planned == [({0: (3, 9), 1: (4, 4)}, ["a/#"], (1.5, 2.0)), ({}, [], None)]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "body.ranges: Field required"),
        ({"ranges": {"0": [5, 4]}}, "body: ranges.0: it ends before it begins"),
        ({"ranges": {"0": [-1, 4]}}, "body.ranges.0.0: Input should be greater than or equal to 0"),
        ({"ranges": {"0": [0, 1 << 48]}}, "body.ranges.0.1: Input should be less than or equal to 281474976710655"),
        ({"ranges": {"x": [0, 1]}}, "body.ranges.x.[key]: Input should be a valid integer"),
        ({"ranges": {"2": [0, 1]}}, "body.ranges: there is no such shard"),
        ({"ranges": {}, "filters": ["a"] * 1001}, "body.filters: List should have at most 1000 items"),
        ({"ranges": {}, "time": [0]}, "body.time.1: Field required"),
        ({"ranges": {}, "what": 1}, "body.what: Extra inputs are not permitted"),
    ],
)
def test_a_plan_that_makes_no_sense(api: httpx.Client, body: dict[str, Any], complaint: str) -> None:
    answer = api.post(PLAN, json=body)
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert answer.json()["message"].startswith(complaint)


def test_offsets_by_time(api: httpx.Client) -> None:
    assert api.get("/api/v1/journal/time/1700000000.5").json() == {"0": 1700000000, "1": 1700000001}
    for wrong in ("yesterday", "-1", "nan", "1e12"):
        assert api.get(f"/api/v1/journal/time/{wrong}").status_code == HTTPStatus.BAD_REQUEST


def test_without_a_store_there_is_no_answer(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.journal.trouble = "the store is starting"
    for answer in (
        api.get("/api/v1/journal"),
        api.post(PLAN, json={"ranges": {}}),
        api.get("/api/v1/journal/time/1"),
    ):
        assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
        assert answer.json()["message"] == "the store is starting"


def test_rows_go_to_the_node_as_they_came(api: httpx.Client, memory_node: MemoryNode) -> None:
    url = "/api/v1/publish/exactly-once/a%2Fb/7"
    assert api.get(url).json() == {"batch": 7, "row": -1}
    headers = {"content-type": "application/vnd.brookmq.rows"}
    assert api.post(url, content=b"rows", headers=headers).json() == {"batch": 7, "row": 0}
    assert memory_node.journal.rows == [("a/b", 7, b"rows")]
    for wrong in (
        api.post(url, content=b"rows"),
        api.post("/api/v1/publish/exactly-once/a/-1", content=b"", headers=headers),
        api.post(f"/api/v1/publish/exactly-once/{'x' * 1025}/1", content=b"", headers=headers),
    ):
        assert wrong.status_code == HTTPStatus.BAD_REQUEST
    assert len(memory_node.journal.rows) == 1
    assert api.delete("/api/v1/publish/exactly-once/a%2Fb").status_code == HTTPStatus.NO_CONTENT
    assert memory_node.journal.rows == []

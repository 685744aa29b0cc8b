"""Rules, schemas, tables, resources and the pipeline over HTTP, with a rule checker that is told what to say."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import uuid4

import httpx
import pytest

from brookmq.base.errors import OperationError
from brookmq.ops.rule_view import CannotCheckError
from tests.ops.memory_node import MemoryNode

API = "/api/v1"
SQL = 'SELECT payload.t AS t, payload.room::string AS room FROM "a/#"'
RULE = {"sql": SQL, "actions": [{"type": "republish", "topic": "hot/${room}"}]}
CSV = {"kind": "csv", "definition": {"fields": "t double"}}
DB = {"type": "postgresql", "settings": {"uri": "postgresql://me:hush@host/db"}}


def report(**fields: Any) -> dict[str, Any]:
    return {"id": str(uuid4()), "master": "local[2]", "application": "app", "started_at": 5.0, "queries": [], **fields}


def refused(answer: httpx.Response, status: HTTPStatus) -> str:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["code"] == {400: "bad_request", 404: "not_found", 409: "conflict", 501: "not_implemented"}[status]
    message: str = body["message"]
    return message


def test_a_rule_lives(api: httpx.Client) -> None:
    assert api.get(f"{API}/rules").json() == []
    answer = api.put(f"{API}/rules/hot", json=RULE)
    assert answer.status_code == HTTPStatus.CREATED
    rule = answer.json()
    assert {key: rule[key] for key in ("name", "sql", "enabled", "on_action_failed", "schema", "revision")} == {
        "name": "hot",
        "sql": SQL,
        "enabled": True,
        "on_action_failed": "retry",
        "schema": None,
        "revision": 1,
    }
    assert (rule["state"], rule["message"], rule["statistics"]) == ("waiting for a pipeline", None, None)
    assert rule["actions"][0]["topic"] == "hot/${room}"
    assert api.get(f"{API}/rules/hot").json() == rule
    assert api.get(f"{API}/rules").json() == [rule]
    answer = api.put(f"{API}/rules/hot", json={**RULE, "description": "hot rooms"})
    assert (answer.status_code, answer.json()["revision"]) == (HTTPStatus.OK, 2)
    assert api.post(f"{API}/rules/hot/disable").json()["state"] == "disabled"
    assert api.post(f"{API}/rules/hot/enable").json()["state"] == "waiting for a pipeline"
    assert api.delete(f"{API}/rules/hot").status_code == HTTPStatus.NO_CONTENT
    for answer in (
        api.get(f"{API}/rules/hot"),
        api.delete(f"{API}/rules/hot"),
        api.post(f"{API}/rules/hot/enable"),
        api.post(f"{API}/rules/hot/disable"),
    ):
        assert refused(answer, HTTPStatus.NOT_FOUND) == "no rule 'hot' on this node"


def test_a_mistake_in_sql_is_told_with_its_place(api: httpx.Client) -> None:
    for answer in (
        api.put(f"{API}/rules/hot", json={"sql": "wrong"}),
        api.post(f"{API}/rules/check", json={"sql": "wrong"}),
        api.post(f"{API}/rules/test", json={"sql": "wrong", "messages": [{"topic": "a"}]}),
    ):
        assert refused(answer, HTTPStatus.BAD_REQUEST) == "line 2, column 5: what is this?"
        assert answer.json()["details"] == {"line": 2, "column": 5}
    answer = api.put(f"{API}/schemas/reading", json={**CSV, "definition": {"fields": "wrong"}})
    assert refused(answer, HTTPStatus.BAD_REQUEST) == "schema reading: what is this?"
    assert "details" not in answer.json()
    assert api.get(f"{API}/rules").json() == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "body.sql: Field required"),
        ({"sql": " "}, "body.sql: there is no SQL in it"),
        ({"sql": SQL, "colour": 1}, "body.colour: Extra inputs are not permitted"),
        ({"sql": SQL, "actions": [{"type": "kafka"}]}, "body.actions.0: there is no type 'kafka'; there are delta"),
        ({"sql": SQL, "actions": [{"type": "delta"}]}, "body.actions.0.path: Field required"),
        ({"sql": SQL, "actions": [{"type": "republish", "topic": "${x}"}]}, "actions.0.topic: the rule has no column"),
        ({"sql": SQL, "schema": "none"}, "schema: there is no schema none"),
        ({"sql": SQL, "actions": [{"type": "webhook", "resource": "r"}]}, "actions: there is no resource r"),
    ],
)
def test_a_document_that_is_wrong(api: httpx.Client, body: dict[str, Any], message: str) -> None:
    assert message in refused(api.put(f"{API}/rules/hot", json=body), HTTPStatus.BAD_REQUEST)


def test_a_name_that_is_none(api: httpx.Client) -> None:
    for kind, body in (("rules", RULE), ("schemas", CSV), ("resources", DB)):
        message = refused(api.put(f"{API}/{kind}/a%2Fb", json=body), HTTPStatus.BAD_REQUEST)
        assert message.startswith("name: a name has letters")


def test_a_rule_is_tried(api: httpx.Client, memory_node: MemoryNode) -> None:
    checked = api.post(f"{API}/rules/check", json={"sql": SQL, "schema": CSV}).json()
    assert checked == {
        "columns": [{"name": "t", "type": "double"}, {"name": "room", "type": "string"}],
        "filters": ["a/#"],
    }
    messages = [{"topic": "a/1", "payload": {"t": 1.5}}, {"topic": "a/2", "payload": "x", "client_id": "c"}]
    tried = api.post(f"{API}/rules/test", json={"sql": SQL, "messages": messages}).json()
    assert tried == {**checked, "rows": [{"t": 1.5, "room": "hall"}], "matched": 2, "failed": 0}
    question = memory_node.kept_rules.checker.asked[-1]
    assert question["messages"][0]["payload"] == "eyJ0IjogMS41fQ=="
    assert question["messages"][1]["client_id"] == "c"
    for body, message in (
        ({"messages": []}, "body.messages: "),
        ({"messages": [{}]}, "body.messages.0.topic: Field required"),
        ({"messages": [{"topic": "a"}] * 1001}, "body.messages: "),
        (
            {"messages": [{"topic": "a", "payload": "?", "payload_encoding": "base64"}]},
            "body.messages.0.payload: not base64",
        ),
        ({"messages": [{"topic": "a"}], "schema": {"kind": "xml"}}, "body.schema.SchemaBody.kind: "),
    ):
        answer = api.post(f"{API}/rules/test", json={"sql": SQL, **body})
        assert message in refused(answer, HTTPStatus.BAD_REQUEST)


def test_a_checker_that_is_not_there(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.kept_rules.checker.failure = CannotCheckError("install it")
    for answer in (
        api.put(f"{API}/rules/hot", json=RULE),
        api.put(f"{API}/schemas/reading", json=CSV),
        api.post(f"{API}/rules/check", json={"sql": SQL}),
    ):
        assert refused(answer, HTTPStatus.NOT_IMPLEMENTED) == "install it"
    memory_node.kept_rules.checker.failure = OperationError("it is busy")
    answer = api.put(f"{API}/rules/hot", json=RULE)
    assert (answer.status_code, answer.json()["message"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "it is busy")
    assert api.put(f"{API}/tables/raw", json={"kind": "bronze", "path": "x"}).status_code == HTTPStatus.CREATED


def test_schemas_and_resources_that_are_used_stay(api: httpx.Client) -> None:
    assert api.put(f"{API}/schemas/reading", json=CSV).status_code == HTTPStatus.CREATED
    assert api.put(f"{API}/resources/db", json=DB).status_code == HTTPStatus.CREATED
    action = {"type": "postgresql", "resource": "db", "table": "hot"}
    api.put(f"{API}/rules/hot", json={"sql": SQL, "schema": "reading", "actions": [action]})
    assert api.get(f"{API}/schemas/reading").json()["used_by"] == ["rule/hot"]
    assert [schema["name"] for schema in api.get(f"{API}/schemas").json()] == ["reading"]
    db = api.get(f"{API}/resources/db").json()
    assert (db["used_by"], db["state"]) == (["rule/hot"], "waiting for a pipeline")
    assert db["settings"]["uri"] == "postgresql://me:******@host/db"
    assert "used by rule/hot" in refused(api.delete(f"{API}/schemas/reading"), HTTPStatus.CONFLICT)
    assert "used by rule/hot" in refused(api.delete(f"{API}/resources/db"), HTTPStatus.CONFLICT)
    hook = {"type": "webhook", "settings": {"url": "http://h"}}
    assert "postgresql for rule/hot" in refused(api.put(f"{API}/resources/db", json=hook), HTTPStatus.CONFLICT)
    api.delete(f"{API}/rules/hot")
    for kind, name in (("schemas", "reading"), ("resources", "db")):
        assert api.delete(f"{API}/{kind}/{name}").status_code == HTTPStatus.NO_CONTENT
        refused(api.get(f"{API}/{kind}/{name}"), HTTPStatus.NOT_FOUND)
        refused(api.delete(f"{API}/{kind}/{name}"), HTTPStatus.NOT_FOUND)


def test_tables(api: httpx.Client) -> None:
    body = {"kind": "gold_minute", "filter": ["a/#"], "path": "tables/minutes"}
    table = api.put(f"{API}/tables/minutes", json=body).json()
    assert (table["format"], table["state"]) == ("delta", "waiting for a pipeline")
    assert api.get(f"{API}/tables").json() == [table]
    assert api.post(f"{API}/tables/minutes/disable").json()["state"] == "disabled"
    assert api.post(f"{API}/tables/minutes/enable").json()["enabled"]
    assert api.delete(f"{API}/tables/minutes").status_code == HTTPStatus.NO_CONTENT
    for answer in (
        api.get(f"{API}/tables/minutes"),
        api.delete(f"{API}/tables/minutes"),
        api.post(f"{API}/tables/minutes/enable"),
    ):
        assert refused(answer, HTTPStatus.NOT_FOUND) == "no declared table 'minutes' on this node"


def test_a_pipeline_gets_what_it_needs_and_tells_how_it_does(api: httpx.Client) -> None:
    api.put(f"{API}/resources/db", json=DB)
    api.put(f"{API}/rules/hot", json=RULE)
    first = api.get(f"{API}/pipeline").json()
    assert "hush" not in str(first)
    full = api.get(f"{API}/pipeline", params={"secrets": True}).json()
    assert full["resources"][0]["settings"]["uri"] == "postgresql://me:hush@host/db"
    assert full["revision"] == first["revision"]
    assert (full["rules"][0]["name"], full["schemas"], full["tables"]) == ("hot", [], [])
    api.post(f"{API}/rules/hot/disable")
    assert api.get(f"{API}/pipeline").json()["revision"] > full["revision"]
    api.post(f"{API}/rules/hot/enable")

    assert api.get(f"{API}/pipeline/status").json()["alive"] is False
    query = {"name": "rule/hot", "state": "running", "matched": 5, "passed": 3, "failed": 1, "lag": 2, "batch": 4}
    told = report(queries=[query])
    assert api.put(f"{API}/pipeline/status", json=told).status_code == HTTPStatus.NO_CONTENT
    status = api.get(f"{API}/pipeline/status").json()
    assert status["alive"]
    assert (status["id"], status["master"]) == (told["id"], "local[2]")
    assert status["queries"][0]["matched"] == 5
    rule = api.get(f"{API}/rules/hot").json()
    assert (rule["state"], rule["statistics"]["lag"], rule["statistics"]["batch"]) == ("running", 2, 4)
    older = report(started_at=1.0)
    assert "newer pipeline" in refused(api.put(f"{API}/pipeline/status", json=older), HTTPStatus.CONFLICT)
    assert refused(api.put(f"{API}/pipeline/status", json={}), HTTPStatus.BAD_REQUEST)


def test_metrics(api: httpx.Client) -> None:
    text = api.get("/metrics").text
    assert "brookmq_pipeline_alive 0\n" in text
    assert "brookmq_rule" not in text
    api.put(f"{API}/rules/hot", json=RULE)
    api.put(f"{API}/rules/cold", json=RULE)
    text = api.get("/metrics").text
    assert 'brookmq_rule_running{rule="hot"} 0\n' in text
    assert "brookmq_rule_matched" not in text
    query = {"name": "rule/hot", "state": "running", "matched": 5, "passed": 3, "lag": 2, "batch_ms": 12.5}
    api.put(f"{API}/pipeline/status", json=report(queries=[query]))
    text = api.get("/metrics").text
    for line in (
        "brookmq_pipeline_alive 1",
        'brookmq_rule_running{rule="hot"} 1',
        'brookmq_rule_running{rule="cold"} 0',
        "# TYPE brookmq_rule_matched_total counter",
        'brookmq_rule_matched_total{rule="hot"} 5',
        'brookmq_rule_passed_total{rule="hot"} 3',
        'brookmq_rule_failed_total{rule="hot"} 0',
        'brookmq_rule_lag{rule="hot"} 2',
        'brookmq_rule_batch_milliseconds{rule="hot"} 12.5',
    ):
        assert f"{line}\n" in text
    assert 'brookmq_rule_matched_total{rule="cold"}' not in text

"""The rule checker's answers: from SQL and Spark, to a line each."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from brookmq.base.sample_messages import SampleMessage
from brookmq.spark.checker import Checker, serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = 'SELECT payload.temp::double AS t, topic FROM "sensors/#" WHERE payload.temp > 30'
CSV = {"name": "reading", "kind": "csv", "definition": {"fields": "temp double, room string"}}


@pytest.fixture
def checker(tmp_path: Path, spark: SparkSession) -> Checker:
    made = Checker(tmp_path)
    made.__dict__["_spark"] = spark
    return made


def ask(checker: Checker, kind: str, sql: str = SQL, schema: Any = None, **fields: Any) -> dict[str, Any]:
    return checker.answer({"kind": kind, "sql": sql, "schema": schema, **fields})


def samples(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [SampleMessage.model_validate(message).columns() for message in messages]


def test_columns(checker: Checker) -> None:
    assert ask(checker, "check") == {
        "columns": [{"name": "t", "type": "double"}, {"name": "topic", "type": "string"}],
        "filters": ["sensors/#"],
    }
    found = ask(checker, "check", 'SELECT payload.room AS room FROM "a", "b/+"', CSV)
    assert found == {"columns": [{"name": "room", "type": "string"}], "filters": ["a", "b/+"]}


def test_sample_messages(checker: Checker) -> None:
    messages = samples(
        {"topic": "sensors/1", "payload": {"temp": 31.5}},
        {"topic": "sensors/2", "payload": {"temp": 12}},
        {"topic": "sensors/3", "payload": "no JSON"},
        {"topic": "other", "payload": {"temp": 40}},
    )
    tried = ask(checker, "test", messages=messages)
    assert (tried["rows"], tried["matched"], tried["failed"]) == ([{"t": 31.5, "topic": "sensors/1"}], 3, 1)
    assert [column["name"] for column in tried["columns"]] == ["t", "topic"]
    sql = 'SELECT payload.room AS room, published_at, client_id, correlation_data FROM "a"'
    message = {"topic": "a", "payload": "1.5,hall", "client_id": "c", "correlation_data": "AP8="}
    tried = ask(checker, "test", sql, CSV, messages=samples({**message, "published_at": "2026-01-31T12:00:00Z"}))
    assert tried["rows"] == [
        {"room": "hall", "published_at": "2026-01-31T12:00:00.000Z", "client_id": "c", "correlation_data": "AP8="}
    ]


@pytest.mark.parametrize(
    ("sql", "line", "column", "message"),
    [
        ("SELEC 1", 1, 1, ""),
        ('SELECT topic,\n  nonsense(topic)\nFROM "a"', 2, 3, "nonsense"),
        ('SELECT topic FROM "a/#/b"', 1, 19, ""),
        ("SELECT topic FROM \"a\" WHERE topic RLIKE '('", 1, 41, "Spark refuses this constant"),
        ("SELECT * FROM parquet.`/etc/passwd`", 1, 23, ""),
        ("SELECT reflect('java.lang.System', 'exit') FROM \"a\"", 1, 8, "reflect"),
        ("SELECT java_method('a', 'b') FROM \"a\"", 1, 8, ""),
        ('SELECT (SELECT 1) AS x FROM "a"', 1, 9, "no subqueries"),
        ('SELECT topic FROM "a"; DROP TABLE x', 1, 22, ""),
        ('SELECT topic FROM spark_catalog.default."a"', 1, 32, "FROM takes topic filters"),
        ('CREATE TABLE x AS SELECT topic FROM "a"', 1, 1, ""),
    ],
)
def test_what_is_wrong_or_hostile_is_refused_with_its_place(
    checker: Checker, sql: str, line: int, column: int, message: str
) -> None:
    for kind in ("check", "test"):
        error = ask(checker, kind, sql, messages=[])["error"]
        assert (error["line"], error["column"]) == (line, column), error
        assert message in error["message"]


def test_schemas(checker: Checker) -> None:
    rules = [{"name": "hot", "sql": 'SELECT payload.temp AS t FROM "a"'}]
    assert ask(checker, "schema", schema=CSV, rules=rules) == {}
    other = {**CSV, "definition": {"fields": "room string"}}
    error = ask(checker, "schema", schema=other, rules=rules)["error"]
    assert error["message"].startswith("the rule hot would not work with it: line 1, column ")
    assert error["line"] == 0
    wrong = {**CSV, "definition": {"fields": "temp colour"}}
    assert "schema reading: " in ask(checker, "schema", schema=wrong, rules=[])["error"]["message"]
    assert "schema reading: " in ask(checker, "check", schema=wrong)["error"]["message"]


def test_a_row_that_cannot_be_written(checker: Checker) -> None:
    deep = "[" * 990 + "]" * 990
    answer = ask(checker, "test", 'SELECT payload.a AS a FROM "a"', messages=samples({"topic": "a", "payload": deep}))
    assert "rows" in answer or "nested" in answer["error"]["message"]


def test_lines(checker: Checker) -> None:
    questions = io.BytesIO()
    for number, sql in enumerate(("SELEC", SQL)):
        questions.write(json.dumps({"id": number, "kind": "check", "sql": sql, "schema": None}).encode() + b"\n")
    questions.seek(0)
    answers = io.BytesIO()
    serve(checker, questions, answers)
    first, second = map(json.loads, answers.getvalue().splitlines())
    assert (first["id"], "error" in first) == (0, True)
    assert (second["id"], "columns" in second) == (1, True)
    assert checker._is_warm


def test_spark_is_not_started_for_what_is_wrong(tmp_path: Path) -> None:
    checker = Checker(tmp_path)
    assert "error" in ask(checker, "check", "SELEC")
    assert ask(checker, "schema", schema=CSV, rules=[]) == {}
    checker.warm_up()
    assert "_spark" not in checker.__dict__, "there is nothing to warm up yet"
    checker.close()

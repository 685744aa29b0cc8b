"""The ready tables in Spark: what becomes of messages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f

from brookmq.spark.pipeline.tables import MESSAGE, columns_read, rows_of
from brookmq.spark.rules import Schema
from brookmq.spark.rules.testing import sample_messages
from tests.spark.rules import sparkplug_payloads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
READING = Schema.checked(
    "reading", "json", {"fields": "temp double, n bigint, topic string, place struct<lat: double>"}
)
TEXT = Schema.checked("words", "text")
SPARKPLUG = Schema.checked("plant", "sparkplug")


def message(payload: Any, second: int = 0, topic: str = "s/1", client_id: str | None = "d1") -> dict[str, Any]:
    return {
        "topic": topic,
        "payload": payload,
        "client_id": client_id,
        "published_at": NOON + timedelta(seconds=second),
    }


def made(
    spark: SparkSession, kind: str, messages: list[dict[str, Any]], schema: Schema | None = None
) -> list[dict[str, Any]]:
    frame = spark.createDataFrame(sample_messages(messages)).select(*columns_read(kind))
    return [row.asDict(recursive=True) for row in rows_of(kind, frame, schema).collect()]


def payload_columns(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in MESSAGE}


def test_bronze_is_what_came(spark: SparkSession) -> None:
    rows = made(spark, "bronze", [message(b"\xff\x00"), message("text", topic="t")])
    assert [(row["topic"], bytes(row["payload"])) for row in rows] == [("s/1", b"\xff\x00"), ("t", b"text")]
    assert set(rows[0]) == set(columns_read("bronze"))


def test_silver_has_a_column_for_each_field(spark: SparkSession) -> None:
    good = {"temp": 21.5, "n": 7, "topic": "mine", "place": {"lat": 1.5}}
    rows = made(spark, "silver", [message(good), message("no json"), message({"temp": "?"})], READING)
    assert [payload_columns(row) for row in rows] == [
        {"temp": 21.5, "n": 7, "payload_topic": "mine", "place": {"lat": 1.5}}
    ]
    assert [rows[0][name] for name in ("topic", "client_id", "offset")] == ["s/1", "d1", 0]


def test_silver_without_a_schema_is_json(spark: SparkSession) -> None:
    rows = made(spark, "silver", [message('{"b": 1, "a": [2]}'), message(b"\xff"), message("7")])
    assert [row["payload"] for row in rows] == ['{"a":[2],"b":1}', "7"]


def test_silver_of_text_and_of_sparkplug(spark: SparkSession) -> None:
    assert [row["value"] for row in made(spark, "silver", [message("words"), message(b"\xff")], TEXT)] == [
        "words",
        None,
    ]
    rows = made(spark, "silver", [message(sparkplug_payloads.DBIRTH), message(b"\x07")], SPARKPLUG)
    assert {"Count", "Big"} <= {row["name"] for row in rows}
    assert {row["topic"] for row in rows} == {"s/1"}


def test_minutes_of_free_json(spark: SparkSession) -> None:
    messages = [
        message({"temp": 20, "on": True, "text": "5", "deep": {"x": 1}}, 0),
        message({"temp": 22.5, "hum": 40}, 59),
        message({"temp": 1}, 60),
        message({"temp": 5}, 30, client_id="d2"),
        message("7.5", 5, topic="plain"),
        message("[1]", 5),
        message("no json", 5),
    ]
    rows = made(spark, "gold_minute", messages)
    found = {(row["minute"].minute, row["client_id"], row["topic"], row["field"]): row for row in rows}
    assert set(found) == {
        (0, "d1", "s/1", "temp"),
        (0, "d1", "s/1", "hum"),
        (1, "d1", "s/1", "temp"),
        (0, "d2", "s/1", "temp"),
        (0, "d1", "plain", "value"),
    }
    temp = found[0, "d1", "s/1", "temp"]
    assert [temp[name] for name in ("count", "min", "max", "avg", "date")] == [2, 20, 22.5, 21.25, date(2026, 1, 31)]


@pytest.mark.parametrize(
    ("schema", "messages", "fields"),
    [
        (READING, [message({"temp": 1, "n": 2, "place": {"lat": 3}}), message("no")], {"temp", "n", "place.lat"}),
        (READING, [message({"temp": None, "n": 2})], {"n"}),
        (TEXT, [message("5"), message("five")], {"value"}),
        (Schema.checked("names", "json", {"fields": "name string"}), [message({"name": "x"})], set()),
    ],
)
def test_minutes_by_a_schema(
    spark: SparkSession, schema: Schema, messages: list[dict[str, Any]], fields: set[str]
) -> None:
    assert {row["field"] for row in made(spark, "gold_minute", messages, schema)} == fields


def test_minutes_of_sparkplug(spark: SparkSession) -> None:
    fields = {row["field"] for row in made(spark, "gold_minute", [message(sparkplug_payloads.DBIRTH)], SPARKPLUG)}
    assert "Count" in fields


@pytest.mark.parametrize("kind", ["silver", "gold_minute"])
def test_what_cannot_be_decoded_is_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    observed = Observation()
    monkeypatch.setattr("brookmq.spark.pipeline.tables.OBSERVED", observed)
    made(spark, kind, [message({"t": 1}), message("no"), message("none")])
    assert observed.get == {"matched": 3, "failed": 2}


def test_a_payload_is_decoded_once(spark: SparkSession) -> None:
    frame: DataFrame = spark.createDataFrame(sample_messages([message({"t": 1})]))
    rows = rows_of("gold_minute", frame, None).where(f.col("count") > 0)
    plan = rows._jdf.queryExecution().optimizedPlan().toString()
    assert max(plan.count("parse_json"), plan.count("parseJson")) == 1, plan

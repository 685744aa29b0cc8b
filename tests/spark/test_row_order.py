"""Rows in an order of their own: the same whatever order they come in."""

from __future__ import annotations

import random

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from brookmq.spark.row_order import sorted_rows
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from tests.spark.schemas import schema_of

DDL = "topic string, payload binary, user_properties map<string,string>, expires_at timestamp, qos int, offset bigint"
SCHEMA = schema_of(DDL)
COLUMNS = sink_columns(SCHEMA, sink_options({}, stream=True))


def batches(rows: list[dict[str, object]], size: int) -> list[pa.RecordBatch]:
    arrow = to_arrow_schema(SCHEMA, timezone="UTC")
    return [pa.RecordBatch.from_pylist(rows[at : at + size], schema=arrow) for at in range(0, len(rows), size)]


def test_the_same_order_whatever_order_they_come_in() -> None:
    rows: list[dict[str, object]] = [
        {
            "topic": None if number % 5 == 0 else f"t{number % 3}",
            "payload": b"%d" % (number % 11),
            "user_properties": [("k", str(number % 2))] if number % 4 else None,
            "expires_at": 10**6 * (number % 13) if number % 3 else None,
            "qos": number % 3,
        }
        for number in range(300)
    ]
    orders = []
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        found = pa.Table.from_batches(sorted_rows(batches(rows, 70 + seed), COLUMNS))
        orders.append(found.to_pylist())
    assert orders[0] == orders[1] == orders[2]
    assert len(orders[0]) == 300


def test_columns_that_are_not_published_do_not_count() -> None:
    rows: list[dict[str, object]] = [{"topic": "t", "payload": b"x", "offset": number} for number in (3, 1, 2)]
    (found,) = sorted_rows(batches(rows, 10), COLUMNS)
    assert found.column("offset").to_pylist() == [3, 1, 2]


def test_text_that_is_none_is_no_obstacle() -> None:
    broken = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    properties = pa.MapArray.from_arrays([0, 1, 2], broken, pa.array(["x", "y"]))
    schema = schema_of("topic string, payload string, user_properties map<string,string>")
    columns = sink_columns(schema, sink_options({}, stream=True))
    batch = pa.RecordBatch.from_arrays([broken, broken, properties], ["topic", "payload", "user_properties"])
    (found,) = sorted_rows([batch], columns)
    assert found.num_rows == 2


def test_nothing() -> None:
    assert list(sorted_rows([], COLUMNS)) == []

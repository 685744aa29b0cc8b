"""Frames for actions to write: rows that are the same whenever they are made, in two partitions, of two days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brookmq.base.rule_documents import parse_action
from brookmq.spark.actions import Action, BatchKey, NodeAccess, make_action

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 100
MIDNIGHT = 1769904000  # 2026-02-01 00:00 UTC, between the rows
QUERY = "5b1c2d9e-8f1c-4a7e-9a43-9bb0f25ad7c1"
NODE = NodeAccess(())

COLUMNS = {
    "number": "id",
    "topic": "concat('sensors/', id)",
    "t": "id / 10D",
    "reading": "parse_json(concat('{\"t\": ', id, '}'))",
    "properties": "array(named_struct('name', 'n', 'value', cast(id AS string)))",
    "payload": "cast(concat('p', id) AS binary)",
    "published_at": f"timestamp_seconds({MIDNIGHT} - {ROWS // 2} + id % {ROWS})",
}


def rows(spark: SparkSession, batch: int = 0, *names: str, **columns: str) -> DataFrame:
    """The rows of a batch, with the columns of these names and further ones; with all of them if nothing is said."""
    chosen = {**{name: COLUMNS[name] for name in names}, **columns} or COLUMNS
    numbers = spark.range(batch * ROWS, (batch + 1) * ROWS, numPartitions=2)
    return numbers.selectExpr(*(f"{sql} AS {name}" for name, sql in chosen.items()))


def key(batch: int = 0, query: str = QUERY) -> BatchKey:
    return BatchKey(query, batch)


def action_for(document: dict[str, Any], frame: DataFrame) -> Action:
    return make_action(parse_action(document), {}, NODE, frame.schema)


def write(document: dict[str, Any], frame: DataFrame, batch: int = 0, query: str = QUERY) -> int:
    """With an action of its own, as after a start."""
    action = action_for(document, frame)
    try:
        return action.write(frame, key(batch, query))
    finally:
        action.close()

"""A compiled rule on a frame of messages, a batch or a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from brookmq.spark.rules.compiling import CompiledRule
from brookmq.spark.rules.scope import PAYLOAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


def apply_rule(messages: DataFrame, rule: CompiledRule, observed: str | Observation = "") -> DataFrame:
    """The rule's rows. Under ``observed`` Spark counts what ``matched`` the filters and what ``failed`` to decode."""
    from pyspark.sql import functions as f

    if rule.watermark is not None:
        messages = messages.withWatermark("published_at", rule.watermark)
    base = _over(messages, rule.base_sql)
    if rule.decodes_in_python:
        from brookmq.spark.rules.decoding import decoded

        assert rule.schema is not None
        base = base.withColumn(PAYLOAD, decoded(rule.schema, f.col("payload")))
    if observed:
        failed = f.count_if(f.expr(rule.failed_sql)).alias("failed")
        base = base.observe(observed, f.count(f.lit(1)).alias("matched"), failed)
    return _over(base, rule.query_sql)


def _over(frame: DataFrame, query: Callable[[str], str]) -> DataFrame:
    """A query over a frame. Its view has a name of its own, and is gone as soon as Spark has read the query."""
    name = f"brookmq_{uuid4().hex}"
    frame.createTempView(name)
    try:
        return frame.sparkSession.sql(query(name))
    finally:
        frame.sparkSession.catalog.dropTempView(name)

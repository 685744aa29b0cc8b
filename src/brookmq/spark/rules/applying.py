"""A compiled rule on a frame of messages, a batch or a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

from brookmq.spark.rules.compiling import CompiledRule
from brookmq.spark.rules.scope import PAYLOAD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation


def apply_rule(messages: DataFrame, rule: CompiledRule, observed: str | Observation = "") -> DataFrame:
    """The rule's rows. Under ``observed`` Spark counts what ``matched`` the filters and what ``failed`` to decode.

    Where Spark finds out that a condition can never hold, it reads no messages and counts nothing.
    """
    base = matched_messages(messages, rule)
    return _over(base.observe(observed, *counts(rule)) if observed else base, rule.query_sql)


def matched_messages(messages: DataFrame, rule: CompiledRule) -> DataFrame:
    """The messages of the rule's topic filters, decoded as far as the rule needs it."""
    from pyspark.sql import functions as f

    if rule.watermark is not None:
        messages = messages.withWatermark("published_at", rule.watermark)
    base = _over(messages, rule.base_sql)
    if rule.decodes_in_python:
        from brookmq.spark.rules.decoding import decoded

        assert rule.schema is not None
        base = base.withColumn(PAYLOAD, decoded(rule.schema, f.col("payload")))
    return base


def counts(rule: CompiledRule) -> tuple[Column, Column]:
    """The columns ``matched`` and ``failed`` over the messages of the rule's filters."""
    from pyspark.sql import functions as f

    return f.count(f.lit(1)).alias("matched"), f.count_if(f.expr(rule.failed_sql)).alias("failed")


def _over(frame: DataFrame, query: Callable[[str], str]) -> DataFrame:
    """A query over a frame. Its view has a name of its own, and is gone as soon as Spark has read the query."""
    name = f"brookmq_{uuid4().hex}"
    frame.createTempView(name)
    try:
        return frame.sparkSession.sql(query(name))
    finally:
        frame.sparkSession.catalog.dropTempView(name)

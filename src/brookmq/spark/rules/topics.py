"""A topic filter as a Spark SQL condition: the expression of ``topic_matches``, as text for the query of a rule."""

from __future__ import annotations

from brookmq.mqtt.topics import has_wildcard
from brookmq.spark.rules.emitting import text_literal
from brookmq.spark.topic_filter import pattern, prefix


def topic_condition(filter: str, column: str = "topic") -> str:
    """Plain comparisons where they suffice, because Spark's readers can use them; else a regular expression."""
    if not has_wildcard(filter):
        return f"{column} = {text_literal(filter)}"
    before = filter.removesuffix("/#")
    if before and not has_wildcard(before):
        return f"(startswith({column}, {text_literal(before + '/')}) OR {column} = {text_literal(before)})"
    matches = f"{column} RLIKE {text_literal(pattern(filter))}"
    begins = prefix(filter)
    return f"(startswith({column}, {text_literal(begins)}) AND {matches})" if begins else matches

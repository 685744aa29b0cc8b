"""What Spark says of a rule, before it is saved: the columns that come out, or what is wrong."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from brookmq.spark.rules.applying import apply_rule
from brookmq.spark.rules.columns import MESSAGE_COLUMNS
from brookmq.spark.rules.compiling import CompiledRule, OutputColumn
from brookmq.spark.rules.errors import Refusal, RuleError
from brookmq.spark.rules.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_MESSAGES: Final = (
    "SELECT "
    + ", ".join(f"CAST(NULL AS {type.spark}) AS {quoted(name)}" for name, type in MESSAGE_COLUMNS.items())
    + " WHERE false"
)
_TAIL: Final = re.compile(r"\s*(?:SQLSTATE:.*|; line \d+ pos \d+.*|== SQL.*)", re.DOTALL)
_CLASS: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")


def analyse(spark: SparkSession, rule: CompiledRule) -> tuple[OutputColumn, ...]:
    """The columns of the rule with Spark's types; RuleError if Spark refuses the rule or one of its constants."""
    from pyspark.errors import PySparkException

    _check_constants(spark, rule)
    try:
        schema = apply_rule(no_messages(spark), rule).schema
    except PySparkException as error:
        raise RuleError(f"Spark refuses this rule: {first_line(error)}") from None
    return tuple(OutputColumn(field.name, field.dataType.simpleString()) for field in schema.fields)


def no_messages(spark: SparkSession) -> DataFrame:
    """An empty frame with the columns of the source."""
    return spark.sql(_NO_MESSAGES)


def _check_constants(spark: SparkSession, rule: CompiledRule) -> None:
    """Patterns and time zones are only looked at when a message comes, and would stop the stream then."""
    from pyspark.errors import PySparkException

    if not rule.probes:
        return
    try:
        spark.sql(f"SELECT {', '.join(sql for _, sql in rule.probes)}").collect()
    except PySparkException:
        pass
    else:
        return
    for at, sql in rule.probes:  # one of them is wrong: which one?
        try:
            spark.sql(f"SELECT {sql}").collect()
        except PySparkException as error:
            raise Refusal(f"Spark refuses this constant: {first_line(error)}", at).located_in(rule.text) from None


def first_line(error: Exception) -> str:
    """An error of Spark without its class, its state and the query's text."""
    text = _TAIL.sub("", str(error).strip())
    return _CLASS.sub("", text.splitlines()[0] if text else type(error).__name__)

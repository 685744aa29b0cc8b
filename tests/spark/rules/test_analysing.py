"""What Spark adds: constants that only it can judge, and its own word on the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from brookmq.base.errors import CallerError
from brookmq.spark.rules import OutputColumn, RuleError, compile_rule
from brookmq.spark.rules.analysing import analyse
from brookmq.spark.rules.functions import GROUPS
from brookmq.spark.rules.signatures import Constant, Function
from brookmq.spark.rules.testing import SAMPLES_MAX, sample_messages, try_rule
from brookmq.spark.rules.types import TEXT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_columns(spark: SparkSession) -> None:
    found = analyse(spark, compile_rule('SELECT payload.t AS t, avg(qos) AS q FROM "a" GROUP BY payload.t'))
    assert found == (OutputColumn("t", "string"), OutputColumn("q", "double"))


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("topic RLIKE '('", 41),
        ("regexp_like(topic, '[')", 48),
        ("regexp_extract(topic, 'a', 1) = ''", 51),
        ("date_format(published_at, 'bbb') = ''", 55),
        ("in_zone(published_at, 'Mars/Olympus') > '2026-01-01'", 51),
        ("topic RLIKE 'a' AND regexp_replace(topic, '*', '') = ''", 71),
    ],
)
def test_constants_that_spark_refuses(spark: SparkSession, condition: str, column: int) -> None:
    rule = compile_rule(f'SELECT topic FROM "a" WHERE {condition}')
    with pytest.raises(RuleError, match="Spark refuses") as caught:
        analyse(spark, rule)
    assert caught.value.column == column
    assert "SQLSTATE" not in str(caught.value)


def calls(function: Function) -> list[str]:
    """A function with every number of arguments that it takes, all of them fields of a payload where they may be."""
    texts = {"date_trunc": "'hour'", "in_zone": "'Europe/Berlin'", "date_format": "'yyyy'", "to_timestamp": "'yyyy'"}

    def argument(index: int) -> str:
        parameter = function.parameter(index)
        if isinstance(parameter, Constant):
            return texts.get(function.name, "'a'") if parameter.type == TEXT else "1"
        return "payload.x"

    if function.name == "object":
        return ["object('a', payload.x, 'b', payload)"]
    if function.name == "regexp_extract":
        return ["regexp_extract(payload.x, '(a)')", "regexp_extract(payload.x, '(a)', 1)"]
    counts = range(function.arguments_min, len(function.parameters) + 1)
    return [f"{function.name}({', '.join(argument(index) for index in range(count))})" for count in counts]


def test_every_function_has_the_type_that_the_table_says(spark: SparkSession) -> None:
    functions = [function for group in GROUPS.values() for function in group if function.name != "window"]
    for aggregate in (False, True):
        columns = [call for function in functions if function.aggregate is aggregate for call in calls(function)]
        text = ", ".join(f"{call} AS c{number}" for number, call in enumerate(columns))
        rule = compile_rule(f'SELECT {text} FROM "a"')
        assert analyse(spark, rule) == rule.columns


VALUES = [0, 1, -1.5, 1e300, 2**63 - 1, -(2**63), 10**30, True, None, [], [1, "x", None], {}, {"x": 1}]
TEXTS = ["", "x", "NaN", "Infinity", "1e999", "\u0000", "2026-01-31", "99999-99-99", "0001-01-01T00:00:00Z"]
FAR_TIMES = ["-290308-12-21T19:59:06Z", "+294247-01-10T04:00:54Z", "+294247-01-10T04:00:54.775807Z"]
OPERATORS = [
    *(f"payload.x {operator} payload.x" for operator in ("+", "-", "*", "/", "%", "=", "<", "||")),
    *(
        f"CAST(payload.x AS {type})"
        for type in ("BIGINT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "DATE", "BINARY")
    ),
    *(f"CAST(payload.x AS BIGINT) {operator} CAST(payload.x AS BIGINT)" for operator in "+-*/%"),
    "-CAST(payload.x AS BIGINT)",
    "abs(CAST(payload.x AS BIGINT))",
    "CAST(CAST(payload.x AS DOUBLE) AS BIGINT)",
    "CAST(CAST(payload.x AS DOUBLE) AS TIMESTAMP)",
    "CAST(CAST(payload.x AS STRING) AS TIMESTAMP)",
    "CAST(CAST(payload.x AS STRING) AS DOUBLE)",
    "CAST(payload.x AS TIMESTAMP) + INTERVAL '36525' DAY",
    "CAST(payload.x AS TIMESTAMP) - INTERVAL '5217' WEEK",
    "date_trunc('year', CAST(payload.x AS TIMESTAMP) - INTERVAL '36525' DAY)",
    "in_zone(CAST(payload.x AS DATE), 'Asia/Tokyo')",
    "payload.x BETWEEN payload.x AND payload.x",
    "payload.x IN (1, 2)",
    "CASE payload.x WHEN 1 THEN payload.x ELSE 2 END",
    "payload.x[0].a[1]",
]


def test_everything_takes_any_message(spark: SparkSession) -> None:
    """Nothing that a payload holds may stop a stream."""
    functions = [function for group in GROUPS.values() for function in group if function.name != "window"]
    values = (*VALUES, *TEXTS, *FAR_TIMES)
    messages: list[dict[str, Any]] = [{"topic": "a", "payload": {"x": value}} for value in values]
    messages.append({"topic": "a", "payload": b"\xff{"})
    for aggregate in (False, True):
        columns = [call for function in functions if function.aggregate is aggregate for call in calls(function)]
        columns += [] if aggregate else OPERATORS
        for some in batched(columns, 80):
            text = ", ".join(f"{call} AS c{number}" for number, call in enumerate(some))
            found = try_rule(spark, compile_rule(f'SELECT {text} FROM "a"'), sample_messages(messages))
            assert len(found.rows) == (1 if aggregate else len(messages))
            assert found.failed == 1


def batched(columns: list[str], size: int) -> list[list[str]]:
    return [columns[start : start + size] for start in range(0, len(columns), size)]


def test_samples() -> None:
    table = sample_messages([{"topic": "a", "payload": {"t": 1}}, {"topic": "b", "payload": "x"}, {"topic": "c"}])
    assert table.column("payload").to_pylist() == [b'{"t": 1}', b"x", b""]
    assert table.column("offset").to_pylist() == [0, 1, 2]
    with pytest.raises(CallerError, match="no column 'topics'"):
        sample_messages([{"topics": "a"}])
    with pytest.raises(CallerError, match="more than"):
        sample_messages([{"topic": "a"}] * (SAMPLES_MAX + 1))


def test_views_do_not_stay(spark: SparkSession) -> None:
    before = spark.catalog.listTables()
    analyse(spark, compile_rule('SELECT topic FROM "a"'))
    assert spark.catalog.listTables() == before


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ('SELECT topic FROM "a" WHERE 1 = 2 AND payload.x > 1', ()),
        ('SELECT topic FROM "a" WHERE NULL', ()),
        ('SELECT count(*) AS n, max(payload.x) AS x FROM "a" WHERE false', ({"n": 0, "x": None},)),
    ],
)
def test_conditions_that_never_hold(spark: SparkSession, sql: str, rows: tuple[dict[str, Any], ...]) -> None:
    messages = sample_messages([{"topic": "a", "payload": "no json"}, {"topic": "a", "payload": {}}, {"topic": "b"}])
    rule = compile_rule(sql)
    found = try_rule(spark, rule, messages)
    assert found.rows == rows
    assert found.matched == 2
    assert found.failed == (1 if "payload" in rule.source_columns else 0)


def test_no_messages_at_all(spark: SparkSession) -> None:
    found = try_rule(spark, compile_rule('SELECT topic FROM "a"'), sample_messages([]))
    assert (found.rows, found.matched, found.failed) == ((), 0, 0)

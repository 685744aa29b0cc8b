"""Every rule of the tables in `cases`, as a batch of Spark and by the call that tries a rule."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from brookmq.spark.rules import CompiledRule, Schema, compile_rule
from brookmq.spark.rules.analysing import analyse
from brookmq.spark.rules.applying import apply_rule
from brookmq.spark.rules.testing import sample_messages, try_rule
from tests.spark.rules.cases import fields, foreach, functions, groups, schemas
from tests.spark.rules.cases.shape import Case, GroupCase, Row, message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES: list[Case] = [*fields.CASES, *functions.CASES, *foreach.CASES, *schemas.CASES]
GROUP_CASES: list[GroupCase] = groups.CASES


def compiled(case: Case | GroupCase) -> CompiledRule:
    schema = None if case.schema is None else Schema.checked("s", *case.schema)
    return compile_rule(case.sql, schema)


def plain(value: Any) -> Any:
    """A value that Spark handed over, as JSON would have it."""
    from pyspark.sql import Row as SparkRow
    from pyspark.sql import VariantVal

    if isinstance(value, VariantVal):
        return plain(value.toPython())
    if isinstance(value, SparkRow):
        return {name: plain(item) for name, item in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return str(value) if type(value).__name__ == "date" else value


def batch_rows(spark: SparkSession, rule: CompiledRule, messages: list[dict[str, Any]]) -> list[Row]:
    frame = spark.createDataFrame(sample_messages(messages))
    return [plain(row) for row in apply_rule(frame, rule).collect()]


def in_some_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=repr)


def test_there_are_enough() -> None:
    names = [case.name for case in (*CASES, *GROUP_CASES)]
    assert len(names) == len(set(names)) >= 60
    assert all(case.good and case.wrong and case.missing for case in CASES)
    assert all(case.good and case.wrong for case in GROUP_CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows(spark: SparkSession, case: Case) -> None:
    rule = compiled(case)
    tried = try_rule(spark, rule, sample_messages(case.messages))
    assert list(tried.rows) == case.rows
    assert tried.failed == case.failed
    assert in_some_order(batch_rows(spark, rule, case.messages)) == in_some_order(case.rows)


@pytest.mark.parametrize("case", GROUP_CASES, ids=lambda case: case.name)
def test_groups(spark: SparkSession, case: GroupCase) -> None:
    rule = compiled(case)
    good = [message(payload, number) for number, payload in enumerate(case.good)]
    both = [message(payload, number) for number, payload in enumerate([*case.good, *case.wrong])]
    tried = try_rule(spark, rule, sample_messages(both))
    assert in_some_order(list(tried.rows)) == in_some_order(case.rows_with_wrong)
    assert tried.failed == case.failed
    assert in_some_order(batch_rows(spark, rule, good)) == in_some_order(case.rows)


@pytest.mark.parametrize("case", [*CASES, *GROUP_CASES], ids=lambda case: case.name)
def test_spark_agrees_with_the_types(spark: SparkSession, case: Case | GroupCase) -> None:
    rule = compiled(case)
    assert analyse(spark, rule) == rule.columns

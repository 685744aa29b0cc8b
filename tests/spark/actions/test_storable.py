"""Rows in types that everybody knows."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StructType

from brookmq.spark.actions.interface import ActionError
from brookmq.spark.actions.storable import (
    check_names,
    date_partition,
    json_rows,
    missing_columns,
    storable,
    stored_schema,
    with_date,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    # column: (its SQL, the type in which it is stored, its value there)
    "json": ("parse_json('{\"a\": [1, null]}')", "string", '{"a":[1,null]}'),
    "json_null": ("parse_json('null')", "string", "null"),
    "nothing": ("cast(NULL AS variant)", "string", None),
    "list_of_json": ("array(parse_json('1'), parse_json('{\"b\": 2}'))", "string", '[1,{"b":2}]'),
    "record_with_json": ("named_struct('x', parse_json('[1]'), 'y', 2)", "string", '{"x":[1],"y":2}'),
    "always_null": ("NULL", "string", None),
    "pause": ("INTERVAL '90' MINUTE", "string", "INTERVAL '90' MINUTE"),
    "tiny": ("cast(7 AS tinyint)", "int", 7),
    "small": ("cast(-7 AS smallint)", "int", -7),
    "whole": ("9223372036854775807L", "bigint", 2**63 - 1),
    "exact": ("cast('1.50' AS decimal(10,2))", "decimal(10,2)", None),
    "half": ("0.5D", "double", 0.5),
    "single": ("cast(0.25 AS float)", "float", 0.25),
    "yes": ("true", "boolean", True),
    "bytes": ("X'00FF'", "binary", bytearray(b"\x00\xff")),
    "text": ("'grün'", "string", "grün"),
    "day": ("DATE '2026-01-31'", "date", date(2026, 1, 31)),
    "local": ("TIMESTAMP_NTZ '2026-01-31 12:00:00'", "timestamp", None),
    "list": ("array(1, NULL)", "array<int>", [1, None]),
    "map": ("map('k', 1.5D)", "map<string,double>", {"k": 1.5}),
    "record": ("named_struct('x', 1, 'y', 'z')", "struct<x:int,y:string>", (1, "z")),
}


TYPES = {"int": IntegerType(), "array<int>": ArrayType(IntegerType())}


def schema(ddl: str) -> StructType:
    """Without a session, which Spark's own parser of such texts needs."""
    found = StructType()
    for column in ddl.split(", "):
        name, kind = column.rsplit(" ", 1)
        found.add(name.strip("`"), TYPES.get(kind, kind))
    return found


def test_each_type_becomes_one_that_can_be_stored(spark: SparkSession) -> None:
    frame = spark.sql("SELECT " + ", ".join(f"{sql} AS {name}" for name, (sql, _, _) in VALUES.items()))
    stored = storable(frame)

    assert {field.name: field.dataType.simpleString() for field in stored.schema.fields} == {
        name: kind for name, (_, kind, _) in VALUES.items()
    }
    row = stored.first()
    assert row is not None
    for name, (_, _, value) in VALUES.items():
        if value is not None:
            assert row[name] == value, name
    assert row["nothing"] is row["always_null"] is None
    assert str(row["exact"]) == "1.50"
    assert row["local"].astimezone(UTC) == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_what_is_stored_is_told_before_and_may_be_null_everywhere(spark: SparkSession) -> None:
    frame = spark.sql("SELECT " + ", ".join(f"{sql} AS {name}" for name, (sql, _, _) in VALUES.items()))
    told = stored_schema(frame.schema)

    assert [field.dataType.simpleString() for field in told] == [
        field.dataType.simpleString() for field in storable(frame).schema
    ]
    assert '"nullable":false' not in told.json()
    assert 'ontainsNull":false' not in told.json()


def test_columns_with_odd_names_keep_them(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 1 AS `a.b`, parse_json('2') AS `c d`, 3 AS `e``f`")
    assert storable(frame).columns == ["a.b", "c d", "e`f"]
    assert json.loads(json_rows(frame).collect()[0].json) == {"a.b": 1, "c d": 2, "e`f": 3}


@pytest.mark.parametrize("ddl", ["t int, T int", "t int, t int"])
def test_two_columns_of_one_name_are_refused(ddl: str) -> None:
    with pytest.raises(ActionError, match=r"place: the rule's columns 't' and '[tT]' would be one"):
        check_names(schema(ddl), "place")


def test_names_that_a_place_can_not_have_are_refused() -> None:
    check_names(schema("`a b` int"), "place")
    with pytest.raises(ActionError, match="'a b'"):
        check_names(schema("`a b` int"), "place", " ")


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("t int, published_at timestamp", ("date",)),
        ("t int", ()),
        ("published_at string", ()),
        ("t int, date date", ("date",)),
        ("published_at timestamp, date string", ()),
        ("published_at timestamp, Date date", ()),
    ],
)
def test_rows_are_partitioned_by_a_date_that_is_the_same_when_they_come_again(
    ddl: str, expected: tuple[str, ...]
) -> None:
    assert date_partition(schema(ddl)) == expected


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_days_are_those_of_utc(spark: SparkSession, zone: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    moments = {0: date(1970, 1, 1), -1: date(1969, 12, 31), 1769903999_999999: date(2026, 1, 31),
               1769904000_000000: date(2026, 2, 1)}  # fmt: skip
    rows = ", ".join(f"(timestamp_micros({moment}))" for moment in moments)
    frame = with_date(session.sql(f"SELECT * FROM VALUES {rows}, (NULL) AS t(published_at)"))
    assert [row.date for row in frame.collect()] == [*moments.values(), None]


def test_rows_as_json_have_all_columns_and_times_of_utc(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    frame = session.sql(
        "SELECT timestamp_micros(1769903999999999) AS at, NULL AS gone, X'00FF' AS bytes, parse_json('[1]') AS list"
    )
    (row,) = json_rows(frame).collect()
    assert json.loads(row.json) == {"at": "2026-01-31T23:59:59.999999Z", "gone": None, "bytes": "AP8=", "list": [1]}


def test_a_column_that_a_table_has_not_is_missing() -> None:
    found = missing_columns(schema("a int, b string"), schema("a int, c double"), "table")
    assert found.simpleString() == "struct<b:string>"


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ("a string", "table: its column 'a' is string, the rule's int; cast it"),
        ("A int", "table: its column is 'A', the rule's 'a'"),
        ("a array<int>", "is array<int>, the rule's int"),
    ],
)
def test_a_column_that_a_table_has_as_something_else_is_refused(theirs: str, expected: str) -> None:
    with pytest.raises(ActionError, match=expected):
        missing_columns(schema("a int"), schema(theirs), "table")

"""Pieces of Spark SQL: literals, names, paths into JSON, and a value as another type.

A literal is written so that it can be nothing else to Spark: quotes and backslashes are escaped, and so is the ``$`` of
``${…}``, which Spark would replace by settings and environment variables even inside of quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from brookmq.spark.rules.types import JSON, Kind, Type

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BIGINT_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Value:
    """An expression in Spark SQL and its type. Of a value inside of JSON, where it is found, until a type is needed."""

    sql: str
    type: Type
    json_root: str = ""
    json_path: str = "$"
    raw: str = ""
    """Of the whole payload: the column with its bytes."""

    def step(self, key: str | int) -> Value:
        """A field or an item of a JSON value."""
        root = self.json_root or self.sql
        path = f"{self.json_path if self.json_root else '$'}{_path_step(key)}"
        return Value(variant_get(root, path, "variant"), JSON, root, path)


def text_literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def number_literal(digits: str) -> str:
    if not digits.isdigit():
        return f"{float(digits)!r}D"
    return f"{int(digits)}L" if int(digits) <= _BIGINT_MAX else f"{float(digits)!r}D"


def variant_get(root: str, path: str, spark_type: str) -> str:
    """Never ``variant_get`` or a cast: these raise on a wrong type, and the stream would stop."""
    return f"try_variant_get({root}, {text_literal(path)}, '{spark_type}')"


def _path_step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _PLAIN_KEY.match(key):
        return f".{key}"
    return f'["{key}"]'


def json_as(value: Value, spark_type: str) -> str:
    """A JSON value as a Spark type; NULL where it is not one."""
    return variant_get(value.json_root or value.sql, value.json_path if value.json_root else "$", spark_type)


_SPARK_CASTS: Final[dict[tuple[Kind, Kind], str]] = {
    (Kind.INTEGER, Kind.NUMBER): "CAST({0} AS DOUBLE)",
    (Kind.INTEGER, Kind.TEXT): "CAST({0} AS STRING)",
    (Kind.NUMBER, Kind.TEXT): "CAST({0} AS STRING)",
    (Kind.BOOLEAN, Kind.TEXT): "CAST({0} AS STRING)",
    (Kind.TIMESTAMP, Kind.TEXT): "CAST({0} AS STRING)",
    (Kind.DATE, Kind.TEXT): "CAST({0} AS STRING)",
    (Kind.BYTES, Kind.TEXT): "try_validate_utf8(CAST({0} AS STRING))",
    (Kind.TEXT, Kind.BYTES): "CAST({0} AS BINARY)",
    (Kind.TIMESTAMP, Kind.DATE): "CAST({0} AS DATE)",
    (Kind.DATE, Kind.TIMESTAMP): "CAST({0} AS TIMESTAMP)",
    (Kind.RECORD, Kind.TEXT): "to_json({0})",
    (Kind.LIST, Kind.TEXT): "to_json({0})",
    (Kind.MAP, Kind.TEXT): "to_json({0})",
}
"""What becomes what without a CAST in the rule: nothing that could lose a value or fail."""

_ASKED_CASTS: Final[dict[tuple[Kind, Kind], str]] = {
    (source, target): f"try_cast({{0}} AS {spark})"
    for target, spark in (
        (Kind.BOOLEAN, "BOOLEAN"),
        (Kind.INTEGER, "BIGINT"),
        (Kind.NUMBER, "DOUBLE"),
        (Kind.TIMESTAMP, "TIMESTAMP"),
        (Kind.DATE, "DATE"),
    )
    for source in (Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN)
    if not ((target is Kind.DATE and source is not Kind.TEXT) or (target is Kind.TIMESTAMP and source is Kind.BOOLEAN))
}
"""What CAST does besides: NULL where the value is not one of the type."""


_BOUNDS: Final = {
    Kind.TIMESTAMP: ("TIMESTAMP'0001-01-02 00:00:00Z'", "TIMESTAMP'9999-12-30 00:00:00Z'"),
    Kind.DATE: ("DATE'0001-01-02'", "DATE'9999-12-30'"),
}


def bounded(value: Value) -> Value:
    """A time that came with a message: NULL before the year 1 and after 9999.

    Spark's timestamps reach 290,000 years further, and functions that leave them raise; Python's do not get there.
    """
    if value.type.kind not in _BOUNDS:
        return value
    return Value(bounded_sql(value.sql, value.type.kind), value.type)


def bounded_sql(sql: str, kind: Kind) -> str:
    low, high = _BOUNDS[kind]
    return f"if({sql} BETWEEN {low} AND {high}, {sql}, NULL)"


def converted(value: Value, wanted: Type, *, asked: bool = False) -> Value | None:
    """The value as another type; None if that does not go without CAST (``asked``) or at all."""
    source, target = value.type.kind, wanted.kind
    if value.raw and target is Kind.BYTES:
        return Value(value.raw, wanted)
    if value.raw and source is Kind.JSON and target is Kind.TEXT:
        return Value(_SPARK_CASTS[Kind.BYTES, Kind.TEXT].format(value.raw), wanted)
    if source is Kind.NULL:
        return Value(f"CAST(NULL AS {wanted.spark})", wanted)
    if source is Kind.JSON and target is not Kind.JSON:
        return bounded(Value(json_as(value, wanted.spark), wanted))
    if source is Kind.LIST and target is Kind.LIST:
        return _converted_list(value, wanted, asked=asked)
    if source is target:
        if source is Kind.INTEGER and value.type.spark != wanted.spark:  # int to bigint, never the other way
            return Value(f"CAST({value.sql} AS {wanted.spark})", wanted)
        return value
    template = _SPARK_CASTS.get((source, target))
    if template is None and asked:
        template = _ASKED_CASTS.get((source, target))
    if template is None:
        return None
    found = Value(template.format(value.sql), wanted)
    return found if source in _BOUNDS else bounded(found)


def _converted_list(value: Value, wanted: Type, *, asked: bool) -> Value | None:
    have, want = value.type.element, wanted.element
    assert have is not None
    assert want is not None
    if have == want:
        return value
    item = converted(Value("item", have), want, asked=asked)
    return None if item is None else Value(f"transform({value.sql}, item -> {item.sql})", wanted)

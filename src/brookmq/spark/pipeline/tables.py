"""The ready tables: what becomes of messages in each kind of them.

- bronze: messages as they came.
- silver: decoded by a schema, a column for each field; one row for each metric of Sparkplug B. Without a schema: those
  that are JSON, as text.
- gold_last: the rows of silver, of which `last_values` keeps the last one for each device and topic.
- gold_minute: for each minute, device, topic and numeric field: how many values, the smallest, the largest, the mean.
  One row for each field and not a column: free JSON has fields that nobody knows before.

What can't be decoded is counted, and stands in bronze alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from brookmq.spark.pipeline.statistics import OBSERVED
from brookmq.spark.rules.schemas import JSON_PAYLOAD, Schema
from brookmq.spark.rules.scope import PAYLOAD
from brookmq.spark.rules.types import Kind, Type, quoted
from brookmq.spark.schema import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MESSAGE: Final = ("topic", "client_id", "username", "qos", "retain", "published_at", "partition", "offset")
"""The columns of a message beside those of its payload."""
DEVICE: Final = ("client_id", "topic")
MINUTE: Final = "1 minute"
WATERMARK: Final = "10 seconds"  # as for rules: messages have the broker's time, so only partitions differ
VALUE: Final = "value"  # what a payload is called that has no fields
_NUMBERS: Final = "BIGINT|DOUBLE|FLOAT|DECIMAL.*"


def columns_read(kind: str) -> tuple[str, ...]:
    """What a table needs of each message."""
    return tuple(COLUMNS) if kind == "bronze" else (*MESSAGE, "payload")


def rows_of(kind: str, messages: DataFrame, schema: Schema | None) -> DataFrame:
    """The rows of a table of this kind."""
    if kind == "bronze":
        return messages.observe(OBSERVED, f.count(f.lit(1)).alias("matched"))
    if kind == "gold_minute":
        return _minutes(messages, schema)
    return _fields(decoded_messages(messages, schema), schema)


def decoded_messages(messages: DataFrame, schema: Schema | None) -> DataFrame:
    """The messages that can be decoded, with their payload decoded."""
    payload = JSON_PAYLOAD if schema is None else schema.payload
    if payload.in_python:
        from brookmq.spark.rules.decoding import decoded

        assert schema is not None
        messages = messages.withColumn(PAYLOAD, decoded(schema, f.col("payload")))
    elif payload.decoding:
        messages = messages.selectExpr("*", f"{payload.decoding} AS {PAYLOAD}")
    failed = f.expr(payload.failed)
    counted = messages.observe(OBSERVED, f.count(f.lit(1)).alias("matched"), f.count_if(failed).alias("failed"))
    return counted.where(~failed)


def _fields(messages: DataFrame, schema: Schema | None) -> DataFrame:
    """A column for each field of the payload."""
    if schema is None:
        return messages.select(*MESSAGE, f.to_json(f.col(PAYLOAD)).alias("payload"))
    if schema.type.kind is Kind.TEXT:
        return messages.select(*MESSAGE, _text().alias(VALUE))
    record, type = PAYLOAD, schema.type
    if schema.kind == "sparkplug":
        metrics = schema.type.field("metrics")
        assert metrics is not None
        assert metrics.element is not None
        record, type = "metric", metrics.element
        messages = messages.select(*MESSAGE, f.explode(f.col(f"{PAYLOAD}.metrics")).alias(record))
    fields = [f.col(f"{record}.{quoted(name)}").alias(_column_name(name)) for name, _ in type.fields]
    return messages.select(*MESSAGE, *fields)


def _column_name(field: str) -> str:
    return f"payload_{field}" if field.lower() in MESSAGE else field


def _minutes(messages: DataFrame, schema: Schema | None) -> DataFrame:
    messages = messages.withWatermark("published_at", WATERMARK)
    values = decoded_messages(messages, schema).select(*DEVICE, "published_at", _numbers(schema))
    known = values.where("number.value IS NOT NULL AND NOT isnan(number.value)")
    field, number = f.col("number.field").alias("field"), f.col("number.value")
    found = {"count": f.count, "min": f.min, "max": f.max, "avg": f.avg}
    grouped = known.groupBy(f.window("published_at", MINUTE), *DEVICE, field).agg(
        *(function(number).alias(name) for name, function in found.items())
    )
    minute = f.col("window.start")
    return grouped.select(
        minute.alias("minute"), *DEVICE, "field", "count", "min", "max", "avg", minute.cast("date").alias("date")
    )


def _numbers(schema: Schema | None) -> Column:
    """Explodes into ``number``, a record of ``field`` and ``value``."""
    if schema is None:
        # A JSON object, or a value alone. Only what is a number in JSON counts: no "5", no true.
        fields = f"coalesce(try_variant_get({PAYLOAD}, '$', 'map<string,variant>'), map('{VALUE}', {PAYLOAD}))"
        is_number = f"schema_of_variant(one.value) RLIKE '^({_NUMBERS})$'"
        number = f"CASE WHEN {is_number} THEN try_variant_get(one.value, '$', 'double') END"
        pairs = f.expr(f"transform(map_entries({fields}), one -> struct(one.key AS field, {number} AS value))")
    elif schema.type.kind is Kind.TEXT:
        pairs = f.array(_pair(VALUE, f.expr(f"try_cast({_TEXT} AS DOUBLE)")))
    elif schema.kind == "sparkplug":
        pairs = f.expr(f"transform({PAYLOAD}.metrics, m -> struct(m.name AS field, m.number AS value))")
    else:
        found = [_pair(path, column.cast("double")) for path, column in _numeric(schema.type, PAYLOAD, "")]
        pairs = f.array(*found) if found else f.expr("CAST(array() AS array<struct<field:string,value:double>>)")
    return f.explode(pairs).alias("number")


_TEXT: Final = "try_validate_utf8(CAST(payload AS STRING))"


def _text() -> Column:
    return f.expr(_TEXT)


def _pair(field: str, value: Column) -> Column:
    return f.struct(f.lit(field).alias("field"), value.alias("value"))


def _numeric(type: Type, column: str, path: str) -> list[tuple[str, Column]]:
    """The numeric fields of a record and of records in it: ``temp``, ``place.lat``."""
    found: list[tuple[str, Column]] = []
    for name, field in type.fields:
        inside = f"{column}.{quoted(name)}"
        if field.kind in (Kind.INTEGER, Kind.NUMBER):
            found.append((path + name, f.col(inside)))
        elif field.kind is Kind.RECORD:
            found += _numeric(field, inside, f"{path}{name}.")
    return found

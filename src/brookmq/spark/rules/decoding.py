"""Avro, Protobuf and Sparkplug B in Spark: a function in Python over Arrow batches of payloads.

Spark's wheel has no decoders for them (they are jars of their own), and executors should need nothing but this package.
A payload that cannot be decoded is NULL and counted; it never stops the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from brookmq.spark.rules.schemas import Decode, Schema
from brookmq.spark.rules.types import Kind, Type

if TYPE_CHECKING:
    from pyspark.sql import Column

_ARROW: Final = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    Kind.DATE: pa.date32(),
}


def arrow_type(type: Type) -> pa.DataType:
    """The type of a decoder's column in Arrow."""
    if type.kind is Kind.RECORD:
        return pa.struct([pa.field(name, arrow_type(column)) for name, column in type.fields])
    if type.element is not None:
        element = arrow_type(type.element)
        return pa.map_(pa.string(), element) if type.kind is Kind.MAP else pa.list_(element)
    return _ARROW[type.kind]


def decoded(schema: Schema, payload: Column) -> Column:
    """The column of decoded payloads; NULL where a payload is not of the schema."""
    from pyspark.sql.pandas.functions import arrow_udf

    kind, definition = schema.kind, json.dumps(schema.definition, sort_keys=True)

    def decode(payloads: pa.Array) -> pa.Array:
        return decode_batch(kind, definition, payloads)

    # Told by name, because this module's annotations are text; not deterministic, so that it runs once for a message.
    decode.__annotations__ = {"payloads": pa.Array, "return": pa.Array}
    make: Callable[..., Any] = arrow_udf
    column: Column = make(decode, schema.type.spark).asNondeterministic()(payload)
    return column


def decode_batch(kind: str, definition: str, payloads: pa.Array) -> pa.Array:
    """Payloads as records."""
    decode, type = _decoder(kind, definition)
    records = [_record(decode, payload) for payload in payloads.to_pylist()]
    try:
        return pa.array(records, type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):  # one record is beyond Arrow: the others are not
        return pa.concat_arrays([_single(record, type) for record in records])


@lru_cache(maxsize=64)
def _decoder(kind: str, definition: str) -> tuple[Decode, pa.DataType]:
    """Made once in each worker: to parse a schema takes longer than to decode a payload."""
    schema = Schema.checked("payload", kind, json.loads(definition))
    return schema.decode(), arrow_type(schema.type)


def _record(decode: Decode, payload: bytes | None) -> dict[str, Any] | None:
    if payload is None:
        return None
    try:
        return decode(payload)
    except ValueError:
        return None


def _single(record: dict[str, Any] | None, type: pa.DataType) -> pa.Array:
    try:
        return pa.array([record], type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.nulls(1, type)

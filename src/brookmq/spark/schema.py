"""The columns of a message, for Spark and for Arrow.

Spark takes a RecordBatch only when its schema is the one that it expects, to the last detail: timestamps are in
microseconds of UTC, strings are not large ones. So there is one table, and both schemas are made from it.

Every column may be null, as with Spark's other sources, also those that never are: a table that is made from the stream
would otherwise refuse rows from elsewhere for ever after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

# By name: the type as Spark's SQL writes it.
COLUMNS: Final = {
    "topic": "string",
    "payload": "binary",
    "qos": "int",
    "retain": "boolean",
    "client_id": "string",
    "username": "string",
    "user_properties": "array<struct<name:string,value:string>>",
    "content_type": "string",
    "response_topic": "string",
    "correlation_data": "binary",
    "payload_format": "int",
    "expires_at": "timestamp",
    "published_at": "timestamp",
    "partition": "int",
    "offset": "bigint",
    "node": "string",
}


def spark_schema(names: Iterable[str] = COLUMNS) -> str:
    """What ``DataSource.schema`` says."""
    return ", ".join(f"`{name}` {COLUMNS[name]}" for name in names)


def arrow_schema(names: Iterable[str] = COLUMNS) -> pa.Schema:
    """What the record batches of these columns have."""
    import pyarrow as pa  # not with the module: Spark looks at it to find the format, and Arrow takes long to load

    pair = pa.struct([pa.field("name", pa.string()), pa.field("value", pa.string())])
    types = {
        "string": pa.string(),
        "binary": pa.binary(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "array<struct<name:string,value:string>>": pa.list_(pa.field("element", pair)),
    }
    return pa.schema([pa.field(name, types[COLUMNS[name]]) for name in names])


def checked_names(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema that a user asks for; ``ValueError`` for one that a message does not have."""
    for field in schema.fields:
        known = COLUMNS.get(field.name)
        if known is None:
            raise ValueError(f"brookmq: a message has no column {field.name!r}; there are {', '.join(COLUMNS)}")
        if field.dataType.simpleString() != known:
            raise ValueError(
                f"brookmq: the column {field.name} is of type {known}, not {field.dataType.simpleString()}"
            )
        if not field.nullable:
            raise ValueError(f"brookmq: the column {field.name} has to be nullable in a schema of your own")
    return tuple(field.name for field in schema.fields)

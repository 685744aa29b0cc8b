"""The columns of a message, for Spark and for Arrow.

Spark takes a RecordBatch only when its schema is the one that it expects, to the last detail: timestamps are in
microseconds of UTC, strings are not large ones. So there is one table, and both schemas are made from it.

Every column may be null, as with Spark's other sources, also those that never are: a table that is made from the stream
would otherwise refuse rows from elsewhere for ever after.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PAIR: Final = pa.struct([pa.field("name", pa.string()), pa.field("value", pa.string())])

# By name: the type as Spark's SQL writes it, and as Arrow has it.
COLUMNS: Final[dict[str, tuple[str, pa.DataType]]] = {
    "topic": ("string", pa.string()),
    "payload": ("binary", pa.binary()),
    "qos": ("int", pa.int32()),
    "retain": ("boolean", pa.bool_()),
    "client_id": ("string", pa.string()),
    "username": ("string", pa.string()),
    "user_properties": ("array<struct<name:string,value:string>>", pa.list_(pa.field("element", PAIR))),
    "content_type": ("string", pa.string()),
    "response_topic": ("string", pa.string()),
    "correlation_data": ("binary", pa.binary()),
    "payload_format": ("int", pa.int32()),
    "expires_at": ("timestamp", pa.timestamp("us", tz="UTC")),
    "published_at": ("timestamp", pa.timestamp("us", tz="UTC")),
    "partition": ("int", pa.int32()),
    "offset": ("bigint", pa.int64()),
    "node": ("string", pa.string()),
}


def spark_schema(names: Iterable[str] = COLUMNS) -> str:
    """What ``DataSource.schema`` says."""
    return ", ".join(f"`{name}` {COLUMNS[name][0]}" for name in names)


def arrow_schema(names: Iterable[str] = COLUMNS) -> pa.Schema:
    """What the record batches of these columns have."""
    return pa.schema([pa.field(name, COLUMNS[name][1]) for name in names])


def checked_names(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema that a user asks for; ``ValueError`` for one that a message does not have."""
    for field in schema.fields:
        known = COLUMNS.get(field.name)
        if known is None:
            raise ValueError(f"brookmq: a message has no column {field.name!r}; there are {', '.join(COLUMNS)}")
        if field.dataType.simpleString() != known[0]:
            raise ValueError(
                f"brookmq: the column {field.name} is of type {known[0]}, not {field.dataType.simpleString()}"
            )
        if not field.nullable:
            raise ValueError(f"brookmq: the column {field.name} has to be nullable in a schema of your own")
    return tuple(field.name for field in schema.fields)

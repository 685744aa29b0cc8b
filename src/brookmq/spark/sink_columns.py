"""The columns that the sink takes: what they are called, of what type they are, and where each stands in a row.

A frame of the source can be written as it is. What a message gets anew when it is published (who published it, when,
its place in the journal) is then left out; any other column is a mistake, and is named before a row is sent.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from brookmq.spark.sink_options import SinkOptions

PAYLOADS: Final = ("payload", "value")
IGNORED: Final = ("client_id", "username", "published_at", "partition", "offset", "node")

_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_PAIRS: Final = "array<struct<name:string,value:string>> or map<string,string>"

# By name: the types, and how an error calls them.
_TYPES: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "topic": ((StringType,), "string"),
    "payload": ((BinaryType, StringType), "binary or string"),
    "value": ((BinaryType, StringType), "binary or string"),
    "qos": (_WHOLE, "int"),
    "retain": ((BooleanType,), "boolean"),
    "user_properties": ((ArrayType, MapType), _PAIRS),
    "content_type": ((StringType,), "string"),
    "response_topic": ((StringType,), "string"),
    "correlation_data": ((BinaryType, StringType), "binary or string"),
    "payload_format": (_WHOLE, "int"),
    "expires_at": ((TimestampType,), "timestamp"),
    "message_expiry": (_WHOLE, "int"),
}
KNOWN: Final = tuple(_TYPES)


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """Where the columns of messages stand in a row, by name; ``payload`` under whichever name it has."""

    places: dict[str, int]
    payload_name: str
    payload_is_text: bool


def sink_columns(schema: StructType, options: SinkOptions) -> SinkColumns:
    """The columns of a frame that is to be written. ``ValueError`` for what can't be published."""
    places: dict[str, int] = {}
    for place, field in enumerate(schema.fields):
        name = field.name
        if name in IGNORED:
            continue
        if name not in _TYPES:
            raise ValueError(f"brookmq: the sink knows no column {name!r}; {_hint(name)}")
        if name in places:
            raise ValueError(f"brookmq: the column {name} is there twice")
        kinds, written = _TYPES[name]
        if not isinstance(field.dataType, kinds) or (name == "user_properties" and not _are_pairs(field.dataType)):
            raise ValueError(f"brookmq: the column {name} has to be {written}, not {field.dataType.simpleString()}")
        places[name] = place
    given = [name for name in PAYLOADS if name in places]
    if len(given) != 1:
        complaint = "there is no column payload (or value)" if not given else "there are two columns payload and value"
        raise ValueError(f"brookmq: {complaint}: one of them is what is published")
    if "topic" not in places and options.topic is None:
        raise ValueError("brookmq: there is neither a column topic nor the option topic")
    # An option is for all rows, whatever stands in them.
    for name, value in (("topic", options.topic), ("qos", options.qos), ("retain", options.retain)):
        if value is not None:
            places.pop(name, None)
    payload = places["payload"] = places.pop(given[0])
    return SinkColumns(places, given[0], isinstance(schema.fields[payload].dataType, StringType))


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _TYPES, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(_TYPES)}; drop or rename it"


def _are_pairs(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return [field.name for field in fields] == ["name", "value"] and all(
        isinstance(field.dataType, StringType) for field in fields
    )

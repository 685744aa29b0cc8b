"""Avro payloads: one datum in Avro's binary encoding, bare or in one of two usual frames."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final

from brookmq.spark.rules.fields import DEPTH_MAX, FieldsError
from brookmq.spark.rules.types import (
    BOOLEAN,
    BYTES,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    record_of,
)

_SIMPLE: Final = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "long": INTEGER,
    "float": NUMBER,
    "double": NUMBER,
    "string": TEXT,
    "enum": TEXT,
    "bytes": BYTES,
    "fixed": BYTES,
}
_LOGICAL: Final = {
    "date": DATE,
    "timestamp-millis": TIMESTAMP,
    "timestamp-micros": TIMESTAMP,
    "local-timestamp-millis": TIMESTAMP,
    "local-timestamp-micros": TIMESTAMP,
    "uuid": TEXT,
    "decimal": NUMBER,
    "time-millis": TEXT,
    "time-micros": TEXT,
}
_SINGLE_OBJECT_MAGIC: Final = b"\xc3\x01"
FRAMINGS: Final = ("none", "single-object", "confluent")


def declared_type(definition: Mapping[str, Any]) -> Type:
    """The type of the records; raises FieldsError if the definition is wrong."""
    if definition.get("framing", "none") not in FRAMINGS:
        raise FieldsError(f"framing is one of {', '.join(FRAMINGS)}")
    schema = _parsed(definition)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise FieldsError("the schema of a payload is a record")
    return _type(schema, 0)


def decoder(definition: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]:
    """Payloads to records; ValueError for what is not one."""
    fastavro = _fastavro()
    schema = _parsed(definition)
    columns = _type(schema, 0)
    framing = definition.get("framing", "none")
    fingerprint = b""
    if framing == "single-object":
        canonical = fastavro.schema.to_parsing_canonical_form(_loaded(definition))
        fingerprint = bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))  # little-endian

    def decode(payload: bytes) -> dict[str, Any]:
        stream = io.BytesIO(_unframed(payload, framing, fingerprint))
        try:
            datum = fastavro.schemaless_reader(stream, schema, None)
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error) as error:
            raise ValueError(f"not Avro of this schema: {error}") from None
        if stream.read(1):
            raise ValueError("not Avro of this schema: there is more behind it")
        record: dict[str, Any] = _plain(datum, columns)
        return record

    return decode


def _unframed(payload: bytes, framing: str, fingerprint: bytes) -> bytes:
    if framing == "confluent":
        if len(payload) < 5 or payload[0] != 0:
            raise ValueError("the frame's first byte is not 0")
        return payload[5:]
    if framing == "single-object":
        if payload[:2] != _SINGLE_OBJECT_MAGIC or payload[2:10] != fingerprint:
            raise ValueError("not the frame of this schema")
        return payload[10:]
    return payload


def _fastavro() -> ModuleType:
    try:
        import fastavro
        import fastavro.schema
    except ImportError:
        raise FieldsError("Avro needs the package fastavro") from None
    module: ModuleType = fastavro
    return module


def _loaded(definition: Mapping[str, Any]) -> Any:
    schema = definition.get("schema")
    return json.loads(schema) if isinstance(schema, str) else schema


def _parsed(definition: Mapping[str, Any]) -> Any:
    fastavro = _fastavro()
    try:
        named: dict[str, Any] = {}
        # References to named types are resolved by our own walk; the parser checks the schema.
        parsed = fastavro.parse_schema(_loaded(definition), named_schemas=named)
        return _resolved(parsed, named, ())
    except FieldsError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, fastavro.schema.SchemaParseException) as error:
        raise FieldsError(f"this is not an Avro schema: {error}") from None
    except fastavro.schema.UnknownType as error:
        raise FieldsError(f"the schema has an unknown type {error}") from None


def _resolved(schema: Any, named: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """The schema with every name replaced by what it names."""
    if len(inside) > DEPTH_MAX:
        raise FieldsError(f"more than {DEPTH_MAX} records inside each other")
    if isinstance(schema, list):
        return [_resolved(branch, named, inside) for branch in schema]
    if isinstance(schema, str):
        if schema in named:
            if schema in inside:
                raise FieldsError(f"{schema} holds itself, and a table cannot")
            return _resolved(named[schema], named, inside)
        return schema
    found = dict(schema)
    if found.get("type") == "record":
        inside = (*inside, found["name"])
        found["fields"] = [{**part, "type": _resolved(part["type"], named, inside)} for part in found["fields"]]
    for key in ("items", "values"):
        if key in found:
            found[key] = _resolved(found[key], named, inside)
    if "items" in found and not _takes_bytes(found["items"]):
        raise FieldsError("the items of an array take no bytes: a short payload could hold any number of them")
    return found


def _takes_bytes(schema: Any) -> bool:
    if isinstance(schema, str | list):
        return schema != "null"
    if schema.get("type") == "record":
        return any(_takes_bytes(part["type"]) for part in schema["fields"])
    return schema.get("type") != "null" and (schema.get("type") != "fixed" or int(schema["size"]) > 0)


def _type(schema: Any, depth: int) -> Type:
    if depth > DEPTH_MAX:
        raise FieldsError(f"more than {DEPTH_MAX} types inside each other")
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        types = {_type(branch, depth + 1) for branch in branches}
        if types <= {INTEGER, NUMBER} and NUMBER in types:
            return NUMBER
        return types.pop() if len(types) == 1 else TEXT  # of several types: as JSON text
    if isinstance(schema, str):
        return _SIMPLE.get(schema, TEXT)
    kind = schema["type"]
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if isinstance(kind, dict | list):
        return _type(kind, depth + 1)
    if kind == "array":
        return list_of(_type(schema["items"], depth + 1))
    if kind == "map":
        return map_of(_type(schema["values"], depth + 1))
    if kind == "record":
        if not schema["fields"]:
            raise FieldsError(f"the record {schema['name']} has no fields")
        return record_of((part["name"], _type(part["type"], depth + 1)) for part in schema["fields"])
    return _SIMPLE.get(kind, TEXT)


def _plain(value: Any, type: Type) -> Any:
    """A value as Arrow takes it for the type."""
    if value is None:
        return None
    if type.fields and isinstance(value, dict):
        return {name: _plain(value.get(name), column) for name, column in type.fields}
    if type.element is not None and isinstance(value, list):
        return [_plain(item, type.element) for item in value]
    if type.element is not None and isinstance(value, dict):
        return [(key, _plain(item, type.element)) for key, item in value.items()]
    if type == NUMBER:
        return float(value)
    if type == TEXT and not isinstance(value, str):
        return json.dumps(value, default=str) if isinstance(value, dict | list | bool | int | float) else str(value)
    if type == TIMESTAMP and isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value

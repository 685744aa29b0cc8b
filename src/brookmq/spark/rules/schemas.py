"""Named schemas of payloads: what a payload is, where it is not free JSON.

| kind | definition |
|---|---|
| json | ``fields``: ``temp double, place struct<lat: double, lon: double>`` |
| csv | ``fields``, ``separator`` (a comma if it is missing) |
| text | none |
| avro | ``schema`` (as JSON), ``framing``: none, single-object or confluent |
| protobuf | ``message`` and ``proto`` (source text), or ``descriptors`` (base 64 of a FileDescriptorSet) |
| sparkplug | none |

A schema is checked when it is made, so that what is kept can be used: rules are compiled against its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from brookmq.spark.rules import avro, protobuf, sparkplug
from brookmq.spark.rules.emitting import text_literal
from brookmq.spark.rules.errors import SchemaError
from brookmq.spark.rules.fields import FieldsError, parse_fields
from brookmq.spark.rules.types import TEXT, Kind, Type, quoted

SCHEMAS_MAX: Final = 1_000
DEFINITION_CHARACTERS_MAX: Final = 256 * 1024
BAD_RECORD: Final = "__bad"
"""The field in which Spark leaves a text that does not fit the declared fields."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")

Definition = Mapping[str, Any]
Decode = Callable[[bytes], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Payload:
    """How the base view decodes payloads."""

    decoding: str
    """Spark SQL; empty if there is nothing to decode, or if Python does it."""
    failed: str
    """A condition over the base view: this payload could not be decoded."""
    in_python: bool = False


_TEXT_SQL: Final = "try_validate_utf8(CAST(payload AS STRING))"
JSON_PAYLOAD: Final = Payload(f"explode(array(try_parse_json({_TEXT_SQL})))", "__payload IS NULL")
_TEXT_PAYLOAD: Final = Payload("", "false")
_PYTHON_PAYLOAD: Final = Payload("", "__payload IS NULL", in_python=True)
_FITS_NOT: Final = f"(__payload IS NULL OR __payload.{BAD_RECORD} IS NOT NULL)"


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    kind: str
    definition: Definition
    type: Type = field(repr=False)
    payload: Payload = field(repr=False)

    @classmethod
    def checked(cls, name: str, kind: str, definition: Definition | None = None) -> Schema:
        """A schema that can be used; raises SchemaError with what is wrong."""
        definition = dict(definition or {})
        if not _NAME.match(name):
            raise SchemaError(name[:64], "a name has letters, digits, _, . and -, a letter first, 64 at most")
        if kind not in _KINDS:
            raise SchemaError(name, f"there is no kind {kind!r}; there are {', '.join(_KINDS)}")
        make, keys = _KINDS[kind]
        for key, value in definition.items():
            if key not in keys:
                raise SchemaError(name, f"{kind} has no {key!r}" + (f"; it has {', '.join(keys)}" if keys else ""))
            if len(str(value)) > DEFINITION_CHARACTERS_MAX:
                raise SchemaError(name, f"{key} is longer than {DEFINITION_CHARACTERS_MAX} characters")
        try:
            type, payload = make(definition)
        except FieldsError as error:
            raise SchemaError(name, str(error)) from None
        return cls(name, kind, definition, type, payload)

    def decode(self) -> Decode:
        """The decoder in Python; it raises ValueError for a payload that is not of this schema."""
        return _DECODERS[self.kind](self.definition)


class SchemaRegistry:
    """The schemas of a cluster by name."""

    def __init__(self, schemas: Mapping[str, Schema] | None = None) -> None:
        self._schemas = dict(schemas or {})

    def add(self, name: str, kind: str, definition: Definition | None = None) -> Schema:
        """Check a schema and keep it, in place of another of its name."""
        if name not in self._schemas and len(self._schemas) >= SCHEMAS_MAX:
            raise SchemaError(name, f"there are {SCHEMAS_MAX} schemas already")
        schema = self._schemas[name] = Schema.checked(name, kind, definition)
        return schema

    def remove(self, name: str) -> None:
        self._schemas.pop(self[name].name)

    def __getitem__(self, name: str) -> Schema:
        schema = self._schemas.get(name)
        if schema is None:
            raise SchemaError(name, "it is not there")
        return schema

    def __iter__(self) -> Iterator[Schema]:
        return iter(self._schemas.values())

    def __len__(self) -> int:
        return len(self._schemas)


def _declared(definition: Definition) -> Type:
    fields = definition.get("fields")
    if not isinstance(fields, str) or not fields.strip():
        raise FieldsError("fields are missing, such as 'temp double, name string'")
    return parse_fields(fields)


def _json(definition: Definition) -> tuple[Type, Payload]:
    type = _declared(definition)
    return type, _spark_payload("from_json", type, {})


def _csv(definition: Definition) -> tuple[Type, Payload]:
    type = _declared(definition)
    separator = definition.get("separator", ",")
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\\\n\r':
        raise FieldsError("the separator is one character, and no quote, backslash or line end")
    for name, column in type.fields:
        if column.kind in (Kind.LIST, Kind.RECORD, Kind.MAP, Kind.JSON, Kind.BYTES):
            raise FieldsError(f"the column {name} is {column.kind}, which CSV cannot hold")
    return type, _spark_payload("from_csv", type, {"sep": separator})


def _spark_payload(function: str, type: Type, options: Mapping[str, str]) -> Payload:
    """Spark's own decoders leave NULL in fields that do not fit, and the whole text in a field of its own."""
    fields = [*type.fields, (BAD_RECORD, TEXT)]
    ddl = ", ".join(f"{quoted(name)} {column.spark}" for name, column in fields)
    settings = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_RECORD, **options}
    written = ", ".join(f"{text_literal(key)}, {text_literal(value)}" for key, value in settings.items())
    decoded = f"{function}({_TEXT_SQL}, {text_literal(ddl)}, map({written}))"
    return Payload(f"explode(array({decoded}))", _FITS_NOT)


_KINDS: Final[dict[str, tuple[Callable[[Definition], tuple[Type, Payload]], tuple[str, ...]]]] = {
    "json": (_json, ("fields",)),
    "csv": (_csv, ("fields", "separator")),
    "text": (lambda _: (TEXT, _TEXT_PAYLOAD), ()),
    "avro": (lambda definition: (avro.declared_type(definition), _PYTHON_PAYLOAD), ("schema", "framing")),
    "protobuf": (
        lambda definition: (protobuf.declared_type(definition), _PYTHON_PAYLOAD),
        ("message", "proto", "descriptors"),
    ),
    "sparkplug": (lambda _: (sparkplug.TYPE, _PYTHON_PAYLOAD), ()),
}
_DECODERS: Final[dict[str, Callable[[Definition], Decode]]] = {
    "avro": avro.decoder,
    "protobuf": protobuf.decoder,
    "sparkplug": sparkplug.decoder,
}

"""The types of values in rules: few kinds, each with the Spark type that it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a value is, in the words that errors and the guide use."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BYTES = "bytes"
    TIMESTAMP = "timestamp"
    DATE = "date"
    JSON = "json"
    LIST = "list"
    RECORD = "record"
    MAP = "map"
    INTERVAL = "interval"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Type:
    kind: Kind
    spark: str
    element: Type | None = None
    """Of a list's items and of a map's values."""
    fields: tuple[tuple[str, Type], ...] = ()

    def field(self, name: str) -> Type | None:
        return next((type for field, type in self.fields if field == name), None)


BOOLEAN = Type(Kind.BOOLEAN, "boolean")
INTEGER = Type(Kind.INTEGER, "bigint")
INT = Type(Kind.INTEGER, "int")
NUMBER = Type(Kind.NUMBER, "double")
TEXT = Type(Kind.TEXT, "string")
BYTES = Type(Kind.BYTES, "binary")
TIMESTAMP = Type(Kind.TIMESTAMP, "timestamp")
DATE = Type(Kind.DATE, "date")
JSON = Type(Kind.JSON, "variant")
INTERVAL = Type(Kind.INTERVAL, "interval")
NULL = Type(Kind.NULL, "void")

SCALARS: dict[str, Type] = {
    str(type.kind): type for type in (BOOLEAN, INTEGER, NUMBER, TEXT, BYTES, TIMESTAMP, DATE, JSON)
}


def list_of(element: Type) -> Type:
    return Type(Kind.LIST, f"array<{element.spark}>", element)


def map_of(value: Type) -> Type:
    return Type(Kind.MAP, f"map<string,{value.spark}>", value)


def record_of(fields: Iterable[tuple[str, Type]]) -> Type:
    members = tuple(fields)
    inner = ",".join(f"{quoted(name)}:{type.spark}" for name, type in members)
    return Type(Kind.RECORD, f"struct<{inner}>", fields=members)


def quoted(name: str) -> str:
    """A name as Spark SQL reads it, whatever its characters are."""
    return "`" + name.replace("`", "``") + "`"

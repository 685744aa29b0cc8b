"""Declared fields: ``temp double, tags array<string>, place struct<lat: double, lon: double>``.

Our own small grammar and not Spark's parser: a schema is checked where it is added, which is a node without Spark, and
only types with a meaning in rules are taken.
"""

from __future__ import annotations

import re
from typing import Final

from brookmq.spark.rules.types import (
    BOOLEAN,
    BYTES,
    DATE,
    INTEGER,
    JSON,
    NUMBER,
    TEXT,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    record_of,
)

FIELDS_MAX: Final = 1_000
DEPTH_MAX: Final = 16
_TOKEN: Final = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|`([^`$\\\x00-\x1f]{1,128})`|([<>,:]))")
_TYPES: Final = {
    "boolean": BOOLEAN,
    "int": INTEGER,
    "integer": INTEGER,
    "bigint": INTEGER,
    "long": INTEGER,
    "double": NUMBER,
    "float": NUMBER,
    "number": NUMBER,
    "string": TEXT,
    "text": TEXT,
    "binary": BYTES,
    "timestamp": TIMESTAMP,
    "date": DATE,
    "variant": JSON,
    "json": JSON,
}


class FieldsError(ValueError):
    """The text is not a list of fields; says what is wrong and where."""


def parse_fields(text: str) -> Type:
    """The record that the text declares."""
    parser = _Parser(_tokens(text))
    fields = parser.fields(0)
    parser.expect_end()
    return record_of(fields)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Names and symbols; the flag says whether it is a name in backquotes, which is never a type."""
    tokens: list[tuple[str, bool]] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise FieldsError(f"cannot be read at {text[at:].strip()[:20]!r}")
        tokens.append((match[1] or match[2] or match[3], match[2] is not None))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, bool]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._count = 0

    def _next(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self, what: str) -> str:
        if self._at >= len(self._tokens):
            raise FieldsError(f"{what} is missing at the end")
        self._at += 1
        return self._tokens[self._at - 1][0]

    def _expect(self, symbol: str) -> None:
        found = self._take(symbol)
        if found != symbol:
            raise FieldsError(f"{symbol} is missing before {found!r}")

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise FieldsError(f"cannot be read at {self._next()!r}")

    def fields(self, depth: int) -> list[tuple[str, Type]]:
        fields: list[tuple[str, Type]] = []
        while True:
            name = self._take("a field's name")
            if name in "<>,:" or name.startswith("__"):
                raise FieldsError(f"{name!r} is not a field's name")
            if any(name.lower() == known.lower() for known, _ in fields):
                raise FieldsError(f"the field {name} is there twice (capital letters make no difference)")
            if self._next() == ":":
                self._at += 1
            fields.append((name, self._type(depth)))
            self._count += 1
            if self._count > FIELDS_MAX:
                raise FieldsError(f"more than {FIELDS_MAX} fields")
            if self._next() != ",":
                return fields
            self._at += 1

    def _type(self, depth: int) -> Type:
        if depth > DEPTH_MAX:
            raise FieldsError(f"more than {DEPTH_MAX} types inside each other")
        word = self._take("a type").lower()
        if word in _TYPES:
            return _TYPES[word]
        if word not in ("array", "map", "struct"):
            known = ", ".join(sorted({*_TYPES, "array<…>", "map<string, …>", "struct<…>"}))
            raise FieldsError(f"{word!r} is not a type; there are {known}")
        self._expect("<")
        if word == "array":
            type = list_of(self._type(depth + 1))
        elif word == "map":
            if self._take("string").lower() != "string":
                raise FieldsError("the keys of a map are strings: map<string, double>")
            self._expect(",")
            type = map_of(self._type(depth + 1))
        else:
            type = record_of(self.fields(depth + 1))
        self._expect(">")
        return type

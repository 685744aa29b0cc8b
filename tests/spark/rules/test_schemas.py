"""Schemas are checked when they are added."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from brookmq.spark.rules import Schema, SchemaError, SchemaRegistry
from brookmq.spark.rules.fields import FIELDS_MAX, FieldsError, parse_fields
from brookmq.spark.rules.protobuf import compiled
from brookmq.spark.rules.schemas import DEFINITION_CHARACTERS_MAX, SCHEMAS_MAX


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("a double", "struct<`a`:double>"),
        ("a: int, `b c` string", "struct<`a`:bigint,`b c`:string>"),
        (
            "a array<struct<b: date, c map<string, binary>>>",
            "struct<`a`:array<struct<`b`:date,`c`:map<string,binary>>>>",
        ),
    ],
)
def test_fields(text: str, spark: str) -> None:
    assert parse_fields(text).spark == spark


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "missing"),
        ("a", "a type is missing"),
        ("a decimal", "not a type"),
        ("a double,", "name is missing"),
        ("a double b double", "cannot be read"),
        ("a array<double", "> is missing"),
        ("a array double", "< is missing"),
        ("a map<int, int>", "keys of a map"),
        ("a int, A int", "twice"),
        ("__bad string", "not a field's name"),
        ("a int; DROP TABLE x", "cannot be read"),
        ("`a${x}` int", "cannot be read"),
        ("a " + "array<" * 30 + "int" + ">" * 30, "inside each other"),
        (", ".join(f"a{number} int" for number in range(FIELDS_MAX + 1)), "more than"),
    ],
)
def test_fields_that_are_wrong(text: str, part: str) -> None:
    with pytest.raises(FieldsError, match=part):
        parse_fields(text)


PROTO = 'syntax = "proto3"; message A { int32 x = 1; } message R { R r = 1; } message E {}'


@pytest.mark.parametrize(
    ("kind", "definition", "part"),
    [
        ("xml", {}, "no kind 'xml'"),
        ("json", {}, "fields are missing"),
        ("json", {"fields": 5}, "fields are missing"),
        ("json", {"fields": "a int", "color": "red"}, "no 'color'"),
        ("json", {"fields": "x" * (DEFINITION_CHARACTERS_MAX + 1)}, "longer than"),
        ("csv", {"fields": "a array<int>"}, "CSV cannot hold"),
        ("csv", {"fields": "a int", "separator": ";;"}, "one character"),
        ("csv", {"fields": "a int", "separator": '"'}, "one character"),
        ("text", {"fields": "a int"}, "no 'fields'"),
        ("sparkplug", {"version": "A"}, "no 'version'"),
        ("avro", {}, "not an Avro schema"),
        ("avro", {"schema": "{"}, "not an Avro schema"),
        ("avro", {"schema": "string"}, "not an Avro schema"),
        ("avro", {"schema": '"string"'}, "is a record"),
        ("avro", {"schema": {"type": "record", "name": "A", "fields": []}}, "no fields"),
        ("avro", {"schema": {"type": "record", "name": "A", "fields": [{"name": "a", "type": "x"}]}}, "x"),
        (
            "avro",
            {"schema": {"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}},
            "itself",
        ),
        (
            "avro",
            {
                "schema": {
                    "type": "record",
                    "name": "A",
                    "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
                }
            },
            "take no bytes",
        ),
        ("avro", {"schema": '"string"', "framing": "zip"}, "framing"),
        ("protobuf", {"message": "A"}, "either proto"),
        ("protobuf", {"message": "A", "proto": PROTO, "descriptors": ""}, "either proto"),
        ("protobuf", {"message": "A", "descriptors": "???"}, "not descriptors"),
        ("protobuf", {"message": "A", "descriptors": base64.b64encode(b"\xff").decode()}, "not descriptors"),
        ("protobuf", {"message": "B", "proto": PROTO}, "no message B; there are A, E, R"),
        ("protobuf", {"message": "R", "proto": PROTO}, "itself"),
        ("protobuf", {"message": "E", "proto": PROTO}, "no fields"),
        ("protobuf", {"message": "A", "proto": "message"}, "cannot compile"),
    ],
)
def test_definitions_that_are_wrong(kind: str, definition: dict[str, Any], part: str) -> None:
    with pytest.raises(SchemaError, match="schema s: ") as caught:
        Schema.checked("s", kind, definition)
    assert part in str(caught.value)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a/b", "x" * 65, "a`"])
def test_names_that_are_wrong(name: str) -> None:
    with pytest.raises(SchemaError):
        Schema.checked(name, "text")


def test_the_registry() -> None:
    registry = SchemaRegistry()
    registry.add("a", "text")
    registry.add("a", "csv", {"fields": "x int"})
    assert registry["a"].kind == "csv"
    assert [schema.name for schema in registry] == ["a"]
    with pytest.raises(SchemaError):
        registry.add("a", "csv", {"fields": "x"})
    assert registry["a"].kind == "csv"
    registry.remove("a")
    assert len(registry) == 0
    with pytest.raises(SchemaError, match="not there"):
        registry["a"]
    with pytest.raises(SchemaError, match="not there"):
        registry.remove("a")


def test_the_registry_has_a_limit() -> None:
    text = Schema.checked("t", "text")
    registry = SchemaRegistry({f"s{number}": text for number in range(SCHEMAS_MAX - 1)})
    registry.add("last", "text")
    with pytest.raises(SchemaError, match="already"):
        registry.add("more", "text")
    registry.add("last", "sparkplug")


def test_descriptors_and_source_text_are_the_same() -> None:
    by_text = Schema.checked("a", "protobuf", {"message": "A", "proto": PROTO})
    by_descriptors = Schema.checked("a", "protobuf", {"message": "A", "descriptors": compiled(PROTO)})
    assert by_text.type == by_descriptors.type

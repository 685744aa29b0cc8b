"""Documents of rules, schemas, tables and resources: what is taken, and what is said of what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from brookmq.base import rule_actions
from brookmq.base.rule_documents import (
    ACTION_TYPES,
    ACTIONS_MAX,
    DEFINITION_BYTES_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    FALLBACKS_MAX,
    FILTERS_MAX,
    SQL_BYTES_MAX,
    Action,
    ConsoleAction,
    DeltaAction,
    DocumentError,
    RepublishAction,
    ResourceBody,
    RuleBody,
    WebhookAction,
    parse_action,
    parse_resource,
    parse_rule,
    parse_schema,
    parse_table,
    problems,
)

CONSOLE = {"type": "console"}
ACTIONS: dict[str, dict[str, Any]] = {
    "delta": {"path": "tables/hot", "partition_by": ["room"]},
    "iceberg": {"warehouse": "/lake", "table": "sensors.hot"},
    "parquet": {"path": "/files/hot"},
    "postgresql": {"resource": "db", "table": "public.hot"},
    "webhook": {"url": "https://example.org/in?x=1", "headers": {"X-Key": "abc"}, "rows_per_request": 10},
    "console": {"rows": 5},
    "republish": {"topic": "hot/${room}/${client_id}", "qos": 1, "retain": True, "payload": "t"},
}


def rule(**fields: Any) -> dict[str, Any]:
    return {"name": "hot", "sql": 'SELECT topic FROM "a"', **fields}


def test_a_rule_has_defaults_for_all_but_name_and_sql() -> None:
    found = parse_rule(rule())
    assert found.document() == {
        "name": "hot",
        "sql": 'SELECT topic FROM "a"',
        "actions": [],
        "on_action_failed": "retry",
        "enabled": True,
        "description": "",
        "schema": None,
        "created_at": 0.0,
        "changed_at": 0.0,
        "revision": 0,
    }


def test_every_type_of_action_is_known() -> None:
    assert tuple(ACTIONS) == ACTION_TYPES


@pytest.mark.parametrize("type", ACTION_TYPES)
def test_a_document_comes_back_as_it_was(type: str) -> None:
    given = rule(
        actions=[{"type": type, **ACTIONS[type], "fallbacks": [{"type": type, **ACTIONS[type]}, CONSOLE]}],
        on_action_failed="continue",
        enabled=False,
        description="hot rooms",
        schema="reading",
        created_at=1.5,
        changed_at=2.5,
        revision=3,
    )
    found = parse_rule(given)
    assert parse_rule(json.loads(json.dumps(found.document()))) == found
    (action,) = found.actions
    assert action.type == type
    assert [fallback.type for fallback in action.fallbacks] == [type, "console"]
    for key, value in ACTIONS[type].items():
        assert found.document()["actions"][0][key] == value


def test_defaults_of_actions() -> None:
    assert parse_action({"type": "delta", "path": "x"}) == DeltaAction(path="x", partition_by=None)
    assert parse_action(CONSOLE) == ConsoleAction(rows=20)
    hook = parse_action({"type": "webhook", "url": "http://127.0.0.1:8080/in"})
    assert isinstance(hook, WebhookAction)
    assert (hook.headers, hook.rows_per_request, hook.timeout_s, hook.tries) == ({}, 500, 10.0, 5)
    again = parse_action({"type": "republish", "topic": "out"})
    assert isinstance(again, RepublishAction)
    assert (again.qos, again.retain, again.payload, again.topic_columns) == (0, False, "json", ())


def test_columns_of_a_topic() -> None:
    action = parse_action({"type": "republish", "topic": "a/${x y}/$b/${z}/${x y}"})
    assert isinstance(action, RepublishAction)
    assert action.topic_columns == ("x y", "z")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({}, "it has no type"),
        ([], "dictionary"),
        ({"type": "kafka"}, "there is no type 'kafka'; there are delta, iceberg"),
        ({"type": "delta"}, "path: Field required"),
        ({"type": "delta", "path": ""}, "path: "),
        ({"type": "delta", "path": "a\0b"}, "path: there is a null character"),
        ({"type": "delta", "path": "a", "partition": "b"}, "partition: Extra inputs"),
        ({"type": "iceberg", "warehouse": "a", "table": "hot"}, "table: expected the name of a table such as name"),
        ({"type": "postgresql", "table": "hot"}, "it needs resource or uri, and not both"),
        ({"type": "postgresql", "table": "hot", "resource": "a", "uri": "postgresql://h/d"}, "and not both"),
        ({"type": "postgresql", "table": 'a"; DROP', "resource": "a"}, "table: expected the name of a table"),
        ({"type": "postgresql", "table": "hot", "uri": "mysql://h/d"}, "uri: expected an address such as postgresql"),
        ({"type": "postgresql", "table": "hot", "resource": "no name"}, "resource: a name has letters"),
        ({"type": "webhook"}, "it needs resource or url, and not both"),
        ({"type": "webhook", "url": "file:///etc/passwd"}, "url: expected an address such as https://host/path"),
        ({"type": "webhook", "url": "http://h/a b"}, "url: expected an address"),
        ({"type": "webhook", "url": "http://h:99999/"}, "url: expected an address"),
        ({"type": "webhook", "url": "http://h", "headers": {"a b": "c"}}, "headers: 'a b' is no name of a header"),
        ({"type": "webhook", "url": "http://h", "headers": {"A": "b\r\nC: d"}}, "headers: the value of A"),
        ({"type": "webhook", "url": "http://h", "headers": {"Host": "x"}}, "headers: Host is set by the action itself"),
        ({"type": "webhook", "url": "http://h", "tries": 0}, "tries: "),
        ({"type": "webhook", "url": "http://h", "timeout_s": float("nan")}, "timeout_s: "),
        ({"type": "console", "rows": "20"}, "rows: "),
        ({"type": "republish", "topic": "a/+"}, "topic: a topic has no wildcards"),
        ({"type": "republish", "topic": "a/${"}, "topic: a column stands in it as ${column}"),
        ({"type": "republish", "topic": "a/${}"}, "topic: a column stands in it as ${column}"),
        ({"type": "republish", "topic": "$SYS/a"}, "topic: $SYS/ and $events/ topics are the node's own"),
        ({"type": "republish", "topic": "a" * 65536}, "topic: a topic has 65535 bytes at most"),
        ({"type": "republish", "topic": "\ud800"}, "topic: a lone surrogate"),
        ({"type": "republish", "topic": "a", "qos": 3}, "qos: "),
        ({"type": "republish", "topic": "a", "retain": 1}, "retain: "),
        ({"type": "console", "fallbacks": [{"type": "console", "fallbacks": [CONSOLE]}]}, "fallbacks: a fallback has"),
    ],
)
def test_what_is_wrong_with_an_action_is_said(action: object, message: str) -> None:
    with pytest.raises(DocumentError) as error:
        parse_action(action)
    assert message in str(error.value)


def test_a_fallback_that_is_nested_deeply_is_not_followed() -> None:
    action: dict[str, Any] = {"type": "console"}
    for _ in range(5_000):
        action = {"type": "console", "fallbacks": [action]}
    with pytest.raises(DocumentError, match="a fallback has no fallbacks of its own"):
        parse_action(action)


def test_the_place_of_what_is_wrong_is_as_it_was_written() -> None:
    wrong = rule(actions=[CONSOLE, {"type": "webhook", "url": "http://h", "headers": {"delta": "ä"}, "tries": "x"}])
    with pytest.raises(DocumentError) as error:
        parse_rule(wrong)
    assert str(error.value).startswith("actions.1.headers: the value of delta has")
    assert "actions.1.tries: " in str(error.value)
    with pytest.raises(ValidationError) as found:
        TypeAdapter(ResourceBody).validate_python({"type": "webhook", "settings": {}})
    assert problems(found.value) == "settings.url: Field required"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "1st"}, "name: a name has letters"),
        ({"name": "a" * 65}, "name: a name has letters"),
        ({"name": "a/b"}, "name: a name has letters"),
        ({"sql": " \n"}, "sql: there is no SQL in it"),
        ({"sql": "ä" * (SQL_BYTES_MAX // 2) + "a"}, f"sql: a rule has {SQL_BYTES_MAX} bytes at most"),
        ({"actions": [CONSOLE] * (ACTIONS_MAX + 1)}, "actions: "),
        ({"actions": [{**CONSOLE, "fallbacks": [CONSOLE] * (FALLBACKS_MAX + 1)}]}, "actions.0.fallbacks: "),
        ({"on_action_failed": "ignore"}, "on_action_failed: "),
        ({"enabled": "yes"}, "enabled: "),
        ({"schema": "a b"}, "schema: a name has letters"),
        ({"description": "x" * (DESCRIPTION_CHARACTERS_MAX + 1)}, "description: "),
        ({"colour": "red"}, "colour: Extra inputs"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentError) as error:
        parse_rule(rule(**fields))
    assert message in str(error.value)


def test_at_its_bounds_a_rule_is_taken() -> None:
    full = rule(
        name="a" * 64,
        sql="s" * SQL_BYTES_MAX,
        actions=[{**CONSOLE, "fallbacks": [CONSOLE] * FALLBACKS_MAX}] * ACTIONS_MAX,
        description="x" * DESCRIPTION_CHARACTERS_MAX,
    )
    assert len(parse_rule(full).actions) == ACTIONS_MAX


def test_a_body_is_a_rule_without_what_the_node_notes() -> None:
    with pytest.raises(ValidationError, match="revision"):
        RuleBody.model_validate({"sql": "s", "revision": 1})


def test_schemas() -> None:
    found = parse_schema({"name": "reading", "kind": "csv", "definition": {"fields": "t double", "separator": ";"}})
    assert parse_schema(found.document()) == found
    with pytest.raises(DocumentError, match="kind: "):
        parse_schema({"name": "reading", "kind": "xml"})
    with pytest.raises(DocumentError, match=f"definition: a definition has {DEFINITION_BYTES_MAX} bytes at most"):
        parse_schema({"name": "reading", "kind": "json", "definition": {"fields": "x" * DEFINITION_BYTES_MAX}})
    for unwritable in ("\ud800", float("nan")):
        with pytest.raises(DocumentError, match="definition: it can't be written as JSON"):
            parse_schema({"name": "reading", "kind": "json", "definition": {"fields": unwritable}})


def test_tables() -> None:
    found = parse_table({"name": "raw", "kind": "bronze", "path": "tables/raw"})
    assert (found.filter, found.format, found.enabled, found.schema_name) == (["#"], "delta", True, None)
    assert parse_table(found.document()) == found
    for fields, message in (
        ({"filter": []}, "filter: "),
        ({"filter": ["a/#/b"]}, "filter.0: # stands alone"),
        ({"filter": ["a"] * (FILTERS_MAX + 1)}, "filter: "),
        ({"format": "csv"}, "format: "),
        ({"kind": "platinum"}, "kind: "),
    ):
        with pytest.raises(DocumentError) as error:
            parse_table({"name": "raw", "kind": "bronze", "path": "x", **fields})
        assert message in str(error.value)


def test_resources() -> None:
    for given in (
        {"name": "db", "type": "postgresql", "settings": {"uri": "postgresql://u@h:5432/d", "password": "p"}},
        {"name": "hook", "type": "webhook", "settings": {"url": "https://h", "token": "t", "headers": {"A": "b"}}},
    ):
        found = parse_resource(given)
        assert found.document()["settings"] == given["settings"]
        assert parse_resource(found.document()) == found
    with pytest.raises(DocumentError, match=r"settings\.uri: expected an address"):
        parse_resource({"name": "db", "type": "postgresql", "settings": {"uri": "host"}})
    with pytest.raises(DocumentError, match=r"settings\.token: a token has visible characters"):
        parse_resource({"name": "db", "type": "webhook", "settings": {"url": "http://h", "token": "a\nb"}})
    with pytest.raises(DocumentError, match=r"settings\.url: Field required"):
        parse_resource({"name": "db", "type": "webhook", "settings": {"uri": "postgresql://h"}})


def test_documents_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        parse_rule(rule()).enabled = False  # type: ignore[misc]


def test_the_union_has_every_model() -> None:
    models = {model.model_fields["type"].default for model in rule_actions._Action.__subclasses__()}
    assert models == set(ACTION_TYPES)
    assert TypeAdapter(Action).json_schema()["discriminator"]["mapping"].keys() == models

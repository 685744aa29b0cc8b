"""Which queries there should be, and what follows from a change of their documents."""

from __future__ import annotations

from typing import Any

import pytest

from brookmq.base.rule_documents import Rule, parse_resource, parse_rule, parse_schema, parse_table
from brookmq.spark.pipeline import wanted
from brookmq.spark.pipeline.documents import Documents, parse_documents
from brookmq.spark.pipeline.wanted import reader_name, reader_names, wanted_queries

SQL = 'SELECT payload.t AS t FROM "a/#"'
CONSOLE = {"type": "console"}


def rule(name: str = "r", **fields: Any) -> dict[str, Any]:
    return {"name": name, "sql": SQL, "actions": [CONSOLE], "created_at": 5.0, "revision": 1, **fields}


def table(name: str = "t", **fields: Any) -> dict[str, Any]:
    return {"name": name, "kind": "silver", "path": "/lake/t", "filter": ["a/#"], "created_at": 5.0, **fields}


def schema(name: str = "s", fields: str = "t double") -> dict[str, Any]:
    return {"name": name, "kind": "json", "definition": {"fields": fields}}


def documents(*found: dict[str, Any], schemas: tuple[dict[str, Any], ...] = (), **others: Any) -> Documents:
    """Rules and tables by what they look like."""
    rules = [one for one in found if "sql" in one]
    return parse_documents(
        {
            "revision": 1,
            "rules": rules,
            "tables": [one for one in found if "sql" not in one],
            "schemas": list(schemas),
            "resources": [],
            **others,
        }
    )


def one(*args: dict[str, Any], **kwargs: Any) -> wanted.WantedQuery:
    (found,) = wanted_queries(documents(*args, **kwargs)).values()
    return found


def test_enabled_rules_and_tables() -> None:
    found = wanted_queries(documents(rule("a"), rule("b", enabled=False), table("c"), table("d", enabled=False)))
    assert list(found) == ["rule/a", "table/c"]
    query = found["rule/a"]
    assert query.problem is None
    assert query.compiled is not None
    assert query.compiled.filters == ("a/#",)
    assert query.begins == 5.0
    assert found["table/c"].begins == "earliest"
    assert found["table/c"].compiled is None
    assert query.wish.version == query.version


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"description": "other"}, {"version"}),
        ({"revision": 2}, {"version"}),
        ({"actions": [{"type": "delta", "path": "/x"}]}, {"version"}),
        ({"sql": 'SELECT payload.u AS u FROM "a/#"'}, {"version", "meaning"}),
        ({"created_at": 6.0}, {"version", "lineage"}),
        ({"schema": "s"}, {"version", "meaning"}),
    ],
)
def test_what_a_change_of_a_rule_means(change: dict[str, Any], differs: set[str]) -> None:
    before, after = one(rule()), one(rule(**change), schemas=(schema(),))
    assert {name for name in ("version", "meaning", "lineage") if getattr(before, name) != getattr(after, name)} == (
        differs
    )


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"description": "other"}, {"version"}),
        ({"filter": ["b"]}, {"version", "meaning"}),
        ({"path": "/lake/u"}, {"version", "lineage"}),
        ({"format": "parquet"}, {"version", "lineage"}),
        ({"created_at": 6.0}, {"version"}),
        ({"schema": "s"}, {"version", "meaning"}),
    ],
)
def test_what_a_change_of_a_table_means(change: dict[str, Any], differs: set[str]) -> None:
    before, after = one(table()), one(table(**change), schemas=(schema(),))
    assert {name for name in ("version", "meaning", "lineage") if getattr(before, name) != getattr(after, name)} == (
        differs
    )


def test_a_change_of_a_schema_changes_what_uses_it() -> None:
    first = one(rule(schema="s"), schemas=(schema(),))
    second = one(rule(schema="s"), schemas=(schema(fields="t double, u string"),))
    assert first.meaning != second.meaning
    assert first.version != second.version
    assert first.lineage == second.lineage


def test_a_change_of_a_resource_changes_what_uses_it() -> None:
    def query(uri: str) -> wanted.WantedQuery:
        action = {"type": "postgresql", "resource": "db", "table": "t"}
        resource = {"name": "db", "type": "postgresql", "settings": {"uri": uri}}
        return one(rule(actions=[CONSOLE | {"fallbacks": [action]}]), resources=[resource])

    first, second = query("postgresql://u@a/x"), query("postgresql://u@b/x")
    assert set(first.resources) == {"db"}
    assert first.version != second.version
    assert first.meaning == second.meaning


def test_what_did_not_change_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wanted_queries(documents(rule("a"), rule("b")))
    monkeypatch.setattr(wanted, "compile_rule", lambda *_: pytest.fail("compiled"))
    after = wanted_queries(documents(rule("a"), table("c")), before)
    assert after["rule/a"] is before["rule/a"]
    assert set(after) == {"rule/a", "table/c"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (rule(sql="SELECT FROM"), "line 1, column"),
        (rule(schema="s"), "there is no schema s"),
        (rule(actions=[{"type": "webhook", "resource": "w"}]), "there is no resource w"),
        (table(schema="s"), "there is no schema s"),
        (table(kind="gold_last", format="parquet"), "use delta"),
    ],
)
def test_a_problem_is_one_of_its_own(document: dict[str, Any], problem: str) -> None:
    found = wanted_queries(documents(document, rule("good")))
    name = f"rule/{document['name']}" if "sql" in document else f"table/{document['name']}"
    assert problem in (found[name].problem or "")
    assert found[name].wish.problem == found[name].problem
    assert found["rule/good"].problem is None


def test_documents_of_a_newer_node() -> None:
    found = documents(rule("a", actions=[{"type": "carrier pigeon"}]), rule("b"), table("c", kind="platinum"))
    assert set(found.rules) == {"b"}
    queries = wanted_queries(found)
    assert "carrier pigeon" in (queries["rule/a"].problem or "")
    assert "can't read the table" in (queries["table/c"].problem or "")
    assert queries["rule/b"].problem is None
    assert reader_names(found) == {"rule.a", "rule.b", "table.c"}


def test_a_schema_that_cannot_be_read_is_named() -> None:
    bad = {"name": "s", "kind": "runes", "definition": {}}
    query = one(rule(schema="s"), schemas=(bad,))
    assert "can't read the schema" in (query.problem or "")


def test_names_of_readers() -> None:
    assert reader_name("rule/a") == "rule.a"
    assert reader_name("table/a.b-c") == "table.a.b-c"
    first, second = reader_name("rule/" + 63 * "x" + "y"), reader_name("rule/" + 64 * "x")
    assert len(first) == len(second) == 64
    assert first != second
    names = reader_names(documents(rule("a", enabled=False), table("a")))
    assert names == {"rule.a", "table.a"}


def test_the_documents_are_those_of_the_node() -> None:
    """The fields that this test writes are those that the node gives out."""
    assert isinstance(parse_rule(rule()), Rule)
    assert parse_table(table()).schema_name is None
    assert parse_schema(schema()).kind == "json"
    resource = parse_resource({"name": "w", "type": "webhook", "settings": {"url": "http://h/"}})
    assert resource.name == "w"

"""Keeping rules: nothing wrong is kept, nothing secret is shown, and what changes meanwhile is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

import pytest
from pydantic import TypeAdapter

from brookmq.base.errors import OperationError
from brookmq.base.pipeline_status import PipelineStatus
from brookmq.base.rule_documents import DocumentError, ResourceBody, RuleBody, SchemaBody, TableBody
from brookmq.base.rule_secrets import HIDDEN
from brookmq.node.rule_view import SLICE
from brookmq.ops.rule_view import DocumentInUseError, PipelineDocuments, RuleRefusedError
from tests.node.rules_world import Rules, unavailable

SQL = 'SELECT payload.t AS t FROM "a/#"'


def rule(sql: str = SQL, **fields: Any) -> RuleBody:
    return RuleBody.model_validate({"sql": sql, **fields})


def schema(fields: str = "t double") -> SchemaBody:
    return SchemaBody.model_validate({"kind": "json", "definition": {"fields": fields}})


def resource(**settings: Any) -> ResourceBody:
    return TypeAdapter(ResourceBody).validate_python(
        {"type": "postgresql", "settings": {"uri": "postgresql://me@host/db", **settings}}
    )


def run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test

    asyncio.run(bounded())


def test_a_rule_is_written_changed_switched_and_forgotten() -> None:
    async def test() -> None:
        rules = Rules()
        found, created = await rules.put_rule("hot", rule())
        assert created
        assert (found.name, found.revision, found.state) == ("hot", 1, "waiting for a pipeline")
        assert found.created_at == found.changed_at > 0
        again, created = await rules.put_rule("hot", rule(description="hot rooms"))
        assert not created
        assert (again.revision, again.created_at) == (2, found.created_at)
        same, _ = await rules.put_rule("hot", rule(description="hot rooms"))
        assert same == again, "nothing changed"
        resting = await rules.enable_rule("hot", enabled=False)
        assert resting is not None
        assert (resting.state, resting.enabled, resting.revision) == ("disabled", False, 3)
        assert await rules.enable_rule("cold", enabled=False) is None
        assert [each.name for each in await rules.rules()] == ["hot"]
        assert await rules.rule("hot") == resting
        reopened = Rules(rules.table.reopened())
        assert await reopened.rule("hot") == resting, "after a start, too"
        assert await rules.delete_rule("hot")
        assert not await rules.delete_rule("hot")
        assert await rules.rule("hot") is None

    run(test())


def test_spark_is_asked_only_where_something_changed_that_it_knows_of() -> None:
    async def test() -> None:
        rules = Rules()
        await rules.put_rule("hot", rule())
        assert [question["kind"] for question in rules.checker.asked] == ["check"]
        rules.checker.failure = unavailable()
        await rules.put_rule("hot", rule(description="x", enabled=False, on_action_failed="stop"))
        await rules.enable_rule("hot", enabled=True)
        for changed in (rule("SELECT 1"), rule(actions=[{"type": "console"}])):
            with pytest.raises(OperationError, match="did not answer"):
                await rules.put_rule("hot", changed)
        found = await rules.rule("hot")
        assert found is not None
        assert (found.sql, found.actions) == (SQL, [])

    run(test())


def test_what_is_wrong_is_not_kept() -> None:
    async def test() -> None:
        rules = Rules()
        with pytest.raises(RuleRefusedError) as error:
            await rules.put_rule("hot", rule("wrong"))
        assert (error.value.line, error.value.column) == (2, 5)
        with pytest.raises(DocumentError, match="name: a name has letters"):
            await rules.put_rule("9", rule())
        with pytest.raises(DocumentError, match="there is no schema reading"):
            await rules.put_rule("hot", rule(schema="reading"))
        with pytest.raises(DocumentError, match="the rule has no column house"):
            await rules.put_rule("hot", rule(actions=[{"type": "republish", "topic": "x/${house}"}]))
        with pytest.raises(RuleRefusedError):
            await rules.put_schema("reading", schema("wrong"))
        assert await rules.rules() == []
        assert await rules.schemas() == []

    run(test())


def test_rules_are_checked_and_tried_without_being_kept() -> None:
    async def test() -> None:
        rules = Rules()
        await rules.put_schema("reading", schema())
        checked = await rules.check_rule(SQL, "reading", [])
        assert [column.name for column in checked.columns] == ["t", "room"]
        tried = await rules.test_rule(SQL, schema("given double"), [{"topic": "a", "payload": ""}])
        assert (tried.rows, tried.matched, tried.failed) == ([{"t": 1.5, "room": "hall"}], 1, 0)
        questions = rules.checker.asked[1:]
        assert questions[0]["schema"] == {"name": "reading", "kind": "json", "definition": {"fields": "t double"}}
        assert questions[1]["schema"]["definition"] == {"fields": "given double"}
        with pytest.raises(DocumentError, match="there is no schema other"):
            await rules.check_rule(SQL, "other", [])
        assert await rules.rules() == []

    run(test())


def test_a_schema_that_changes_while_a_rule_is_looked_at() -> None:
    async def test() -> None:
        rules = Rules()
        await rules.put_schema("reading", schema())
        gate = rules.checker.gate = asyncio.Event()
        writing = asyncio.create_task(rules.put_rule("hot", rule(schema="reading")))
        while len(rules.checker.asked) < 2:  # noqa: ASYNC110 - it is asked in the task
            await asyncio.sleep(0)
        rules.checker.gate = None
        await rules.put_schema("reading", schema("other double"))
        gate.set()
        with pytest.raises(DocumentInUseError, match="the schema reading was changed meanwhile"):
            await writing
        assert await rules.rules() == []

    run(test())


def test_a_rule_that_comes_while_its_schema_is_looked_at() -> None:
    async def test() -> None:
        rules = Rules()
        await rules.put_schema("reading", schema())
        gate = rules.checker.gate = asyncio.Event()
        changing = asyncio.create_task(rules.put_schema("reading", schema("other double")))
        while len(rules.checker.asked) < 2:  # noqa: ASYNC110 - it is asked in the task
            await asyncio.sleep(0)
        rules.checker.gate = None
        await rules.put_rule("hot", rule(schema="reading"))
        gate.set()
        with pytest.raises(DocumentInUseError, match="a rule with the schema reading was written meanwhile"):
            await changing
        await rules.put_schema("reading", schema("other double"))
        assert rules.checker.asked[-1]["rules"] == [{"name": "hot", "sql": SQL}]
        (found,) = await rules.schemas()
        assert (found.used_by, found.revision) == (["rule/hot"], 2)

    run(test())


def test_secrets_are_for_a_pipeline_only() -> None:
    async def test() -> None:
        rules = Rules()
        action = {"type": "postgresql", "uri": "postgresql://me:hush@host/db", "table": "hot"}
        await rules.put_resource("db", resource(password="hush"))
        await rules.put_rule("hot", rule(actions=[action]))
        shown = [*await rules.rules(), *await rules.resources()]
        documents = await rules.documents(secrets=False)
        assert "hush" not in str([shown, documents])
        full = await rules.documents(secrets=True)
        assert full.rules[0].document()["actions"][0]["uri"] == "postgresql://me:hush@host/db"
        assert full.resources[0].document()["settings"]["password"] == "hush"
        seen = (await rules.rules())[0]
        await rules.put_rule("hot", rule(actions=seen.document()["actions"], description="as it was seen"))
        await rules.put_resource("db", resource(password=HIDDEN, uri="postgresql://me@other/db"))
        full = await rules.documents(secrets=True)
        assert "hush" in str(full.rules[0].actions[0])
        assert full.resources[0].document()["settings"] == {"uri": "postgresql://me@other/db", "password": "hush"}
        with pytest.raises(DocumentError, match="write it out"):
            await rules.put_resource("other", resource(password=HIDDEN))

    run(test())


def test_what_a_pipeline_asks_for_again_and_again_is_made_once() -> None:
    async def test() -> None:
        rules = Rules()
        await rules.put_rule("hot", rule())
        first = await rules.documents(secrets=True)
        assert await rules.documents(secrets=True) is first
        assert await rules.documents(secrets=False) is not first
        await rules.enable_rule("hot", enabled=False)
        again = await rules.documents(secrets=True)
        assert again.revision > first.revision
        assert (first.rules[0].enabled, again.rules[0].enabled) == (True, False)
        assert PipelineDocuments.model_validate_json(again.json_bytes) == again

    run(test())


def test_many_rules_are_shown_without_a_stall() -> None:
    async def test() -> None:
        rules = Rules()
        for number in range(3 * SLICE):
            await rules.put_rule(f"rule{number:03}", rule())
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        shown = await rules.rules()
        task.cancel()
        assert [each.name for each in shown] == [f"rule{number:03}" for number in range(3 * SLICE)]
        assert turns >= 3

    run(test())


def test_tables_and_resources_show_how_they_do() -> None:
    async def test() -> None:
        rules = Rules()
        body = TableBody.model_validate({"kind": "bronze", "path": "x"})
        table, created = await rules.put_table("raw", body)
        assert created
        assert table.state == "waiting for a pipeline"
        await rules.put_resource("db", resource())
        assert [each.state for each in await rules.resources()] == ["not used"]
        await rules.put_rule("hot", rule(actions=[{"type": "postgresql", "resource": "db", "table": "hot"}]))
        (db,) = await rules.resources()
        assert (db.state, db.used_by) == ("waiting for a pipeline", ["rule/hot"])
        report = {
            "id": str(uuid4()),
            "master": "m",
            "application": "a",
            "started_at": 1.0,
            "queries": [
                {"name": "rule/hot", "state": "running", "matched": 7},
                {"name": "table/raw", "state": "failed", "message": "no disk"},
            ],
        }
        rules.tell_pipeline_status(PipelineStatus.model_validate(report))
        (db,) = await rules.resources()
        (raw,) = await rules.tables()
        (hot,) = rules.figures()
        assert (db.state, raw.state, raw.message) == ("in use", "failed", "no disk")
        assert hot.statistics is not None
        assert (hot.state, hot.statistics.matched) == ("running", 7)
        report["queries"] = [{"name": "rule/hot", "state": "waiting", "message": "no connection"}]
        rules.tell_pipeline_status(PipelineStatus.model_validate(report))
        assert [each.state for each in await rules.resources()] == ["failing"]
        resting = await rules.enable_table("raw", enabled=False)
        assert resting is not None
        assert (resting.state, resting.revision) == ("disabled", 2)
        with pytest.raises(DocumentInUseError):
            await rules.delete_resource("db")
        assert await rules.delete_table("raw")
        assert not await rules.delete_table("raw")
        assert not await rules.delete_schema("none")

    run(test())


def test_a_node_that_starts_does_not_look_as_if_it_had_no_rules() -> None:
    async def test() -> None:
        rules = Rules(wait_s=0.1)
        rules.storage.trouble = "no connection"
        assert rules.figures() == []
        with pytest.raises(OperationError, match="not known yet: no connection"):
            await rules.documents(secrets=True)
        rules.storage.trouble = ""
        assert (await rules.documents(secrets=True)).rules == []
        rules.storage.deposed = True
        rules.storage.trouble = "another node has the store"
        with pytest.raises(OperationError, match="can't be had here: another node"):
            await rules.put_rule("hot", rule())

    run(test())


def test_a_store_that_does_not_answer() -> None:
    async def test() -> None:
        rules = Rules(wait_s=0.1)
        await rules.rules()
        rules.table.hold()
        with pytest.raises(OperationError, match="the store does not answer"):
            await rules.put_rule("hot", rule())

    run(test())

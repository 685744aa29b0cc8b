"""Rules, schemas, tables and resources as operations see them: the interface of ``ops.rule_view``.

What is kept is right: a rule was compiled and looked at by Spark, a schema was read, before they are. That takes time,
in which somebody else may change what it depends on; so this is looked at again when the time has come to keep it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from pydantic import TypeAdapter

from brookmq.base.errors import OperationError
from brookmq.base.pipeline_status import TABLE_QUERY, PipelineStatus
from brookmq.base.rule_documents import (
    Action,
    Resource,
    ResourceBody,
    Rule,
    RuleBody,
    SchemaBody,
    SchemaDocument,
    TableBody,
    TableDocument,
    parse_resource,
    parse_rule,
)
from brookmq.base.rule_secrets import restored
from brookmq.node.noting import NOTED, asked, meaning, noted, same, shown
from brookmq.node.pipeline_health import WAITING, PipelineHealth
from brookmq.node.rule_book import RuleBook
from brookmq.node.rule_columns import check_columns
from brookmq.node.shelf import Named
from brookmq.ops.rule_view import (
    CheckedRule,
    DocumentInUseError,
    PipelineDocuments,
    PipelineInfo,
    ResourceInfo,
    RuleFigures,
    RuleInfo,
    SchemaInfo,
    TableInfo,
    TriedRule,
)

LOOK_S: Final = 0.02
SLICE: Final = 20  # rules that are shown in one go, some 2 ms
_RESOURCE_INFO: Final[TypeAdapter[ResourceInfo]] = TypeAdapter(ResourceInfo)

Kept = TypeVar("Kept", bound=Named)
Store = Callable[[Callable[[], None]], object]


class Checker(Protocol):
    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]: ...


class Usable(Protocol):
    """The store, as far as it is asked here."""

    @property
    def deposed(self) -> bool: ...

    @property
    def trouble(self) -> str: ...


class RuleFacts:
    """``wait_s`` is how long what needs the store waits for it."""

    def __init__(self, storage: Usable, wait_s: float, checker: Checker, health: PipelineHealth) -> None:
        self.book: RuleBook | None = None  # once what the node keeps is open
        self._storage = storage
        self._wait_s = wait_s
        self._checker = checker
        self._health = health
        self._documents: dict[bool, PipelineDocuments] = {}  # with and without secrets, of the last revision asked for

    # -- the pipeline

    def pipeline_status(self) -> PipelineInfo:
        return self._health.told()

    def tell_pipeline_status(self, status: PipelineStatus) -> None:
        self._health.tell(status)

    async def documents(self, *, secrets: bool) -> PipelineDocuments:
        book = await self._loaded()
        known = self._documents.get(secrets)
        if known is None or known.revision != book.revision:
            known = self._documents[secrets] = self._all_documents(book, secrets=secrets)
        return known

    @staticmethod
    def _all_documents(book: RuleBook, *, secrets: bool) -> PipelineDocuments:
        rules, resources = book.rules.all(), book.resources.all()
        if not secrets:
            rules = [parse_rule(shown(rule)) for rule in rules]
            resources = [parse_resource(shown(resource)) for resource in resources]
        return PipelineDocuments(
            revision=book.revision,
            rules=rules,
            schemas=book.schemas.all(),
            tables=book.tables.all(),
            resources=resources,
        )

    # -- rules

    def figures(self) -> Sequence[RuleFigures]:
        book = self.book
        if book is None or not book.loaded:
            return []
        states = ((rule.name, self._health.state_of_rule(rule)) for rule in book.rules.all())
        return [RuleFigures(name, state, statistics) for name, (state, _, statistics) in states]

    async def rules(self) -> Sequence[RuleInfo]:
        found = []
        for number, rule in enumerate((await self._loaded()).rules.all(), 1):
            found.append(self._rule_info(rule))
            if number % SLICE == 0:
                await asyncio.sleep(0)  # others have their turn
        return found

    async def rule(self, name: str) -> RuleInfo | None:
        rule = (await self._loaded()).rules.get(name)
        return None if rule is None else self._rule_info(rule)

    async def put_rule(self, name: str, body: RuleBody) -> tuple[RuleInfo, bool]:
        book = await self._loaded()
        before = book.rules.get(name)
        fields = body.document()
        fields["actions"] = restored(fields["actions"], None if before is None else before.document()["actions"])
        rule = parse_rule(noted(name, fields, before))
        schema = book.check_schema(rule.schema_name)
        book.check_resources(rule.actions)
        if before is None or meaning(rule) != meaning(before):
            await self._looked_at(rule.sql, schema, rule.actions)
            if book.check_schema(rule.schema_name) is not schema:
                raise DocumentInUseError(f"the schema {rule.schema_name} was changed meanwhile; try again")
            rule = parse_rule(noted(name, fields, before := book.rules.get(name)))
        if before is None or not same(before, rule):
            await self._stored(lambda done: book.put_rule(rule, done))
        return self._rule_info(book.rules.get(name) or rule), before is None

    async def enable_rule(self, name: str, *, enabled: bool) -> RuleInfo | None:
        book = await self._loaded()
        before = book.rules.get(name)
        if before is None:
            return None
        rule = parse_rule(noted(name, {**before.document(), "enabled": enabled}, before))
        if rule.enabled != before.enabled:
            await self._stored(lambda done: book.put_rule(rule, done))
        return self._rule_info(book.rules.get(name) or rule)

    async def delete_rule(self, name: str) -> bool:
        book = await self._loaded()
        return book.rules.get(name) is not None and await self._stored(lambda done: book.rules.remove(name, done))

    async def check_rule(self, sql: str, schema: str | SchemaBody | None, actions: Sequence[Action]) -> CheckedRule:
        book = await self._loaded()
        book.check_resources(actions)
        return await self._looked_at(sql, self._schema(book, schema), actions)

    async def test_rule(
        self, sql: str, schema: str | SchemaBody | None, messages: Sequence[dict[str, Any]]
    ) -> TriedRule:
        found = self._schema(await self._loaded(), schema)
        answer = await self._checker.ask(
            {"kind": "test", "sql": sql, "schema": asked(found), "messages": list(messages)}
        )
        return TriedRule.model_validate(answer)

    async def _looked_at(self, sql: str, schema: SchemaDocument | None, actions: Sequence[Action]) -> CheckedRule:
        found = CheckedRule.model_validate(
            await self._checker.ask({"kind": "check", "sql": sql, "schema": asked(schema)})
        )
        check_columns(actions, {column.name: column.type for column in found.columns})
        return found

    @staticmethod
    def _schema(book: RuleBook, schema: str | SchemaBody | None) -> SchemaDocument | None:
        if isinstance(schema, SchemaBody):
            return SchemaDocument.model_validate({"name": "given", **schema.document()})
        return book.check_schema(schema)

    def _rule_info(self, rule: Rule) -> RuleInfo:
        state, message, statistics = self._health.state_of_rule(rule)
        return RuleInfo(**shown(rule), state=state, message=message, statistics=statistics)

    # -- schemas

    async def schemas(self) -> Sequence[SchemaInfo]:
        book = await self._loaded()
        return [self._schema_info(book, schema) for schema in book.schemas.all()]

    async def put_schema(self, name: str, body: SchemaBody) -> tuple[SchemaInfo, bool]:
        book = await self._loaded()
        before = book.schemas.get(name)
        schema = SchemaDocument.model_validate(noted(name, body.document(), before))
        if before is None or (before.kind, before.definition) != (schema.kind, schema.definition):
            users = [rule for rule in book.rules.all() if rule.schema_name == name]
            rules = [{"name": rule.name, "sql": rule.sql} for rule in users]
            await self._checker.ask({"kind": "schema", "schema": asked(schema), "rules": rules})
            if any(rule.schema_name == name and rule not in users for rule in book.rules.all()):
                raise DocumentInUseError(f"a rule with the schema {name} was written meanwhile; try again")
            schema = SchemaDocument.model_validate(noted(name, body.document(), before := book.schemas.get(name)))
        if before is None or not same(before, schema):
            await self._stored(lambda done: book.put_schema(schema, done))
        return self._schema_info(book, book.schemas.get(name) or schema), before is None

    async def delete_schema(self, name: str) -> bool:
        book = await self._loaded()
        return book.schemas.get(name) is not None and await self._stored(lambda done: book.remove_schema(name, done))

    @staticmethod
    def _schema_info(book: RuleBook, schema: SchemaDocument) -> SchemaInfo:
        return SchemaInfo(**schema.document(), used_by=book.users_of_schema(schema.name))

    # -- tables

    async def tables(self) -> Sequence[TableInfo]:
        return [self._table_info(table) for table in (await self._loaded()).tables.all()]

    async def put_table(self, name: str, body: TableBody) -> tuple[TableInfo, bool]:
        book = await self._loaded()
        before = book.tables.get(name)
        table = TableDocument.model_validate(noted(name, body.document(), before))
        if before is None or not same(before, table):
            await self._stored(lambda done: book.put_table(table, done))
        return self._table_info(book.tables.get(name) or table), before is None

    async def enable_table(self, name: str, *, enabled: bool) -> TableInfo | None:
        before = (await self._loaded()).tables.get(name)
        if before is None:
            return None
        fields = {key: value for key, value in before.document().items() if key not in {"name", *NOTED}}
        return (await self.put_table(name, TableBody.model_validate({**fields, "enabled": enabled})))[0]

    async def delete_table(self, name: str) -> bool:
        book = await self._loaded()
        return book.tables.get(name) is not None and await self._stored(lambda done: book.tables.remove(name, done))

    def _table_info(self, table: TableDocument) -> TableInfo:
        state, message, statistics = self._health.state_of(TABLE_QUERY, table.name, enabled=table.enabled)
        return TableInfo(**table.document(), state=state, message=message, statistics=statistics)

    # -- resources

    async def resources(self) -> Sequence[ResourceInfo]:
        book = await self._loaded()
        return [self._resource_info(book, resource) for resource in book.resources.all()]

    async def put_resource(self, name: str, body: ResourceBody) -> tuple[ResourceInfo, bool]:
        book = await self._loaded()
        before = book.resources.get(name)
        fields = body.document()
        fields["settings"] = restored(fields["settings"], None if before is None else before.document()["settings"])
        resource = parse_resource(noted(name, fields, before))
        if before is None or not same(before, resource):
            await self._stored(lambda done: book.put_resource(resource, done))
        return self._resource_info(book, book.resources.get(name) or resource), before is None

    async def delete_resource(self, name: str) -> bool:
        book = await self._loaded()
        there = book.resources.get(name) is not None
        return there and await self._stored(lambda done: book.remove_resource(name, done))

    def _resource_info(self, book: RuleBook, resource: Resource) -> ResourceInfo:
        users = book.users_of_resource(resource.name)
        queries = [query for name in users if (query := self._health.query(name)) is not None]
        failing = any(query.message is not None and query.state != "running" for query in queries)
        used = "failing" if failing else "in use" if self._health.alive else WAITING
        state = used if users else "not used"
        return _RESOURCE_INFO.validate_python({**shown(resource), "used_by": users, "state": state})

    # -- the store

    async def _loaded(self) -> RuleBook:
        """Once it is known: a node that starts needs a moment, and must not look as if there were no rules."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_s
        while (book := self.book) is None or not book.loaded:
            if loop.time() > deadline:
                raise OperationError(f"the rules are not known yet: {self._storage.trouble or 'they are being loaded'}")
            await asyncio.sleep(LOOK_S)
        if self._storage.deposed:
            raise OperationError(f"the rules can't be had here: {self._storage.trouble}")
        return book

    async def _stored(self, change: Store) -> bool:
        stored = asyncio.get_running_loop().create_future()
        change(lambda: None if stored.done() else stored.set_result(None))
        try:
            async with asyncio.timeout(self._wait_s):
                await stored
        except TimeoutError:
            raise OperationError("it could not be stored: the store does not answer") from None
        return True

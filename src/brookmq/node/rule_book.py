"""What a pipeline shall do, as people have said: rules, schemas, declared tables, resources.

What refers to another document needs it: nothing is kept that names what is not there, and what is named is not
removed. Whoever wants to know whether something has changed looks at ``revision``: it begins with the node's time, so
that it is never the same again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from brookmq.base.rule_documents import (
    RESOURCES_MAX,
    RULES_MAX,
    SCHEMAS_MAX,
    TABLES_MAX,
    Action,
    DocumentError,
    PostgresqlAction,
    Resource,
    Rule,
    SchemaDocument,
    TableDocument,
    WebhookAction,
    parse_resource,
    parse_rule,
    parse_schema,
    parse_table,
)
from brookmq.node.shelf import Named, Shelf
from brookmq.ops.rule_view import DocumentInUseError, TooManyDocumentsError
from brookmq.store.pipeline_record import RESOURCE_KEY, RULE_KEY, SCHEMA_KEY, TABLE_KEY
from brookmq.store.table.states import KeyedStates

BYTES_MAX: Final = 16 * 1024 * 1024  # of all documents of a kind: a listing has to be made in one go

Kept = TypeVar("Kept", bound=Named)


class RuleBook:
    """All of it is there once ``loaded``; nothing can be asked before."""

    def __init__(self, states: KeyedStates) -> None:
        self.loaded = False
        self.revision = time.time_ns() // 1000
        self.rules: Shelf[Rule] = Shelf(states, RULE_KEY, "rule", parse_rule, self._changed)
        self.schemas: Shelf[SchemaDocument] = Shelf(states, SCHEMA_KEY, "schema", parse_schema, self._changed)
        self.tables: Shelf[TableDocument] = Shelf(states, TABLE_KEY, "table", parse_table, self._changed)
        self.resources: Shelf[Resource] = Shelf(states, RESOURCE_KEY, "resource", parse_resource, self._changed)
        states.when_loaded(self._load)

    # -- changes

    def put_rule(self, rule: Rule, done: Callable[[], None]) -> None:
        self.check_schema(rule.schema_name)
        self.check_resources(rule.actions)
        self._put(self.rules, rule, RULES_MAX, done)

    def put_schema(self, schema: SchemaDocument, done: Callable[[], None]) -> None:
        self._put(self.schemas, schema, SCHEMAS_MAX, done)

    def put_table(self, table: TableDocument, done: Callable[[], None]) -> None:
        self.check_schema(table.schema_name)
        self._put(self.tables, table, TABLES_MAX, done)

    def put_resource(self, resource: Resource, done: Callable[[], None]) -> None:
        before = self.resources.get(resource.name)
        if before is not None and before.type != resource.type and (users := self.users_of_resource(resource.name)):
            raise DocumentInUseError(f"the resource {resource.name} is {before.type} for {_listed(users)}")
        self._put(self.resources, resource, RESOURCES_MAX, done)

    def remove_schema(self, name: str, done: Callable[[], None]) -> bool:
        if users := self.users_of_schema(name):
            raise DocumentInUseError(f"the schema {name} is used by {_listed(users)}")
        return self.schemas.remove(name, done)

    def remove_resource(self, name: str, done: Callable[[], None]) -> bool:
        if users := self.users_of_resource(name):
            raise DocumentInUseError(f"the resource {name} is used by {_listed(users)}")
        return self.resources.remove(name, done)

    # -- what refers to what

    def check_schema(self, name: str | None) -> SchemaDocument | None:
        """The schema of this name; DocumentError when there is none."""
        found = None if name is None else self.schemas.get(name)
        if name is not None and found is None:
            raise DocumentError(f"schema: there is no schema {name}")
        return found

    def check_resources(self, actions: Sequence[Action]) -> None:
        """DocumentError when an action names a resource that is not there, or of another type."""
        for action in _with_resources(actions):
            assert action.resource is not None
            found = self.resources.get(action.resource)
            if found is None:
                raise DocumentError(f"actions: there is no resource {action.resource}")
            if found.type != action.type:
                raise DocumentError(f"actions: the resource {action.resource} is {found.type}, not {action.type}")

    def users_of_schema(self, name: str) -> list[str]:
        """``rule/NAME`` and ``table/NAME`` of those that have this schema."""
        rules = [f"rule/{rule.name}" for rule in self.rules.all() if rule.schema_name == name]
        return rules + [f"table/{table.name}" for table in self.tables.all() if table.schema_name == name]

    def users_of_resource(self, name: str) -> list[str]:
        return [
            f"rule/{rule.name}"
            for rule in self.rules.all()
            if any(action.resource == name for action in _with_resources(rule.actions))
        ]

    def _put(self, shelf: Shelf[Kept], document: Kept, most: int, done: Callable[[], None]) -> None:
        if shelf.get(document.name) is None and len(shelf) >= most:
            raise TooManyDocumentsError(f"there are {most} {shelf.noun}s already")
        if shelf.size(document) > BYTES_MAX:
            raise TooManyDocumentsError(f"all {shelf.noun}s together have {BYTES_MAX} bytes at most")
        shelf.put(document, done)

    def _load(self) -> None:
        for shelf in (self.rules, self.schemas, self.tables, self.resources):
            shelf.load()
        self.loaded = True

    def _changed(self) -> None:
        self.revision += 1


def _with_resources(actions: Sequence[Action]) -> Iterator[PostgresqlAction | WebhookAction]:
    for action in actions:
        yield from (
            each
            for each in (action, *action.fallbacks)
            if isinstance(each, PostgresqlAction | WebhookAction) and each.resource is not None
        )


def _listed(names: Sequence[str]) -> str:
    """The first few of them."""
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"

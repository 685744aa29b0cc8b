"""Rules and what belongs to them: there again after a start, whole before anybody asks, never with a part missing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from brookmq.base.rule_documents import DocumentError, parse_resource, parse_rule, parse_schema, parse_table
from brookmq.node import rule_book as rule_book_module
from brookmq.node.rule_book import RuleBook
from brookmq.ops.rule_view import DocumentInUseError, TooManyDocumentsError
from brookmq.store.memory_table import MemoryTable
from brookmq.store.pipeline_record import RULE_KEY, encode_document
from brookmq.store.table.states import KeyedStates

DB = {"name": "db", "type": "postgresql", "settings": {"uri": "postgresql://me@host/db"}}
INSERT = {"type": "postgresql", "resource": "db", "table": "hot"}


class World:
    def __init__(self, table: MemoryTable | None = None) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.table = table or MemoryTable(self.soon.append)
        self.table._call_soon = self.soon.append
        self.states = KeyedStates(self.table, self.soon.append)
        self.book = RuleBook(self.states)
        self.stored = 0
        self.states.begin()

    def settle(self) -> None:
        while self.soon:
            self.soon.popleft()()

    def done(self) -> None:
        self.stored += 1

    def reopened(self) -> World:
        return World(self.table.reopened())

    def rule(self, name: str = "hot", **fields: Any) -> None:
        self.book.put_rule(parse_rule({"name": name, "sql": "s", **fields}), self.done)


@pytest.fixture
def world() -> World:
    made = World()
    made.settle()
    return made


def test_nothing_is_known_before_all_is(world: World) -> None:
    world.rule()
    world.book.put_schema(parse_schema({"name": "reading", "kind": "text"}), world.done)
    world.book.put_table(parse_table({"name": "raw", "kind": "bronze", "path": "x"}), world.done)
    world.book.put_resource(parse_resource(DB), world.done)
    assert world.stored == 0
    world.settle()
    assert world.stored == 4
    again = world.reopened()
    assert not again.book.loaded
    again.settle()
    assert again.book.loaded
    assert [document.name for document in again.book.rules.all()] == ["hot"]
    assert again.book.rules.all() == world.book.rules.all()
    assert again.book.schemas.all() == world.book.schemas.all()
    assert again.book.tables.all() == world.book.tables.all()
    assert again.book.resources.all() == world.book.resources.all()


def test_each_change_has_a_revision_of_its_own(world: World) -> None:
    seen = {world.book.revision}
    for name in ("hot", "cold", "hot"):
        world.rule(name)
        seen.add(world.book.revision)
    assert world.book.rules.remove("hot", world.done)
    seen.add(world.book.revision)
    assert not world.book.rules.remove("hot", world.done)
    assert world.book.revision == max(seen)
    assert len(seen) == 5
    world.settle()
    assert world.reopened().book.revision > max(seen), "not even after a start"


def test_what_somebody_else_changes_is_seen(world: World) -> None:
    """A backup is read into the table itself."""
    before = world.book.revision
    world.states.put(RULE_KEY + b"other", encode_document({"name": "other", "sql": "s"}))
    assert [rule.name for rule in world.book.rules.all()] == ["other"]
    assert world.book.revision > before
    world.states.clear()
    assert world.book.rules.all() == []
    assert world.book.rules.bytes == 0


def test_what_cannot_be_read_is_left_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.rule()
    world.states.put(RULE_KEY + b"newer", encode_document({"name": "newer", "sql": "s", "colour": "red"}))
    world.states.put(RULE_KEY + b"broken", b"\x01{")
    world.settle()
    again = world.reopened()
    again.settle()
    assert [rule.name for rule in again.book.rules.all()] == ["hot"]
    assert "the rule newer can't be read, and is left alone: colour: Extra inputs are not permitted" in caplog.text
    assert "the rule broken can't be read" in caplog.text
    assert len(again.states.items(RULE_KEY)) == 3


def test_what_is_named_has_to_be_there(world: World) -> None:
    with pytest.raises(DocumentError, match="there is no schema reading"):
        world.rule(schema="reading")
    with pytest.raises(DocumentError, match="there is no schema reading"):
        world.book.put_table(
            parse_table({"name": "raw", "kind": "silver", "path": "x", "schema": "reading"}), world.done
        )
    with pytest.raises(DocumentError, match="there is no resource db"):
        world.rule(actions=[INSERT])
    with pytest.raises(DocumentError, match="there is no resource db"):
        world.rule(actions=[{"type": "console", "fallbacks": [INSERT]}])
    world.book.put_resource(
        parse_resource({"name": "db", "type": "webhook", "settings": {"url": "http://h"}}), world.done
    )
    with pytest.raises(DocumentError, match="the resource db is webhook, not postgresql"):
        world.rule(actions=[INSERT])
    assert world.book.rules.all() == []


def test_what_is_named_stays(world: World) -> None:
    book = world.book
    book.put_schema(parse_schema({"name": "reading", "kind": "text"}), world.done)
    book.put_resource(parse_resource(DB), world.done)
    world.rule(schema="reading", actions=[{"type": "console", "fallbacks": [INSERT]}])
    book.put_table(parse_table({"name": "raw", "kind": "silver", "path": "x", "schema": "reading"}), world.done)
    with pytest.raises(DocumentInUseError, match="the schema reading is used by rule/hot, table/raw"):
        book.remove_schema("reading", world.done)
    with pytest.raises(DocumentInUseError, match="the resource db is used by rule/hot"):
        book.remove_resource("db", world.done)
    with pytest.raises(DocumentInUseError, match="the resource db is postgresql for rule/hot"):
        book.put_resource(
            parse_resource({"name": "db", "type": "webhook", "settings": {"url": "http://h"}}), world.done
        )
    assert book.rules.remove("hot", world.done)
    assert book.tables.remove("raw", world.done)
    assert book.remove_schema("reading", world.done)
    assert book.remove_resource("db", world.done)
    assert not book.remove_resource("db", world.done)


def test_documents_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_book_module, "RULES_MAX", 2)
    world.rule("a")
    world.rule("b")
    world.rule("a", description="again")
    with pytest.raises(TooManyDocumentsError, match="there are 2 rules already"):
        world.rule("c")
    monkeypatch.setattr(rule_book_module, "BYTES_MAX", world.book.rules.bytes + 10)
    world.rule("a", description="again and a")
    with pytest.raises(TooManyDocumentsError, match="all rules together"):
        world.rule("a", description="again and again and again")
    assert world.book.rules.remove("b", world.done)
    world.rule("a", description="again and again and again")

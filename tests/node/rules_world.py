"""Rules over a table in memory, with a rule checker that answers what a test has put there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from brookmq.base.errors import OperationError
from brookmq.node.pipeline_health import PipelineHealth
from brookmq.node.rule_book import RuleBook
from brookmq.node.rule_view import RuleFacts
from brookmq.ops.rule_view import RuleRefusedError
from brookmq.store.memory_table import MemoryTable
from brookmq.store.table.states import KeyedStates

COLUMNS = [{"name": "t", "type": "double"}, {"name": "room", "type": "string"}]


class ScriptedChecker:
    """Refuses SQL with ``wrong`` in it, and schemas with ``wrong`` in their definition; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None  # it answers when this is set

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(question)
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if "wrong" in question.get("sql", ""):
            raise RuleRefusedError("what is this?", 2, 5)
        if "wrong" in str(question.get("schema")):
            raise RuleRefusedError("schema reading: what is this?")
        if question["kind"] == "schema":
            return {"id": 1}
        found = {"id": 1, "columns": COLUMNS, "filters": ["a/#"]}
        if question["kind"] == "test":
            found |= {"rows": [{"t": 1.5, "room": "hall"}], "matched": len(question["messages"]), "failed": 0}
        return found


class Storage:
    """The store, as far as rules ask."""

    deposed = False
    trouble = ""


class Rules(RuleFacts):
    """Loaded when it is first asked: then there is a loop."""

    def __init__(self, table: MemoryTable | None = None, wait_s: float = 5.0) -> None:
        self.storage = Storage()
        self.checker = ScriptedChecker()
        self.health = PipelineHealth()
        self.table = table or MemoryTable(_soon)
        super().__init__(self.storage, wait_s, self.checker, self.health)

    async def _loaded(self) -> RuleBook:
        if self.book is None and not self.storage.trouble:
            self.table._call_soon = _soon
            states = KeyedStates(self.table, _soon)
            self.book = RuleBook(states)
            states.begin()
        return await super()._loaded()


def _soon(callback: Any) -> object:
    return asyncio.get_running_loop().call_soon(callback)


def unavailable(text: str = "the rule checker did not answer") -> OperationError:
    return OperationError(text)

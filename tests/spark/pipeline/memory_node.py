"""A node for the parts of a pipeline that ask one: answers from memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brookmq.base.rule_documents import TableDocument, parse_table
from brookmq.spark.node_client import JournalFacts, Shard
from brookmq.spark.pipeline.documents import Documents, PipelineNode, ReaderFacts
from brookmq.spark.positions import Position


@dataclass
class MemoryNode(PipelineNode):
    """``trouble`` is raised instead of an answer."""

    known: Documents = field(default_factory=lambda: Documents(1))
    journal_id: str = "journal"
    firsts: Position = field(default_factory=lambda: {0: 3, 1: 4})
    ends: Position = field(default_factory=lambda: {0: 30, 1: 40})
    times: dict[float, Position] = field(default_factory=dict)
    found_readers: dict[str, ReaderFacts] = field(default_factory=dict)
    found_tables: dict[str, TableDocument] = field(default_factory=dict)
    told: list[Mapping[str, Any]] = field(default_factory=list)
    trouble: Exception | None = None
    closed: bool = False

    def _ask(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def documents(self, known: Documents | None = None) -> Documents:
        self._ask()
        return self.known

    def journal(self) -> JournalFacts:
        self._ask()
        shards = tuple(Shard(number, f"j{number}", self.firsts[number], self.ends[number]) for number in self.firsts)
        return JournalFacts(self.journal_id, "node", shards, None)

    def at_time(self, moment: float) -> Position:
        self._ask()
        return self.times[moment]

    def readers(self) -> dict[str, ReaderFacts]:
        self._ask()
        return dict(self.found_readers)

    def drop_reader(self, name: str) -> None:
        self._ask()
        del self.found_readers[name]

    def put_status(self, status: Mapping[str, Any]) -> None:
        self._ask()
        self.told.append(status)

    def tables(self) -> dict[str, TableDocument]:
        return dict(self.found_tables)

    def put_table(self, name: str, body: Mapping[str, Any]) -> None:
        self.found_tables[name] = parse_table({**body, "name": name, "created_at": 1.0, "revision": 1})

    def close(self) -> None:
        self.closed = True

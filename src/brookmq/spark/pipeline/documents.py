"""What a pipeline asks its node: the documents of all that should run, and where readers are; and what it tells it.

A document that can't be read (a node of a newer version may know more) is a problem of that one, not of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from brookmq.base.rule_documents import (
    DocumentError,
    Resource,
    Rule,
    SchemaDocument,
    TableDocument,
    parse_resource,
    parse_rule,
    parse_schema,
    parse_table,
)
from brookmq.spark.node_client import JournalFacts, NodeClient
from brookmq.spark.positions import Position

RULE = "rule"
TABLE = "table"

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Documents:
    """All that a pipeline needs. ``revision`` changes with every change of them; ``problems``: what can't be read, by
    the name of its query or, for schemas and resources, by ``schema/NAME`` and ``resource/NAME``."""

    revision: int
    rules: Mapping[str, Rule] = field(default_factory=dict)
    tables: Mapping[str, TableDocument] = field(default_factory=dict)
    schemas: Mapping[str, SchemaDocument] = field(default_factory=dict)
    resources: Mapping[str, Resource] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """How far a reader was, and when it was heard of."""

    position: Position
    seen_at: float


def parse_documents(answer: Mapping[str, Any]) -> Documents:
    """The documents in a node's answer. Raises LookupError, TypeError or ValueError if it is no such answer."""
    problems: dict[str, str] = {}
    return Documents(
        int(answer["revision"]),
        _read(answer["rules"], parse_rule, RULE, problems),
        _read(answer["tables"], parse_table, TABLE, problems),
        _read(answer["schemas"], parse_schema, "schema", problems),
        _read(answer["resources"], parse_resource, "resource", problems),
        problems,
    )


def _read(
    found: Sequence[Mapping[str, Any]], parse: Callable[[object], Kept], kind: str, problems: dict[str, str]
) -> dict[str, Kept]:
    kept: dict[str, Kept] = {}
    for one in found:
        name = str(one["name"])
        try:
            kept[name] = parse(one)
        except DocumentError as error:
            problems[f"{kind}/{name}"] = f"this pipeline can't read the {kind}: {error}"
    return kept


class PipelineNode:
    """The node of a pipeline, for one thread."""

    def __init__(self, servers: Sequence[str], token: str | None, *, patience_s: float = 0.0) -> None:
        self._client = NodeClient(servers, token)
        self._client.patience_s = patience_s

    def documents(self, known: Documents | None = None) -> Documents:
        """What there is now; ``known`` itself, if it still is that."""
        answer = self._client.ask("GET", "/pipeline?secrets=true")
        try:
            if known is not None and answer["revision"] == known.revision:
                return known
            return parse_documents(answer)
        except (AttributeError, LookupError, TypeError, ValueError):
            raise ValueError("brookmq: the node's answer to /api/v1/pipeline is not one of this version") from None

    def journal(self) -> JournalFacts:
        return self._client.journal()

    def capture(self) -> list[str]:
        """The filters of what the node keeps in its journal."""
        return [str(filter) for filter in self._client.ask("GET", "/journal")["capture"]]

    def at_time(self, moment: float) -> Position:
        return self._client.at_time(moment)

    def reader(self, name: str) -> ReaderFacts | None:
        """A reader; None if the node does not know it."""
        return self.readers().get(name)

    def readers(self) -> dict[str, ReaderFacts]:
        """All readers by name."""
        return {
            str(one["name"]): ReaderFacts(
                {int(shard): int(offset) for shard, offset in one["position"].items()}, float(one["seen_at"] or 0.0)
            )
            for one in self._client.ask("GET", "/readers")
        }

    def drop_reader(self, name: str) -> None:
        with suppress(LookupError):  # somebody else has
            self._client.ask("DELETE", f"/readers/{quote(name, safe='')}")

    def status(self) -> dict[str, Any]:
        """What the pipeline of this node told last."""
        return dict(self._client.ask("GET", "/pipeline/status"))

    def put_status(self, status: Mapping[str, Any]) -> None:
        self._client.ask("PUT", "/pipeline/status", status)

    def tables(self) -> dict[str, TableDocument]:
        return dict(self.documents().tables)

    def put_table(self, name: str, body: Mapping[str, Any]) -> None:
        self._client.ask("PUT", f"/tables/{quote(name, safe='')}", body)

    def close(self) -> None:
        self._client.close()

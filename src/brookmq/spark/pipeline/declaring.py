"""``brookmq pipeline init``: the ready tables, declared at the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from brookmq.base.errors import OperationError
from brookmq.base.rule_documents import TableBody, TableDocument

KINDS: Final = ("bronze", "silver", "gold_last", "gold_minute")
DESCRIPTIONS: Final = {
    "bronze": "messages as they came",
    "silver": "messages decoded",
    "gold_last": "the last message of each device and topic",
    "gold_minute": "count, smallest, largest and mean of each number, by minute",
}


class TableNode(Protocol):
    """What is asked of the node."""

    def tables(self) -> dict[str, TableDocument]: ...

    def put_table(self, name: str, body: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the user asked for."""

    filters: Sequence[str]
    folder: Path
    schema: str | None
    format: str
    prefix: str = ""
    replace: bool = False


def bodies(wanted: Declaration) -> dict[str, dict[str, Any]]:
    """The documents of the four tables, by name. Last values are a Delta table whatever the others are."""
    found = {}
    for kind in KINDS:
        name = wanted.prefix + kind
        body = TableBody.model_validate(
            {
                "kind": kind,
                "filter": list(wanted.filters),
                "schema": None if kind == "bronze" else wanted.schema,
                "path": str(wanted.folder.absolute() / name),
                "format": "delta" if kind == "gold_last" else wanted.format,
                "description": DESCRIPTIONS[kind],
            }
        )
        found[name] = body.document()
    return found


def declare(node: TableNode, wanted: Declaration) -> dict[str, dict[str, Any]]:
    """Declares the tables. Another one of the same name is left alone, unless it should be replaced."""
    found = bodies(wanted)
    known = node.tables()
    for name, body in found.items():
        before = known.get(name)
        if before is not None and not wanted.replace and _body(before) != body:
            raise OperationError(
                f"there is another table {name} ({before.kind} at {before.path}); take --replace to change it, or "
                "--prefix for tables beside it"
            )
    for name, body in found.items():
        node.put_table(name, body)
    return found


def _body(table: TableDocument) -> dict[str, Any]:
    return {name: value for name, value in table.document().items() if name in _FIELDS}


_FIELDS: Final = frozenset({"kind", "filter", "schema", "path", "format", "enabled", "description"})

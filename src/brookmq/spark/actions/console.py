"""The first rows of each batch as a table in the terminal: for looking, while a rule is being made.

All rows of a batch are read and counted, where they are; only those that are shown come to the driver. Values come from
devices: what could steer a terminal is not printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import StructType
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from brookmq.base.rule_documents import ConsoleAction
from brookmq.spark.actions.interface import BatchKey
from brookmq.spark.actions.storable import check_names, storable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CELL_CHARACTERS_MAX: Final = 200

_FOUND: Final = pa.schema([pa.field("cells", pa.list_(pa.field("element", pa.string()))), pa.field("rows", pa.int64())])


@dataclass(frozen=True, slots=True)
class FirstRows:
    """What each executor does with its part of a batch: its first rows as texts, and how many there are."""

    count: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: list[dict[str, Any]] = []
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            first = batch.slice(0, self.count - len(found)).to_pylist()
            found.extend({"cells": [shown(value) for value in row.values()], "rows": None} for row in first)
        found.append({"cells": None, "rows": rows})
        yield pa.RecordBatch.from_pylist(found, schema=_FOUND)


class ConsolePrinter:
    """Prints batches of one rule."""

    def __init__(self, document: ConsoleAction, schema: StructType, console: Console | None = None) -> None:
        check_names(schema, "console")
        self._rows_max = document.rows
        self._console = console or Console()
        self._printed: BatchKey | None = None

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        if key == self._printed:
            return 0
        rows = storable(frame)
        found = rows.mapInArrow(FirstRows(self._rows_max), "cells array<string>, rows bigint").collect()
        count: int = sum(row.rows for row in found if row.rows is not None)
        if count:
            first = [row.cells for row in found if row.cells is not None][: self._rows_max]
            self._console.print(_table(rows.columns, first, count, key.batch))
        self._printed = key
        return count

    def close(self) -> None:
        """Nothing is open."""


def shown(value: object) -> str:
    """A value as text of one line, without anything that a terminal would obey."""
    text = _decoded(value) if isinstance(value, bytes) else "" if value is None else str(value)
    if len(text) > CELL_CHARACTERS_MAX:
        text = f"{text[:CELL_CHARACTERS_MAX]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def _table(names: list[str], rows: list[list[str]], count: int, batch: int) -> Group:
    more = f", the first {len(rows)} are shown" if count > len(rows) else ""
    table = Table()
    for name in names:
        table.add_column(Text(shown(name)))
    for cells in rows:
        table.add_row(*map(Text, cells))
    return Group(Text(f"batch {batch}: {count} row{'s' if count != 1 else ''}{more}"), table)

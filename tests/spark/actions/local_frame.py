"""A frame without Spark: rows that are there, handed to a task as an executor would do it.

For tests of what happens around the rows, in processes that die: Spark takes seconds to start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class LocalFrame:
    """As much of a DataFrame as actions use."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._found: list[SimpleNamespace] = []

    @property
    def columns(self) -> list[str]:
        names: list[str] = self._table.column_names
        return names

    def mapInArrow(self, task: Task, schema: str) -> LocalFrame:  # Spark's name
        self._found = [
            SimpleNamespace(**row) for batch in task(iter(self._table.to_batches())) for row in batch.to_pylist()
        ]
        return self

    def collect(self) -> list[Any]:
        return self._found

    def toArrow(self) -> pa.Table:  # Spark's name
        return self._table

"""Executors write Parquet files; the driver learns what they wrote, and nothing of what is in it.

A task writes into a staging folder that no reader looks at, one file for each combination of partition values, under
names that no other try of the task has, and that no ``**/*.parquet`` finds. Where a file will stand is told with it,
and is for the driver to bring about (``staging.py``).

A task that can't write says so in its result and does not fail: a failing task is tried again by Spark, and its error
looks like one of the rows themselves. Errors of the rows come through as they are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from brookmq.spark.actions.file_statistics import file_statistics
from brookmq.spark.actions.interface import ActionError, BatchKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS_MAX: Final = 500  # files of one task: more mean a column that nobody should partition by
ROW_GROUP_ROWS: Final = 128 * 1024
PENDING_BYTES_MAX: Final = 64 * 1024 * 1024  # rows of a task that wait for their row group
COMPRESSION: Final = "zstd"
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"

_FOUND: Final = pa.schema([pa.field("file", pa.string()), pa.field("error", pa.string())])
_ROW: Final = "row of the batch"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """``staged``: its name in the staging folder; ``path``: where it belongs, below the table's folder."""

    staged: str
    path: str
    partition: Mapping[str, str | None]
    rows: int
    size_bytes: int
    statistics: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class FileTask:
    """What each executor does with its part of a batch. ``attempt`` is a folder below ``folder`` that no other attempt
    at the batch uses: tasks of a driver that was killed may live on for a while. ``schema`` is that of the files:
    partition columns are not in them, since their values are the same for a whole file."""

    folder: str
    attempt: str
    name: str
    partition_by: tuple[str, ...]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        task, number = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
        writer = _TaskWriter(self, f"{self.attempt}/{number}", f"{self.name}-{task}")
        error = None
        for batch in batches:  # to the end in any case: others count these rows
            if error is None:
                error = writer.attempt(batch)
        files, error = ([], error) if error is not None else writer.finish()
        found = [{"file": json.dumps(file.document()), "error": None} for file in files]
        if error is not None:
            found = [{"file": None, "error": error}]
        yield pa.RecordBatch.from_pylist(found, schema=_FOUND)


def write_files(frame: DataFrame, task: FileTask) -> list[WrittenFile]:
    """All rows of the frame in files; ActionError when an executor can't write."""
    found = frame.mapInArrow(task, "file string, error string").collect()
    for row in found:
        if row.error is not None:
            raise ActionError(row.error)
    return [WrittenFile(**json.loads(row.file)) for row in found]


def file_name(key: BatchKey) -> str:
    """What the names of a batch's files begin with."""
    return f"part-{key.tag}-{key.batch}"


class _TaskWriter:
    def __init__(self, task: FileTask, staged: str, name: str) -> None:
        self._task = task
        self._staged = staged
        self._name = name
        self._files: dict[tuple[Any, ...], _OpenFile] = {}

    def attempt(self, batch: pa.RecordBatch) -> str | None:
        """What is in the way, if anything is."""
        try:
            for values, part in _split(batch, self._task.partition_by):
                file = self._files.get(values)
                if file is None:
                    if len(self._files) == PARTITIONS_MAX:
                        names = ", ".join(self._task.partition_by)
                        return f"partition_by: {names} has more than {PARTITIONS_MAX} values in one batch"
                    file = self._files[values] = self._open(values)
                file.add(part.select(self._task.schema.names).cast(self._task.schema))
            if sum(file.pending_bytes for file in self._files.values()) >= PENDING_BYTES_MAX:
                for file in self._files.values():
                    file.flush()
        except OSError as error:
            return f"can't write files: {error}"
        return None

    def finish(self) -> tuple[list[WrittenFile], str | None]:
        try:
            return [file.close() for file in self._files.values()], None
        except OSError as error:
            return [], f"can't write files: {error}"

    def _open(self, values: tuple[Any, ...]) -> _OpenFile:
        number = len(self._files)
        texts = {name: _text(value) for name, value in zip(self._task.partition_by, values, strict=True)}
        folders = [f"{_safe(name)}={NO_VALUE if text is None else _safe(text)}" for name, text in texts.items()]
        path = "/".join([*folders, f"{self._name}-{number}.parquet"])
        staged = f"{self._staged}-{number}.writing"
        return _OpenFile(Path(self._task.folder), staged, path, texts, self._task.schema)


class _OpenFile:
    """Takes rows until there are enough for a row group. Opened with the first one: most have only one, at the end."""

    def __init__(
        self, folder: Path, staged: str, path: str, partition: Mapping[str, str | None], schema: pa.Schema
    ) -> None:
        self._folder = folder
        self._staged = staged
        self._path = path
        self._partition = partition
        self._schema = schema
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self.pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self.pending_bytes += batch.nbytes
        if self._pending_rows >= ROW_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                str(self._folder / self._staged),
                self._schema,
                compression=COMPRESSION,
                store_schema=False,
                metadata_collector=self._footers,
            )
        self._writer.write_table(pa.Table.from_batches(self._pending), row_group_size=ROW_GROUP_ROWS)
        self._pending = []
        self._pending_rows = self.pending_bytes = 0

    def close(self) -> WrittenFile:
        self.flush()
        assert self._writer is not None
        self._writer.close()
        (footer,) = self._footers
        file = self._folder / self._staged
        _to_disk(file)
        return WrittenFile(
            self._staged,
            self._path,
            self._partition,
            footer.num_rows,
            file.stat().st_size,
            file_statistics(footer, self._schema),
        )


def _split(batch: pa.RecordBatch, names: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The rows of each combination of values, in the order in which they came."""
    if batch.num_rows == 0:
        return
    if not names:
        yield (), batch
        return
    rows = pa.table([*(batch.column(name) for name in names), pa.array(range(batch.num_rows))], [*names, _ROW])
    groups = rows.group_by(list(names), use_threads=False).aggregate([(_ROW, "list")])
    for number in range(groups.num_rows):
        values = tuple(groups.column(name)[number].as_py() for name in names)
        yield values, batch if groups.num_rows == 1 else batch.take(groups.column(f"{_ROW}_list")[number].values)


def _text(value: Any) -> str | None:
    """A partition value as Delta's log and the names of folders have it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _safe(text: str) -> str:
    """As a part of a folder's name. For the eye alone: a table's log has the value itself."""
    return _UNSAFE.sub("_", text)[:64]


def _to_disk(file: Path) -> None:
    """A commit that survives a power cut must not speak of a file that did not."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

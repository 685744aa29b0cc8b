"""Rows into a Delta table: executors write the files, the driver commits them to the table's log.

The query and its batch go into the log as an *application transaction*, in the same commit as the files: a batch that
the log has is not written again, and two drivers with the same query can't both commit.

A column that the rule has gained is added to the table; a column whose type has changed is an error, since no reader
could make one column of both. Each batch adds a file or more: every some commits those of the partitions that were
written to are made into larger ones, which leaves the rows as they are.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DateType, IntegerType, LongType, StringType, StructField, StructType

from brookmq.base.rule_documents import DeltaAction
from brookmq.spark.actions.files import WrittenFile
from brookmq.spark.actions.interface import ActionError, BatchKey, one_line
from brookmq.spark.actions.staging import Staging, local_folder
from brookmq.spark.actions.storable import (
    DATE,
    check_names,
    date_partition,
    missing_columns,
    storable,
    stored_schema,
    with_date,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

COMPACT_COMMITS: Final = 200
COMPACT_PARTITIONS_MAX: Final = 16
COMPACT_TARGET_BYTES: Final = 128 * 1024 * 1024
# A commit a second makes a log of 86,400 files a day: a day of history is enough for readers, and quick to list.
CONFIGURATION: Final = {"delta.logRetentionDuration": "interval 1 days", "delta.checkpointInterval": "100"}

_FORBIDDEN: Final = " ,;{}()\n\t="  # in names of columns, for readers without column mapping
_PARTITION_TYPES: Final = (BooleanType, DateType, IntegerType, LongType, StringType)


class DeltaAppender:
    """Appends batches to one table, which is made when it isn't there."""

    def __init__(self, document: DeltaAction, schema: StructType) -> None:
        self._folder = local_folder(document.path, "path")
        check_names(schema, self._where, _FORBIDDEN)
        self._columns = stored_schema(schema)
        self._chosen = None if document.partition_by is None else tuple(document.partition_by)
        self._staging = Staging(self._folder, self._folder)
        self._table: DeltaTable | None = None
        self._written_since: dict[tuple[tuple[str, str], ...], None] = {}  # partitions, the oldest first
        self._commits = 0
        self._partitioned(self._chosen if self._chosen is not None else date_partition(schema))

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        try:
            table = self._opened()
            names = tuple(table.metadata().partition_columns)
            columns = self._partitioned(names)
            rows = storable(frame)
            if DATE in names and DATE not in rows.columns:
                rows = with_date(rows)
            plain = StructType([field for field in columns.fields if field.name not in names])
            count = self._staging.write_once(rows, key, self, names, to_arrow_schema(plain, timezone="UTC"))
        except ActionError:
            self._table = None  # it may be another one by now
            raise
        except (DeltaError, OSError) as error:
            self._table = None
            raise ActionError(f"{self._where}: {one_line(error)}") from None
        if self._commits >= COMPACT_COMMITS:
            self._compact(table)
        return count

    def close(self) -> None:
        self._table = None

    # the table, for Staging

    def committed(self, key: BatchKey) -> bool:
        table = self._opened()
        table.update_incremental()
        version = table.transaction_version(key.query)
        return version is not None and version >= key.batch

    def commit(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        table = self._opened()
        table.create_write_transaction(
            [_add(self._folder, file) for file in files],
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=[Transaction(key.query, key.batch)]),
        )
        self._commits += 1
        for file in files:
            if None not in file.partition.values():
                partition = tuple((name, value or "") for name, value in file.partition.items())
                self._written_since.pop(partition, None)
                self._written_since[partition] = None

    # opening it

    @property
    def _where(self) -> str:
        return f"Delta table {self._folder}"

    def _opened(self) -> DeltaTable:
        """The table, with all columns of the rule."""
        if self._table is not None:
            return self._table
        path = str(self._folder)
        if not DeltaTable.is_deltatable(path):
            names = self._chosen if self._chosen is not None else date_partition(self._columns)
            schema = Schema.from_json(self._partitioned(names).json())
            DeltaTable.create(path, schema, mode="ignore", partition_by=list(names), configuration=CONFIGURATION)
        table = DeltaTable(path)
        found = tuple(table.metadata().partition_columns)
        if self._chosen is not None and found != self._chosen:
            raise ActionError(f"{self._where}: it is partitioned by {_listed(found)}, not by {_listed(self._chosen)}")
        theirs = StructType.fromJson(json.loads(table.schema().to_json()))
        missing = missing_columns(self._partitioned(found), theirs, self._where)
        if missing.fields:
            table.alter.add_columns([Field.from_json(field.json()) for field in missing.fields])
        self._table = table
        return table

    def _partitioned(self, names: Sequence[str]) -> StructType:
        """The columns with those that the table is partitioned by."""
        columns = self._columns
        if DATE in names and DATE not in columns.names and date_partition(columns) == (DATE,):
            columns = StructType([*columns.fields, StructField(DATE, DateType())])
        types = {field.name: field.dataType for field in columns.fields}
        for name in names:
            if not isinstance(types.get(name), _PARTITION_TYPES):
                reason = f"is of type {types[name].simpleString()}" if name in types else "is not a column of the rule"
                raise ActionError(f"{self._where}: it can't be partitioned by {name!r}, which {reason}")
        if set(types) <= set(names):
            raise ActionError(f"{self._where}: there is no column but those that it is partitioned by")
        return columns

    def _compact(self, table: DeltaTable) -> None:
        """Small files into larger ones. What goes wrong here is no fault of the batch, which is committed."""
        partitions = list(self._written_since)[-COMPACT_PARTITIONS_MAX:]
        self._commits = 0
        self._written_since.clear()
        for partition in partitions:
            try:
                table.update_incremental()
                table.optimize.compact(
                    [(name, "=", value) for name, value in partition] or None,
                    target_size=COMPACT_TARGET_BYTES,
                    max_concurrent_tasks=1,
                )
            except (DeltaError, OSError) as error:
                logger.warning("%s: small files stay as they are: %s", self._where, one_line(error))
                return


def _add(folder: Path, file: WrittenFile) -> AddAction:
    modified_ms = int((folder / file.path).stat().st_mtime * 1000)
    return AddAction(file.path, file.size_bytes, file.partition, modified_ms, True, json.dumps(file.statistics))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"

"""The table of last values: one row for each device and topic, in Delta.

Each batch is reduced by Spark to the last row of each key, and what is left is merged into the table by the driver. A
batch has a bounded number of rows, so that is bounded, too. A row replaces another only if it is newer, and the batch's
number goes into the table with the rows: a batch that comes again changes nothing.

A merge writes the files anew that it touches. What it replaces is removed after an hour, or the folder would grow by
the whole table every few seconds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.sql import functions as f

from brookmq.spark.actions.interface import ActionError, BatchKey
from brookmq.spark.actions.staging import local_folder
from brookmq.spark.actions.storable import storable
from brookmq.spark.rules.types import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

log = logging.getLogger("brookmq.spark.pipeline")

KEPT_HOURS: Final = 1
TIDIED_EVERY: Final = 100  # batches
ORDER: Final = ("published_at", "offset")  # of two rows the later one is greater in this
_SETTINGS: Final[dict[str, str | None]] = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": f"interval {KEPT_HOURS} hours",
}


class LastValues:
    """An action that keeps the last row for each value of ``keys``."""

    def __init__(self, path: str, keys: tuple[str, ...]) -> None:
        self._path = str(local_folder(path, "path"))
        self._keys = keys
        self._table: DeltaTable | None = None
        self._batches = 0

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        try:
            table = self._opened()
            if table is not None and (table.transaction_version(key.query) or -1) >= key.batch:
                return 0
        except (DeltaError, OSError) as error:
            raise self._refused(error) from None
        rows = storable(self._last(frame)).toArrow()  # what is wrong here is Spark's to tell
        if rows.num_rows:
            try:
                self._merge(table or self._created(rows), rows, key)
            except (DeltaError, OSError) as error:
                self._table = None
                raise self._refused(error) from None
        self._tidy()
        return int(rows.num_rows)

    def close(self) -> None:
        self._table = None

    def _last(self, frame: DataFrame) -> DataFrame:
        keys = [f.coalesce(f.col(quoted(name)), f.lit("")).alias(name) for name in self._keys]
        others = [name for name in frame.columns if name not in self._keys]
        row = f.struct(*(f.col(quoted(name)) for name in others))
        last = frame.groupBy(*keys).agg(f.max_by(row, f.struct(*ORDER)).alias("last"))
        return last.select(*self._keys, *(f.col(f"last.{quoted(name)}").alias(name) for name in others))

    def _opened(self) -> DeltaTable | None:
        """The table as it is now; None if it is not there yet."""
        if self._table is None:
            try:
                self._table = DeltaTable(self._path)
            except TableNotFoundError:
                return None
        else:
            self._table.update_incremental()
        return self._table

    def _created(self, rows: pa.Table) -> DeltaTable:
        self._table = DeltaTable.create(self._path, schema=rows.schema, configuration=_SETTINGS)
        return self._table

    def _merge(self, table: DeltaTable, rows: pa.Table, key: BatchKey) -> None:
        names = rows.schema.names
        values = {_sql(name): f"new.{_sql(name)}" for name in names}
        same = " AND ".join(f"old.{_sql(name)} = new.{_sql(name)}" for name in self._keys)
        first, second = (_sql(name) for name in ORDER)
        newer = f"new.{first} > old.{first} OR (new.{first} = old.{first} AND new.{second} > old.{second})"
        table.merge(
            rows,
            same,
            source_alias="new",
            target_alias="old",
            merge_schema=True,
            commit_properties=CommitProperties(app_transactions=[Transaction(key.query, key.batch)]),
        ).when_matched_update(values, newer).when_not_matched_insert(values).execute()

    def _tidy(self) -> None:
        """Now and then: many small files become few, and what was replaced goes."""
        self._batches += 1
        if self._table is None or self._batches % TIDIED_EVERY:
            return
        try:
            self._table.optimize.compact()
            self._table.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
        except (DeltaError, OSError) as error:
            log.warning("%s could not be tidied: %s", self._path, error)

    def _refused(self, error: Exception) -> ActionError:
        return ActionError(f"the Delta table {self._path} did not take the last values: {error}")


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Rows into a folder of Parquet files, by date, for readers that know nothing but folders and files.

Such a reader sees every file whole: it is renamed into place. What it can't see is a batch as one thing: while a batch
is published, some of its files are there and others are not yet. Nothing that was seen goes away again, and nothing
comes twice, also when the pipeline dies meanwhile.

``_common_metadata`` has all columns that files of this folder have, as other writers of such folders keep it; a column
that would come with another type is refused, since readers could not make one column of both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DateType, StructType

from brookmq.base.rule_documents import ParquetAction
from brookmq.spark.actions.files import WrittenFile
from brookmq.spark.actions.interface import ActionError, BatchKey, one_line
from brookmq.spark.actions.staging import OWN_FOLDER, Staging, local_folder, locked, sync_folder, write_whole
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

SCHEMA_FILE: Final = "_common_metadata"


class ParquetFolder:
    """Adds batches to one folder, which is made when it isn't there."""

    def __init__(self, document: ParquetAction, schema: StructType) -> None:
        self._folder = local_folder(document.path, "path")
        check_names(schema, self._where)
        self._partition_by = date_partition(schema)
        self._columns = stored_schema(schema)
        plain = StructType([field for field in self._columns.fields if field.name not in self._partition_by])
        if not plain.fields:
            raise ActionError(f"{self._where}: a rule needs another column than {DATE}")
        if self._partition_by and DATE not in self._columns.names:
            self._columns.add(DATE, DateType())
        self._schema = to_arrow_schema(plain, timezone="UTC")
        self._staging = Staging(self._folder, self._folder)
        self._declared = False

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        if not self._declared:
            try:
                self._declare()
            except (OSError, pa.ArrowException) as error:
                raise ActionError(f"{self._where}: {one_line(error)}") from None
            self._declared = True
        rows = storable(frame)
        if self._partition_by and DATE not in rows.columns:
            rows = with_date(rows)
        return self._staging.write_once(rows, key, self, self._partition_by, self._schema)

    def close(self) -> None:
        """Nothing is open between batches."""

    # the table, for Staging

    def committed(self, key: BatchKey) -> bool:
        try:
            batch = json.loads(self._record(key).read_text("utf-8"))["batch"]
        except FileNotFoundError:
            return False
        return bool(batch >= key.batch)

    def commit(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        write_whole(self._record(key), json.dumps({"query": key.query, "batch": key.batch}))

    @property
    def _where(self) -> str:
        return f"Parquet folder {self._folder}"

    def _record(self, key: BatchKey) -> Path:
        return self._folder / OWN_FOLDER / "batches" / f"{key.tag}.json"

    def _declare(self) -> None:
        """Notes columns that are new in the folder."""
        (self._folder / OWN_FOLDER / "batches").mkdir(parents=True, exist_ok=True)
        with locked(self._folder / OWN_FOLDER / "schema.lock"):
            file = self._folder / SCHEMA_FILE
            known = pq.read_schema(file) if file.exists() else pa.schema([])
            missing = missing_columns(self._columns, from_arrow_schema(known), self._where)
            if missing.fields:
                new = self._folder / OWN_FOLDER / "schema.new"
                pq.write_metadata(pa.schema([*known, *to_arrow_schema(missing, timezone="UTC")]), new)
                new.rename(file)
                sync_folder(self._folder)

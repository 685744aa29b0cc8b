"""Rows into an Iceberg table: executors write the files, the driver adds them to the table in a snapshot.

The warehouse is a folder, and its catalogue a SQLite file in it, ``catalog.db``, as pyiceberg's SqlCatalog has it. The
query and its batch go into the table's properties, in the same commit as the files: unlike a property of a snapshot
they stay when snapshots are expired.

Snapshots are expired here, as far as they are ours: with a snapshot a second the metadata of a table, which is written
whole with every commit, would soon be the largest part of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
    ValidationException,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType, TimestampType
from sqlalchemy.exc import SQLAlchemyError

from brookmq.base.rule_documents import IcebergAction
from brookmq.spark.actions.files import WrittenFile
from brookmq.spark.actions.interface import ActionError, BatchKey, one_line
from brookmq.spark.actions.staging import OWN_FOLDER, Staging, local_folder, locked
from brookmq.spark.actions.storable import (
    PUBLISHED_AT,
    check_names,
    missing_columns,
    storable,
    stored_schema,
    with_date,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

CATALOG: Final = "brookmq"
CATALOG_FILE: Final = "catalog.db"
DAY: Final = f"{PUBLISHED_AT}_day"  # as Iceberg's other writers name it
BATCH_PROPERTY: Final = "brookmq.batch."  # with the query's id behind it, in the properties of a table
# pyiceberg copies all metadata some twenty times in a commit: 200 snapshots make it four times as slow as 20.
SNAPSHOTS_KEPT: Final = 10
SNAPSHOTS_MAX: Final = 30
# Old versions of the metadata go with the commit that replaces them; manifests are merged before there are too many.
PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "25",
}
_OURS: Final = {"created-by": "brookmq"}

_ICEBERG_ERRORS: Final = (
    CommitFailedException,
    NoSuchTableError,
    SQLAlchemyError,
    TableAlreadyExistsError,
    ValidationError,
    ValidationException,
    ValueError,  # what pyiceberg raises for files and schemas that it refuses
    pa.ArrowException,
)


class IcebergAppender:
    """Appends batches to one table, which is made, with its catalogue, when it isn't there."""

    def __init__(self, document: IcebergAction, schema: StructType) -> None:
        self._warehouse = local_folder(document.warehouse, "warehouse")
        self._name = tuple(document.table.split("."))
        check_names(schema, self._where)
        self._columns = stored_schema(schema)
        self._catalog: SqlCatalog | None = None
        self._table: Table | None = None

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        with self._errors_named():
            table = self._opened()
            folder = Path(table.location().removeprefix("file://"))
            partitioned = bool(table.spec().fields)
            rows = with_date(storable(frame), DAY) if partitioned else storable(frame)
            schema = to_arrow_schema(self._columns, timezone="UTC")
            staging = Staging(folder, folder / "data")
            count = staging.write_once(rows, key, self, (DAY,) if partitioned else (), schema)
        if len(table.snapshots()) >= SNAPSHOTS_MAX:
            self._expire(table)
        return count

    def close(self) -> None:
        catalog, self._catalog, self._table = self._catalog, None, None
        if catalog is not None:
            catalog.engine.dispose()

    # the table, for Staging

    def committed(self, key: BatchKey) -> bool:
        found = self._opened().refresh().properties.get(BATCH_PROPERTY + key.query)
        return found is not None and int(found) >= key.batch

    def commit(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        table = self._opened()
        paths = [f"{table.location()}/data/{file.path}" for file in files]
        ours = {BATCH_PROPERTY + key.query: str(key.batch)}
        with table.transaction() as transaction:
            transaction.set_properties(ours)
            transaction.add_files(paths, snapshot_properties=ours, check_duplicate_files=False)

    # opening it

    @property
    def _where(self) -> str:
        return f"Iceberg table {'.'.join(self._name)} in {self._warehouse}"

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except PySparkException:
            raise
        except (OSError, *_ICEBERG_ERRORS) as error:
            self.close()  # whatever it was: the next try begins anew
            raise ActionError(f"{self._where}: {one_line(error)}") from None

    def _opened(self) -> Table:
        """The table, with all columns of the rule."""
        if self._table is not None:
            return self._table
        with locked(self._warehouse / OWN_FOLDER / "catalog.lock"):  # SQLite's tables are made by one at a time
            catalog = self._catalog = SqlCatalog(
                CATALOG, uri=f"sqlite:///{self._warehouse / CATALOG_FILE}", warehouse=f"file://{self._warehouse}"
            )
            try:
                table = catalog.load_table(self._name)
            except NoSuchTableError:
                table = self._create(catalog)
            self._partition(table)
            theirs = from_arrow_schema(schema_to_pyarrow(table.schema(), include_field_ids=False))
            missing = missing_columns(self._columns, theirs, self._where)
            if missing.fields:
                with table.update_schema() as update:
                    update.union_by_name(to_arrow_schema(missing, timezone="UTC"))
        self._check_partitions(table)
        self._table = table
        return table

    def _create(self, catalog: SqlCatalog) -> Table:
        for levels in range(1, len(self._name)):
            catalog.create_namespace_if_not_exists(self._name[:levels])
        schema = to_arrow_schema(self._columns, timezone="UTC")
        location = f"file://{self._warehouse.joinpath(*self._name)}"
        return catalog.create_table(self._name, schema, location, properties={**PROPERTIES, **_OURS})

    def _partition(self, table: Table) -> None:
        """A table that we made gets its partitions in a second step, before its first rows."""
        ours = _OURS.items() <= table.properties.items()
        if ours and self._has_day() and not table.spec().fields and not table.snapshots():
            with table.update_spec() as spec:
                spec.add_field(PUBLISHED_AT, DayTransform(), DAY)

    def _has_day(self) -> bool:
        types = {field.name: field.dataType for field in self._columns.fields}
        return isinstance(types.get(PUBLISHED_AT), TimestampType) and DAY not in (name.lower() for name in types)

    def _check_partitions(self, table: Table) -> None:
        """A file is of one partition, and days are all that we keep apart."""
        fields = table.spec().fields
        if not fields:
            return
        source = table.schema().find_column_name(fields[0].source_id)
        if len(fields) > 1 or source != PUBLISHED_AT or not isinstance(fields[0].transform, DayTransform):
            raise ActionError(f"{self._where}: it is partitioned by something else than day({PUBLISHED_AT})")
        if not self._has_day():
            raise ActionError(f"{self._where}: it is partitioned by day({PUBLISHED_AT}), which the rule has not")

    def _expire(self, table: Table) -> None:
        """Forgets old snapshots that were ours. What goes wrong here is no fault of the batch, which is committed."""
        held = {reference.snapshot_id for reference in table.refs().values()}  # branches and tags
        ours = [
            snapshot.snapshot_id
            for snapshot in table.snapshots()[:-SNAPSHOTS_KEPT]
            if snapshot.summary is not None
            and snapshot.snapshot_id not in held
            and any(name.startswith(BATCH_PROPERTY) for name in snapshot.summary.additional_properties)
        ]
        try:
            table.maintenance.expire_snapshots().by_ids(ours).commit()
        except (OSError, *_ICEBERG_ERRORS) as error:
            logger.warning("%s: old snapshots stay: %s", self._where, one_line(error))

"""Rows into a table of PostgreSQL, and the number of the batch into another, in one transaction.

Rows travel as Arrow through ADBC into a temporary table (``COPY``), and from there into the table itself with an
``INSERT`` that names the columns: so the table may be the user's own, with other types where PostgreSQL knows the way,
with keys, defaults and triggers. A table that isn't there is made, a column that isn't there is added.

``brookmq_batches`` stands in the same schema as the table. Its row for query and table is locked first: two pipelines
with the same query go one after the other, and the second finds the batch there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import adbc_driver_postgresql.dbapi as dbapi  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql.types import StructType

from brookmq.base.rule_documents import PostgresqlAction
from brookmq.spark.actions.interface import ActionError, BatchKey, one_line
from brookmq.spark.actions.postgresql_columns import carried_rows, sql_columns, sql_name
from brookmq.spark.actions.turns import Turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BATCHES: Final = "brookmq_batches"
CARRIED: Final = "brookmq_carried"
# A server that is gone, or a table that somebody holds, is an error of this batch and not the end of all progress.
SETTINGS: Final = {
    "application_name": "brookmq",
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "options": "-c lock_timeout=30s -c idle_in_transaction_session_timeout=60s",
}


class PostgresqlInserter:
    """Inserts batches into one table."""

    def __init__(self, document: PostgresqlAction, uri: str, password: str | None, schema: StructType) -> None:
        self._uri = connection_uri(uri, password)
        parts = urlsplit(uri)
        self._where = f"PostgreSQL table {document.table} at {parts.hostname}{f':{parts.port}' if parts.port else ''}"
        self._columns = sql_columns(schema, self._where)
        *namespace, self._name = document.table.split(".")
        self._namespace: str | None = namespace[0] if namespace else None
        self._connection: Any = None
        self._turns = Turns(self._where, self._abandon)
        self._types: dict[str, str] = {}  # of the table's columns

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        with self._turns.taken():
            try:
                if self._last_batch(key) >= key.batch:
                    return 0
            except dbapi.Error as error:
                raise self._failed(error) from None
            rows = carried_rows(frame).toArrow()  # no transaction waits for Spark
            if rows.num_rows == 0:
                return 0
            try:
                return self._insert(rows, key)
            except dbapi.Error as error:
                raise self._failed(error) from None

    def close(self) -> None:
        self._turns.close()

    # one batch

    def _last_batch(self, key: BatchKey) -> int:
        """The query's last batch that is there, -1 if there is none. The first thing that is asked of a connection."""
        if self._connection is not None:
            try:
                return self._batch(key)
            except dbapi.Error:  # servers restart, and close what is idle
                self._abandon()
        self._connection = dbapi.connect(self._uri)
        self._prepare()
        return self._batch(key)

    def _batch(self, key: BatchKey, lock: str = "") -> int:
        found = self._rows(
            f"SELECT batch FROM {self._table(BATCHES)} WHERE query = $1 AND target = $2 {lock}",  # noqa: S608 - a name
            key.query,
            self._name,
        )
        if not lock:
            self._connection.rollback()
        return int(found[0][0]) if found else -1

    def _insert(self, rows: pa.Table, key: BatchKey) -> int:
        batches = self._table(BATCHES)
        self._do(
            f"INSERT INTO {batches} (query, target, batch) VALUES ($1, $2, -1) ON CONFLICT DO NOTHING",  # noqa: S608
            key.query,
            self._name,
        )
        if self._batch(key, "FOR UPDATE") >= key.batch:
            self._connection.rollback()
            return 0
        carried = ", ".join(f"{column.sql} {column.carried}" for column in self._columns)
        self._do(f"CREATE TEMPORARY TABLE {CARRIED} ({carried}) ON COMMIT DROP")
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest(CARRIED, rows, mode="append", temporary=True)
        names = ", ".join(column.sql for column in self._columns)
        values = ", ".join(column.value(self._types[column.name]) for column in self._columns)
        self._do(f"INSERT INTO {self._table(self._name)} ({names}) SELECT {values} FROM {CARRIED}")  # noqa: S608
        self._do(
            f"UPDATE {batches} SET batch = $3, written_at = now() WHERE query = $1 AND target = $2",  # noqa: S608
            key.query,
            self._name,
            key.batch,
        )
        self._connection.commit()
        return int(rows.num_rows)

    # the tables

    def _prepare(self) -> None:
        """Makes what isn't there. What is there needs no right to make it."""
        if self._namespace is not None and self._rows("SELECT to_regnamespace($1)", sql_name(self._namespace)) == [
            (None,)
        ]:
            self._do(f"CREATE SCHEMA IF NOT EXISTS {sql_name(self._namespace)}")
        if not self._found_types(BATCHES):
            self._do(
                f"CREATE TABLE IF NOT EXISTS {self._table(BATCHES)} (query text NOT NULL, target text NOT NULL, "
                "batch bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (query, target))"
            )
        table, types = self._table(self._name), self._found_types(self._name)
        missing = [column for column in self._columns if column.name not in types]
        if not types:
            declared = ", ".join(f"{column.sql} {column.kind}" for column in self._columns)
            self._do(f"CREATE TABLE IF NOT EXISTS {table} ({declared})")
        elif missing:
            added = ", ".join(f"ADD COLUMN IF NOT EXISTS {column.sql} {column.kind}" for column in missing)
            self._do(f"ALTER TABLE {table} {added}")
        self._types = {**types, **{column.name: column.kind for column in missing}}
        self._connection.commit()

    def _found_types(self, name: str) -> dict[str, str]:
        """The columns of a table with their types; none when there is no such table."""
        return dict(
            self._rows(
                "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped",
                self._table(name),
            )
        )

    def _table(self, name: str) -> str:
        return sql_name(name) if self._namespace is None else f"{sql_name(self._namespace)}.{sql_name(name)}"

    # the connection

    def _do(self, sql: str, *values: object) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def _failed(self, error: Exception) -> ActionError:
        self._abandon()
        return ActionError(f"{self._where}: {one_line(error)}")

    def _abandon(self) -> None:
        """Lets go of a connection in whatever state it is: the server takes back what was not committed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except dbapi.Error:
                return


def connection_uri(uri: str, password: str | None) -> str:
    """The address with the settings that it does not have itself."""
    given = parse_qs(urlsplit(uri).query, keep_blank_values=True)
    settings = {name: value for name, value in SETTINGS.items() if name not in given}
    if password is not None:
        settings["password"] = password
    return f"{uri}{'&' if given else '?'}{urlencode(settings, quote_via=quote)}"

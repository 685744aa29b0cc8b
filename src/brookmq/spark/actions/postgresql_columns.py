"""A rule's columns in PostgreSQL: their types there, and how values get there.

Values of a JSON payload, lists, records and maps are ``jsonb``. PostgreSQL has no null character, neither in text nor,
as an escape, in ``jsonb``: it is left out, since the whole batch would be refused for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)

from brookmq.spark.actions.interface import ActionError
from brookmq.spark.actions.storable import JSON_OPTIONS, check_names, storable, stored_schema
from brookmq.spark.rules.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NAME_BYTES_MAX: Final = 63  # of a column; PostgreSQL cuts off the rest of a longer one and goes on
COLUMNS_MAX: Final = 1_600

_JSON: Final = "jsonb"
_TYPES: Final[dict[type[DataType], str]] = {
    BinaryType: "bytea",
    BooleanType: "boolean",
    DateType: "date",
    DoubleType: "double precision",
    FloatType: "real",
    IntegerType: "integer",
    LongType: "bigint",
    StringType: "text",
    TimestampType: "timestamptz",
}
_NULL_ESCAPE: Final = r"(?<!\\)((?:\\\\)*)\\u0000"  # an even number of backslashes before it are no part of it


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """``kind`` is its type in a table that is made for it."""

    name: str
    kind: str

    @property
    def sql(self) -> str:
        return sql_name(self.name)

    @property
    def carried(self) -> str:
        """Its type on the way: JSON travels as text."""
        return "text" if self.kind == _JSON else self.kind

    def value(self, target: str) -> str:
        """The value for a column of the type ``target``: what travelled as text is cast, the rest finds its way."""
        return f"CAST({self.sql} AS {target})" if self.kind == _JSON else self.sql


def sql_columns(schema: StructType, where: str) -> list[SqlColumn]:
    """One for each column of a rule; ActionError for a name that PostgreSQL can't have."""
    check_names(schema, where, "\0")
    for name in schema.names:
        if len(name.encode()) > NAME_BYTES_MAX:
            raise ActionError(f"{where}: the name of a column has {NAME_BYTES_MAX} bytes at most, {name!r} has more")
    if len(schema.names) > COLUMNS_MAX:
        raise ActionError(f"{where}: a table has {COLUMNS_MAX} columns at most")
    stored = stored_schema(schema)
    return [
        SqlColumn(field.name, _JSON if _as_json(field.dataType) else _sql_type(into.dataType))
        for field, into in zip(schema.fields, stored.fields, strict=True)
    ]


def carried_rows(frame: DataFrame) -> DataFrame:
    """The rows in the types in which they travel."""
    before = frame.schema.fields
    rows = storable(frame)
    return rows.select(
        *(
            _carried(f.col(quoted(stored.name)), stored.dataType, _as_json(field.dataType)).alias(stored.name)
            for field, stored in zip(before, rows.schema.fields, strict=True)
        )
    )


def sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_json(kind: DataType) -> bool:
    return isinstance(kind, (ArrayType, MapType, StructType, VariantType))


def _sql_type(kind: DataType) -> str:
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return _TYPES[type(kind)]


def _carried(column: Column, kind: DataType, as_json: bool) -> Column:
    if as_json:
        text = column if isinstance(kind, StringType) else f.to_json(column, JSON_OPTIONS)
        return f.regexp_replace(text, _NULL_ESCAPE, "$1")
    if isinstance(kind, StringType):
        return f.replace(column, f.lit("\0"), f.lit(""))
    return column

"""Rows of a rule in types that every table format, database and JSON reader knows.

A rule's columns may be of types that live in Spark alone, or that others know since yesterday. They become:

- values of a JSON payload (VARIANT), and lists and records with such inside: JSON text;
- a column that is always NULL, and intervals: text;
- whole numbers of one and two bytes: int; times without a zone: times, taken as UTC.

Nothing is refused that can be told in another way, and what becomes of a column depends on its type alone: a batch that
is written again gives the same. All columns may be null: a column that happens to be never null today would otherwise
make a table that refuses the rows of a changed rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from brookmq.spark.actions.interface import ActionError
from brookmq.spark.rules.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DATE: Final = "date"
PUBLISHED_AT: Final = "published_at"
DAY_MICROSECONDS: Final = 86_400_000_000

_KNOWN: Final = (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType,
    TimestampType,
)  # fmt: skip
_NESTED: Final = (ArrayType, MapType, StructType)
JSON_OPTIONS: Final = {
    "ignoreNullFields": "false",  # each row has all columns
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timeZone": "UTC",
}


def stored_schema(schema: StructType) -> StructType:
    """The schema that ``storable`` makes of a frame with this one."""
    return StructType([StructField(field.name, _stored_type(field.dataType)) for field in schema.fields])


def storable(frame: DataFrame) -> DataFrame:
    """The same rows in types that can be stored."""
    return frame.select(*(_stored_column(field) for field in frame.schema.fields))


def check_names(schema: StructType, where: str, forbidden: str = "") -> None:
    """Readers of tables take names for the same that differ in case only."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if (other := seen.setdefault(name.lower(), name)) != name or schema.names.count(name) > 1:
            raise ActionError(f"{where}: the rule's columns {other!r} and {name!r} would be one; name one AS another")
        if not name or any(character in forbidden for character in name):
            raise ActionError(f"{where}: a column of it can't be named {name!r}; give it a name with AS")


def missing_columns(ours: StructType, theirs: StructType, where: str) -> StructType:
    """The columns that a table has not; ActionError for one that it has as something else."""
    there = {field.name.lower(): field for field in theirs.fields}
    missing = StructType()
    for field in ours.fields:
        known = there.get(field.name.lower())
        if known is None:
            missing.add(field)
            continue
        if known.name != field.name:
            raise ActionError(f"{where}: its column is {known.name!r}, the rule's {field.name!r}; name it so with AS")
        kind, wanted = known.dataType.simpleString(), field.dataType.simpleString()
        if kind != wanted:
            raise ActionError(
                f"{where}: its column {field.name!r} is {kind}, the rule's {wanted}; "
                "cast it in the rule, or name it AS another"
            )
    return missing


def date_partition(schema: StructType) -> tuple[str, ...]:
    """By what rows are partitioned when nobody says it: the rule's ``date``, or that of ``published_at``.

    Only a column is the same when the batch comes again; the clock is not.
    """
    types = {field.name: field.dataType for field in schema.fields}
    if DATE in types:
        return (DATE,) if isinstance(types[DATE], DateType) else ()
    if any(name.lower() == DATE for name in types):
        return ()
    return (DATE,) if isinstance(types.get(PUBLISHED_AT), TimestampType) else ()


def with_date(frame: DataFrame, name: str = DATE) -> DataFrame:
    """Adds a date, the day of ``published_at`` in UTC whatever the session's time zone is."""
    microseconds = f"unix_micros({PUBLISHED_AT})"
    day = f"cast(({microseconds} - pmod({microseconds}, {DAY_MICROSECONDS})) div {DAY_MICROSECONDS} as int)"
    return frame.withColumn(name, f.expr(f"date_from_unix_date({day})"))


def json_rows(frame: DataFrame) -> DataFrame:
    """Each row as one JSON object, in a column ``json``."""
    return frame.select(f.to_json(f.struct(*map(_named, frame.schema.fields)), JSON_OPTIONS).alias("json"))


def _stored_column(field: StructField) -> Column:
    column, kind = _named(field), _stored_type(field.dataType)
    if isinstance(field.dataType, VariantType) or _told_as_json(field.dataType):
        stored = f.to_json(column, JSON_OPTIONS)
    elif isinstance(field.dataType, (*_KNOWN, *_NESTED)):
        stored = column
    else:
        stored = column.cast(kind)
    return stored.alias(field.name)


def _stored_type(kind: DataType) -> DataType:
    if isinstance(kind, (ByteType, ShortType)):
        return IntegerType()
    if isinstance(kind, TimestampNTZType):
        return TimestampType()
    if isinstance(kind, _NESTED) and not _told_as_json(kind):
        return _all_nullable(kind)
    return kind if isinstance(kind, _KNOWN) and type(kind) is not StringType else StringType()


def _told_as_json(kind: DataType) -> bool:
    return isinstance(kind, _NESTED) and not _all_known(kind)


def _all_known(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return len(kind.fields) > 0 and all(_all_known(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _all_known(kind.elementType)
    if isinstance(kind, MapType):
        return _all_known(kind.keyType) and _all_known(kind.valueType)
    return isinstance(kind, _KNOWN)


def _all_nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _all_nullable(field.dataType)) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_all_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_all_nullable(kind.keyType), _all_nullable(kind.valueType))
    return kind


def _named(field: StructField) -> Column:
    return f.col(quoted(field.name))

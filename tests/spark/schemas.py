"""Schemas from text, without a Spark that reads it."""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)


def _struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "struct<a:int>": _struct(a=IntegerType()),
    "array<string>": ArrayType(StringType()),
    "array<struct<name:string,value:string>>": ArrayType(_struct(name=StringType(), value=StringType())),
    "array<struct<key:string,value:string>>": ArrayType(_struct(key=StringType(), value=StringType())),
    "map<string,string>": MapType(StringType(), StringType()),
    "map<string,int>": MapType(StringType(), IntegerType()),
}


def schema_of(text: str) -> StructType:
    """``topic string, payload binary``, with names in backticks or without."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in re.findall(r"`?(\w+)`? (\S+?)(?:, |$)", text)])

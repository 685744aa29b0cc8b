"""The columns are the same to Spark and to Arrow, to the last detail."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from brookmq.spark.schema import COLUMNS, arrow_schema, checked_names, spark_schema


def test_arrow_has_what_spark_expects(spark: SparkSession) -> None:
    expected = StructType.fromDDL(spark_schema())
    assert to_arrow_schema(expected, timezone="UTC").equals(arrow_schema(), check_metadata=True)
    assert checked_names(expected) == tuple(COLUMNS)
    assert arrow_schema(["offset", "topic"]).names == ["offset", "topic"]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (StructField("tpoic", StringType()), "no column 'tpoic'"),
        (StructField("topic", BinaryType()), "topic is of type string, not binary"),
        (StructField("qos", IntegerType(), nullable=False), "has to be nullable"),
    ],
)
def test_a_schema_that_does_not_fit_is_said(field: StructField, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_names(StructType([field]))

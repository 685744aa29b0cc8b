"""A folder of Parquet files, for readers that know nothing of us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.spark.actions.frames import ROWS, rows, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def document(folder: Path) -> dict[str, Any]:
    return {"type": "parquet", "path": str(folder)}


def test_files_lie_below_their_day(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark), 12)
    found = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.parquet"))
    assert {file.parts[0] for file in found} == {"date=2026-01-31", "date=2026-02-01"}
    assert all(file.name.startswith("part-") and "-12-" in file.name for file in found)
    assert all(pq.read_metadata(tmp_path / file).num_rows > 0 for file in found)


def test_arrow_reads_it_with_and_without_being_told_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    plain = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert sorted(plain["number"].to_pylist()) == list(range(ROWS))
    told = ds.dataset(tmp_path, schema=pq.read_schema(tmp_path / "_common_metadata"), partitioning="hive")
    assert told.schema.field("date").type == pa.date32()
    assert told.to_table(filter=ds.field("number") == 7).num_rows == 1


def test_spark_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    found = spark.read.parquet(str(tmp_path))
    assert dict(found.dtypes)["date"] == "date"
    assert dict(found.dtypes)["published_at"] == "timestamp"
    assert found.where("date = '2026-02-01'").count() == ROWS // 2
    expected = rows(spark).selectExpr("number", "topic", "t", "properties", "payload", "published_at")
    assert found.select(*expected.columns).exceptAll(expected).count() == 0


def test_the_files_of_a_batch_that_is_being_written_are_hidden(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    hidden = tmp_path / "_brookmq" / "staging" / "abc" / "9" / "try"
    hidden.mkdir(parents=True)
    (hidden / "0-0.writing").write_bytes(b"half a file")
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == ROWS
    assert spark.read.parquet(str(tmp_path)).count() == ROWS


def test_a_rules_own_date_is_the_partition(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark, 0, "number", "published_at", date="DATE '2020-05-06'"))
    assert [path.name for path in tmp_path.glob("date=*")] == ["date=2020-05-06"]
    assert ds.dataset(tmp_path, partitioning="hive").count_rows() == ROWS

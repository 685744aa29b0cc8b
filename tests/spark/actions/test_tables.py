"""What holds for each kind of table made of files: Delta, Iceberg, a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from brookmq.spark.actions import ActionError
from tests.spark.actions.frames import MIDNIGHT, ROWS, action_for, key, rows, write
from tests.spark.actions.reading import delta_rows, iceberg_rows, parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Document = dict[str, Any]


class Table:
    def __init__(self, folder: Path, document: Document, read: Callable[[Path], pa.Table]) -> None:
        self.folder = folder
        self.document = document
        self._read = read

    def rows(self) -> pa.Table:
        return self._read(self.folder).sort_by("number")

    def numbers(self) -> list[int]:
        return self.rows()["number"].to_pylist()


@pytest.fixture(params=["delta", "iceberg", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    folder = tmp_path / "table"
    if request.param == "iceberg":
        return Table(folder, {"type": "iceberg", "warehouse": str(folder), "table": "lake.readings"}, iceberg_rows)
    read = delta_rows if request.param == "delta" else parquet_rows
    return Table(folder, {"type": request.param, "path": str(folder)}, read)


def test_all_rows_arrive_with_their_types(spark: SparkSession, table: Table) -> None:
    assert write(table.document, rows(spark)) == ROWS

    found = table.rows()
    assert found["number"].to_pylist() == list(range(ROWS))
    last = found.to_pylist()[-1]
    assert last["topic"] == "sensors/99"
    assert last["t"] == 9.9
    assert last["reading"] == '{"t":99}'
    assert last["properties"] == [{"name": "n", "value": "99"}]
    assert last["payload"] == b"p99"
    assert last["published_at"] == datetime.fromtimestamp(MIDNIGHT + ROWS / 2 - 1, UTC)
    assert found.schema.field("published_at").type == pa.timestamp("us", tz="UTC")


def test_a_batch_that_comes_again_is_written_once(spark: SparkSession, table: Table) -> None:
    frame = rows(spark)
    action = action_for(table.document, frame)
    assert action.write(frame, key(0)) == ROWS
    assert action.write(frame, key(0)) == 0
    action.close()
    assert write(table.document, frame) == 0, "nor by another process"
    assert write(table.document, rows(spark, 1), 1) == ROWS
    assert write(table.document, frame, 0) == 0, "nor when a later one is there"
    assert table.numbers() == list(range(2 * ROWS))


def test_another_query_writes_its_own_batches(spark: SparkSession, table: Table) -> None:
    write(table.document, rows(spark, 0), 0, "one")
    assert write(table.document, rows(spark, 1), 0, "another") == ROWS
    assert table.numbers() == list(range(2 * ROWS))


def test_a_batch_without_rows_is_no_batch(spark: SparkSession, table: Table) -> None:
    empty = rows(spark).where("number < 0")
    assert write(table.document, empty) == 0
    assert table.numbers() == []
    assert write(table.document, rows(spark), 1) == ROWS


def test_a_rule_that_gains_a_column_adds_it_to_the_table(spark: SparkSession, table: Table) -> None:
    write(table.document, rows(spark, 0, "number", "published_at"), 0)
    write(table.document, rows(spark, 1, "number", "published_at", more="id * 2", list="array(id)"), 0, "changed")
    write(table.document, rows(spark, 2, "number", "published_at"), 1)

    found = table.rows().to_pydict()
    assert found["number"] == list(range(3 * ROWS))
    assert found["more"] == [None] * ROWS + [2 * number for number in range(ROWS, 2 * ROWS)] + [None] * ROWS
    assert found["list"][ROWS] == [ROWS]


def test_a_column_that_changes_its_type_is_an_error_that_names_it(spark: SparkSession, table: Table) -> None:
    write(table.document, rows(spark, 0, "number", "t"))
    with pytest.raises(ActionError, match=r"its column 't' is double, the rule's string") as raised:
        write(table.document, rows(spark, 1, "number", t="'hot'"), 1)
    assert str(table.folder) in str(raised.value)
    assert table.numbers() == list(range(ROWS))


def test_rules_without_a_time_are_not_partitioned(spark: SparkSession, table: Table) -> None:
    assert write(table.document, rows(spark, 0, "number", "t")) == ROWS
    assert table.numbers() == list(range(ROWS))
    assert not list(table.folder.rglob("*=*"))


def test_times_that_are_null_have_a_partition_of_their_own(spark: SparkSession, table: Table) -> None:
    moment = "if(id % 2 = 0, timestamp_seconds(id), NULL)"
    write(table.document, rows(spark, 0, "number", published_at=moment))
    found = table.rows().to_pydict()
    assert found["number"] == list(range(ROWS))
    assert [moment is None for moment in found["published_at"]] == [number % 2 == 1 for number in range(ROWS)]


def test_a_folder_that_can_not_be_made_is_an_error_that_names_it(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    table.folder.write_text("a file is in the way")
    frame = rows(spark)
    action = action_for(table.document, frame)
    for _ in range(2):
        with pytest.raises(ActionError, match=str(table.folder)):
            action.write(frame, key())
    table.folder.unlink()
    assert action.write(frame, key()) == ROWS, "and works when it has gone"
    action.close()


def test_addresses_are_refused_where_folders_are_needed(spark: SparkSession, table: Table) -> None:
    setting = "warehouse" if "warehouse" in table.document else "path"
    with pytest.raises(ActionError, match=f"{setting}: s3://bucket/table is not a folder"):
        action_for({**table.document, setting: "s3://bucket/table"}, rows(spark))


def test_what_goes_wrong_with_the_rows_is_not_the_actions_fault(spark: SparkSession, table: Table) -> None:
    from pyspark.errors import PySparkException

    broken = rows(spark, 0, "number", "t", bad="if(id = 70, raise_error('the journal is gone'), 1)")
    action = action_for(table.document, broken)
    with pytest.raises(PySparkException, match="the journal is gone"):
        action.write(broken, key())
    assert action.write(rows(spark, 0, "number", "t", bad="1"), key()) == ROWS
    action.close()
    assert table.numbers() == list(range(ROWS))


def test_nothing_of_ours_is_left_beside_the_table(spark: SparkSession, table: Table) -> None:
    write(table.document, rows(spark))
    assert not list(table.folder.rglob("staging/*/*/*"))


def test_session_time_zones_change_nothing(spark: SparkSession, table: Table) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    write(table.document, rows(session, 0, "number", "published_at"))
    moments = table.rows()["published_at"]
    assert moments.type == pa.timestamp("us", tz="UTC")
    assert moments[0].as_py() == datetime.fromtimestamp(MIDNIGHT - ROWS / 2, UTC)

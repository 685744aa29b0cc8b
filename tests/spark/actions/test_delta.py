"""What is Delta's alone: partitions of one's own, statistics, small files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from brookmq.spark.actions import ActionError, delta
from tests.spark.actions.frames import QUERY, ROWS, action_for, key, rows, write
from tests.spark.actions.reading import delta_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def document(folder: Path, **settings: Any) -> dict[str, Any]:
    return {"type": "delta", "path": str(folder), **settings}


def test_the_log_has_the_query_and_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark), 7)
    assert DeltaTable(str(tmp_path)).transaction_version(QUERY) == 7


def test_the_log_has_statistics_by_which_readers_skip_files(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    actions = pa.table(DeltaTable(str(tmp_path)).get_add_actions(flatten=True)).to_pylist()
    assert sum(action["num_records"] for action in actions) == ROWS
    assert min(action["min.number"] for action in actions) == 0
    assert max(action["max.number"] for action in actions) == ROWS - 1
    assert {action["null_count.topic"] for action in actions} == {0}
    assert {str(action["partition.date"]) for action in actions} == {"2026-01-31", "2026-02-01"}


def test_a_reader_that_skips_files_finds_every_row(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    table = DeltaTable(str(tmp_path))
    for number in (0, 49, 50, 99):
        assert len(table.to_pyarrow_table(filters=[("number", "=", number)])) == 1
        (moment,) = delta_rows(tmp_path).sort_by("number").slice(number, 1)["published_at"].to_pylist()
        assert len(table.to_pyarrow_table(filters=[("published_at", "=", moment)])) == 1


def test_partitions_of_ones_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = rows(spark, 0, "number", site="element_at(array('nord/1', 'süd', NULL), cast(id % 3 + 1 AS int))",
                 hot="id % 2 = 0")  # fmt: skip
    write(document(tmp_path, partition_by=["site", "hot"]), frame)

    table = DeltaTable(str(tmp_path))
    assert table.metadata().partition_columns == ["site", "hot"]
    found = delta_rows(tmp_path).sort_by("number").to_pylist()
    assert [row["site"] for row in found[:4]] == ["nord/1", "süd", None, "nord/1"]
    assert [row["hot"] for row in found[:4]] == [True, False, True, False]
    assert table.to_pyarrow_table(filters=[("site", "=", "süd")]).num_rows == 33


def test_no_partitions_when_none_are_wanted(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path, partition_by=[]), rows(spark))
    assert DeltaTable(str(tmp_path)).metadata().partition_columns == []
    assert "date" not in delta_rows(tmp_path).column_names


def test_a_table_that_is_there_keeps_its_partitions(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path, partition_by=[]), rows(spark))
    assert write(document(tmp_path), rows(spark, 1), 1) == ROWS
    with pytest.raises(ActionError, match="it is partitioned by nothing, not by date"):
        write(document(tmp_path, partition_by=["date"]), rows(spark, 2), 2)


@pytest.mark.parametrize(
    ("partition_by", "expected"),
    [
        (["nowhere"], "can't be partitioned by 'nowhere', which is not a column of the rule"),
        (["t"], "can't be partitioned by 't', which is of type double"),
        (["number"], "no column but those that it is partitioned by"),
    ],
)
def test_partitions_that_can_not_be(
    spark: SparkSession, tmp_path: Path, partition_by: list[str], expected: str
) -> None:
    names = ["number"] if partition_by == ["number"] else ["number", "t"]
    with pytest.raises(ActionError, match=expected):
        action_for(document(tmp_path, partition_by=partition_by), rows(spark, 0, *names))


def test_a_table_that_somebody_else_made_is_written_to(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"number": pa.array([-1], pa.int64()), "note": ["by hand"]}))
    write(document(tmp_path), rows(spark, 0, "number", "t"))
    found = delta_rows(tmp_path).sort_by("number").to_pylist()
    assert found[0] == {"number": -1, "note": "by hand", "t": None}
    assert found[-1] == {"number": ROWS - 1, "note": None, "t": 9.9}


def test_others_may_write_between_two_batches(spark: SparkSession, tmp_path: Path) -> None:
    frame = rows(spark, 0, "number")
    action = action_for(document(tmp_path), frame)
    action.write(frame, key(0))
    write_deltalake(str(tmp_path), pa.table({"number": pa.array([-1], pa.int64())}), mode="append")
    action.write(rows(spark, 1, "number"), key(1))
    action.close()
    assert sorted(delta_rows(tmp_path)["number"].to_pylist()) == list(range(-1, 2 * ROWS))


def test_names_that_readers_of_delta_refuse(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ActionError, match=r"a column of it can't be named 'max\(t\)'"):
        action_for(document(tmp_path), rows(spark, 0, "number", **{"`max(t)`": "id"}))


def test_small_files_become_larger_ones_and_no_row_is_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "COMPACT_COMMITS", 3)
    frame = rows(spark)
    action = action_for(document(tmp_path), frame)
    files = []
    for batch in range(4):
        assert action.write(rows(spark, batch), key(batch)) == ROWS
        files.append(len(DeltaTable(str(tmp_path)).file_uris()))
    assert action.write(rows(spark, 3), key(3)) == 0, "what was written is still known"
    action.close()

    assert files[1] == 2 * files[0]
    assert files[2] == 2, "one for each day"
    assert files[3] == 2 + files[0]
    assert sorted(delta_rows(tmp_path)["number"].to_pylist()) == list(range(4 * ROWS))


def test_small_files_that_can_not_be_compacted_are_no_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delta, "COMPACT_COMMITS", 1)

    def refused(*_: object, **__: object) -> None:
        raise delta.DeltaError("not now")

    monkeypatch.setattr("deltalake.table.TableOptimizer.compact", refused)
    assert write(document(tmp_path), rows(spark)) == ROWS
    assert "small files stay as they are: not now" in caplog.text


def test_the_log_stays_short(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    assert DeltaTable(str(tmp_path)).metadata().configuration["delta.logRetentionDuration"] == "interval 1 days"

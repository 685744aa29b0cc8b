"""The table of last values, as a real Delta table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from brookmq.spark.actions.interface import ActionError, BatchKey
from brookmq.spark.pipeline import last_values
from brookmq.spark.pipeline.last_values import LastValues

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
KEYS = ("client_id", "topic")


def frame(spark: SparkSession, *rows: tuple[str | None, str, int, int, float], name: str = "Temp °C") -> DataFrame:
    """client id, topic, second, offset, value."""
    schema = f"client_id string, topic string, published_at timestamp, `offset` bigint, `{name}` double"
    return spark.createDataFrame(
        [
            (client, topic, NOON + timedelta(seconds=second), offset, value)
            for client, topic, second, offset, value in rows
        ],
        schema,
    )


def found(path: Path, column: str = "Temp °C") -> dict[tuple[str, str], Any]:
    rows = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    values = {(row["client_id"], row["topic"]): row[column] for row in rows}
    assert len(values) == len(rows)
    return values


def test_the_newest_row_of_each_device_and_topic(spark: SparkSession, tmp_path: Path) -> None:
    action = LastValues(str(tmp_path / "t"), KEYS)
    first = frame(spark, ("a", "x", 1, 1, 1.0), ("a", "x", 3, 3, 3.0), ("a", "x", 3, 2, 2.0), ("b", "x", 1, 4, 4.0))
    assert action.write(first, BatchKey("q", 0)) == 2
    assert found(tmp_path / "t") == {("a", "x"): 3.0, ("b", "x"): 4.0}
    second = frame(spark, ("a", "x", 2, 9, 9.0), ("b", "x", 5, 5, 5.0), (None, "x", 1, 6, 6.0))
    assert action.write(second, BatchKey("q", 1)) == 3
    assert found(tmp_path / "t") == {("a", "x"): 3.0, ("b", "x"): 5.0, ("", "x"): 6.0}  # what is older stays out


def test_a_batch_that_comes_again_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, ("a", "x", 1, 1, 1.0))
    assert LastValues(str(tmp_path), KEYS).write(rows, BatchKey("q", 7)) == 1
    version = DeltaTable(str(tmp_path)).version()
    again = LastValues(str(tmp_path), KEYS)
    assert again.write(rows, BatchKey("q", 7)) == 0
    assert again.write(rows, BatchKey("q", 6)) == 0
    assert DeltaTable(str(tmp_path)).version() == version
    assert again.write(frame(spark, ("a", "x", 2, 2, 2.0)), BatchKey("other", 0)) == 1
    assert found(tmp_path) == {("a", "x"): 2.0}


def test_nothing_makes_no_table(spark: SparkSession, tmp_path: Path) -> None:
    action = LastValues(str(tmp_path / "t"), KEYS)
    assert action.write(frame(spark), BatchKey("q", 0)) == 0
    assert not (tmp_path / "t").exists()


def test_a_field_that_comes_later_is_added(spark: SparkSession, tmp_path: Path) -> None:
    action = LastValues(str(tmp_path), KEYS)
    action.write(frame(spark, ("a", "x", 1, 1, 1.0)), BatchKey("q", 0))
    action.write(frame(spark, ("a", "x", 2, 2, 2.0), ("b", "x", 2, 3, 3.0), name="hum"), BatchKey("p", 0))
    assert found(tmp_path, "hum") == {("a", "x"): 2.0, ("b", "x"): 3.0}


def test_what_was_replaced_is_tidied_up(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_values, "TIDIED_EVERY", 3)
    monkeypatch.setattr(last_values, "KEPT_HOURS", 0)
    action = LastValues(str(tmp_path), KEYS)
    for batch in range(3):
        action.write(frame(spark, ("a", "x", batch, batch, float(batch))), BatchKey("q", batch))
    assert len(list(tmp_path.glob("*.parquet"))) == 1
    assert found(tmp_path) == {("a", "x"): 2.0}


def test_trouble_with_the_folder_is_the_tables(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    action = LastValues(str(tmp_path / "file"), KEYS)
    with pytest.raises(ActionError, match="file did not take the last values"):
        action.write(frame(spark, ("a", "x", 1, 1, 1.0)), BatchKey("q", 0))

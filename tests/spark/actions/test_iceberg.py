"""What is Iceberg's alone: the catalogue, partitions by day, snapshots that are forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from brookmq.spark.actions import ActionError, iceberg
from tests.spark.actions.frames import QUERY, ROWS, action_for, key, rows, write
from tests.spark.actions.reading import iceberg_catalog, iceberg_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def document(folder: Path, table: str = "lake.readings") -> dict[str, Any]:
    return {"type": "iceberg", "warehouse": str(folder), "table": table}


def test_the_table_has_the_query_and_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark), 7)
    with iceberg_catalog(tmp_path) as catalog:
        table = catalog.load_table("lake.readings")
        assert table.properties[f"brookmq.batch.{QUERY}"] == "7"
        (snapshot,) = table.snapshots()
        assert snapshot.summary is not None
        assert snapshot.summary.additional_properties[f"brookmq.batch.{QUERY}"] == "7"


def test_it_is_partitioned_by_day_without_a_column_for_it(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    with iceberg_catalog(tmp_path) as catalog:
        table = catalog.load_table("lake.readings")
        assert str(table.spec().fields[0].transform) == "day"
        day = table.scan(row_filter="published_at >= '2026-02-01T00:00:00+00:00'")
        assert day.to_arrow().num_rows == ROWS // 2
        assert len(list(day.plan_files())) < len(list(table.scan().plan_files()))
    assert "published_at_day" not in iceberg_rows(tmp_path).column_names


def test_tables_of_several_levels_share_a_catalogue(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path, "plant.hall.readings"), rows(spark))
    write(document(tmp_path, "plant.alarms"), rows(spark, 1))
    assert iceberg_rows(tmp_path, "plant.hall.readings").num_rows == ROWS
    assert min(iceberg_rows(tmp_path, "plant.alarms")["number"].to_pylist()) == ROWS


def test_old_snapshots_of_ours_are_forgotten_and_those_of_others_are_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg, "SNAPSHOTS_KEPT", 2)
    monkeypatch.setattr(iceberg, "SNAPSHOTS_MAX", 4)
    frame = rows(spark, 0, "number")
    action = action_for(document(tmp_path), frame)
    action.write(frame, key(0))
    with iceberg_catalog(tmp_path) as catalog:
        table = catalog.load_table("lake.readings")
        table.append(pa.table({"number": pa.array([-1], pa.int64())}))
        theirs = table.current_snapshot()
        assert theirs is not None
    for batch in range(1, 5):
        action.write(rows(spark, batch, "number"), key(batch))
    assert action.write(rows(spark, 4, "number"), key(4)) == 0, "what was written is still known"
    action.close()

    with iceberg_catalog(tmp_path) as catalog:
        table = catalog.load_table("lake.readings")
        kept = [snapshot.snapshot_id for snapshot in table.snapshots()]
        assert len(kept) <= 4
        assert theirs.snapshot_id in kept
    assert sorted(iceberg_rows(tmp_path)["number"].to_pylist()) == list(range(-1, 5 * ROWS))


def test_old_versions_of_the_metadata_go(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {**iceberg.PROPERTIES, "write.metadata.previous-versions-max": "2"}
    monkeypatch.setattr(iceberg, "PROPERTIES", properties)
    frame = rows(spark, 0, "number")
    action = action_for(document(tmp_path), frame)
    for batch in range(5):
        action.write(rows(spark, batch, "number"), key(batch))
    action.close()
    assert len(list(tmp_path.rglob("*.metadata.json"))) <= 3


def test_a_table_with_other_partitions_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = rows(spark, 0, "number", "topic")
    write(document(tmp_path), frame)
    with iceberg_catalog(tmp_path) as catalog, catalog.load_table("lake.readings").update_spec() as spec:
        spec.add_identity("topic")
    with pytest.raises(ActionError, match=r"partitioned by something else than day\(published_at\)"):
        write(document(tmp_path), frame, 1)


def test_a_rule_that_loses_the_time_of_a_partitioned_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write(document(tmp_path), rows(spark))
    with pytest.raises(ActionError, match=r"partitioned by day\(published_at\), which the rule has not"):
        write(document(tmp_path), rows(spark, 1, "number"), 1)

"""Statistics of files for Delta's log."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from brookmq.spark.actions.file_statistics import TEXT_CHARACTERS_MAX, file_statistics


def told(table: pa.Table, folder: Path, rows_per_group: int = 2) -> dict[str, Any]:
    file = folder / "file.parquet"
    pq.write_table(table, file, row_group_size=rows_per_group)
    return file_statistics(pq.read_metadata(file), table.schema)


def test_ends_are_those_of_all_row_groups(tmp_path: Path) -> None:
    moments = [datetime(2026, 1, day, 1, 2, 3, 4, tzinfo=UTC) for day in (5, 3, 9)]
    table = pa.table(
        {
            "whole": pa.array([5, -3, 9], pa.int64()),
            "text": ["m", "ä", None],
            "day": pa.array([date(2026, 1, 5), None, date(1969, 12, 31)], pa.date32()),
            "at": pa.array(moments, pa.timestamp("us", tz="UTC")),
        }
    )
    assert told(table, tmp_path) == {
        "numRecords": 3,
        "minValues": {"whole": -3, "text": "m", "day": "1969-12-31", "at": "2026-01-03T01:02:03.000004Z"},
        "maxValues": {"whole": 9, "text": "ä", "day": "2026-01-05", "at": "2026-01-09T01:02:03.000004Z"},
        "nullCount": {"whole": 0, "text": 1, "day": 1, "at": 0},
    }


def test_what_could_mislead_a_reader_is_left_out(tmp_path: Path) -> None:
    table = pa.table(
        {
            "number": pa.array([1.0, float("nan")]),
            "long_text": ["a", "b" * (TEXT_CHARACTERS_MAX + 1)],
            "flag": [True, False],
            "bytes": [b"1", b"2"],
            "exact": pa.array([Decimal("1.5"), None]),
            "far": pa.array([0, 2**60], pa.timestamp("us", tz="UTC")),
            "nothing": pa.array([None, None], pa.string()),
            "list": pa.array([[1], [2]]),
            "record": pa.array([{"x": 1}, {"x": 2}]),
        }
    )
    found = told(table, tmp_path)
    assert found["minValues"] == found["maxValues"] == {}
    assert found["nullCount"] == {
        "number": 0, "long_text": 0, "flag": 0, "bytes": 0, "exact": 1, "far": 0, "nothing": 2,
    }  # fmt: skip


def test_a_row_group_of_nulls_takes_nothing_from_the_others(tmp_path: Path) -> None:
    found = told(pa.table({"whole": pa.array([None, None, 4, 3], pa.int32())}), tmp_path)
    assert (found["minValues"], found["maxValues"], found["nullCount"]) == ({"whole": 3}, {"whole": 4}, {"whole": 2})


def test_a_column_with_a_dot_is_not_taken_for_one_in_a_record(tmp_path: Path) -> None:
    found = told(pa.table({"a.b": pa.array([1, 2])}), tmp_path)
    assert found["maxValues"] == {"a.b": 2}

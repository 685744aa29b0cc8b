"""What one task writes, without Spark around it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brookmq.spark.actions import files
from brookmq.spark.actions.files import FileTask, WrittenFile, file_name
from brookmq.spark.actions.interface import BatchKey

SCHEMA = pa.schema([("number", pa.int64())])


def run(task: FileTask, *tables: pa.Table) -> tuple[list[WrittenFile], str | None]:
    batches = [batch for table in tables for batch in table.to_batches()]
    rows = [row for batch in task(iter(batches)) for row in batch.to_pylist()]
    errors = [row["error"] for row in rows if row["error"] is not None]
    return [WrittenFile(**json.loads(row["file"])) for row in rows if row["file"]], errors[0] if errors else None


def task(folder: Path, *partition_by: str, schema: pa.Schema = SCHEMA) -> FileTask:
    if folder.exists():
        (folder / "try").mkdir(exist_ok=True)
    return FileTask(str(folder), "try", "part-x-7", partition_by, schema)


def test_rows_go_to_the_file_of_their_partition_in_their_order(tmp_path: Path) -> None:
    table = pa.table(
        {
            "number": [1, 2, 3, 4, 5],
            "date": pa.array([date(2026, 1, 1), date(2026, 1, 2), None, date(2026, 1, 1), date(2026, 1, 2)]),
            "on": [True, True, True, True, False],
        }
    )
    found, error = run(task(tmp_path, "date", "on"), table, table)

    assert error is None
    assert {file.path: pq.read_table(tmp_path / file.staged).to_pydict() for file in found} == {
        "date=2026-01-01/on=true/part-x-7-0-0.parquet": {"number": [1, 4, 1, 4]},
        "date=2026-01-02/on=true/part-x-7-0-1.parquet": {"number": [2, 2]},
        "date=__HIVE_DEFAULT_PARTITION__/on=true/part-x-7-0-2.parquet": {"number": [3, 3]},
        "date=2026-01-02/on=false/part-x-7-0-3.parquet": {"number": [5, 5]},
    }
    assert [file.partition for file in found] == [
        {"date": "2026-01-01", "on": "true"},
        {"date": "2026-01-02", "on": "true"},
        {"date": None, "on": "true"},
        {"date": "2026-01-02", "on": "false"},
    ]
    assert [file.rows for file in found] == [4, 2, 2, 2]
    assert found[0].size_bytes == (tmp_path / found[0].staged).stat().st_size
    assert found[0].statistics["numRecords"] == 4


def test_values_that_are_no_names_of_folders_have_folders_and_files_of_their_own(tmp_path: Path) -> None:
    table = pa.table({"number": [1, 2, 3], "topic": ["a/b", "a_b", "../../x"]})
    found, _ = run(task(tmp_path, "topic"), table)
    assert [file.path for file in found] == [
        "topic=a_b/part-x-7-0-0.parquet",
        "topic=a_b/part-x-7-0-1.parquet",
        "topic=.._.._x/part-x-7-0-2.parquet",
    ]
    assert [file.partition["topic"] for file in found] == ["a/b", "a_b", "../../x"]


def test_without_rows_there_is_no_file(tmp_path: Path) -> None:
    assert run(task(tmp_path), pa.table({"number": pa.array([], pa.int64())})) == ([], None)
    assert run(task(tmp_path)) == ([], None)
    assert list((tmp_path / "try").iterdir()) == []


def test_rows_get_the_types_of_the_table(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("list", pa.list_(pa.timestamp("us", tz="UTC")))])
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    zone = pa.timestamp("us", tz="Asia/Kolkata")
    table = pa.table({"at": pa.array([moment], zone), "list": pa.array([[moment]], pa.list_(zone))})
    (file,), _ = run(task(tmp_path, schema=schema), table)
    stored = pq.read_table(tmp_path / file.staged)
    assert stored.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert stored.to_pydict() == {"at": [moment], "list": [[moment]]}


def test_small_batches_share_row_groups_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 10)
    table = pa.table({"number": [1, 2, 3]})
    (file,), _ = run(task(tmp_path), *[table] * 9)
    footer = pq.read_metadata(tmp_path / file.staged)
    assert [footer.row_group(number).num_rows for number in range(footer.num_row_groups)] == [10, 2, 10, 2, 3]


def test_rows_that_wait_have_a_bound_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PENDING_BYTES_MAX", 100)
    found, _ = run(task(tmp_path, "part"), *[pa.table({"number": [1, 2], "part": ["a", "b"]})] * 13)
    footers = [pq.read_metadata(tmp_path / file.staged) for file in found]
    assert [footer.num_rows for footer in footers] == [13, 13]
    assert footers[0].num_row_groups > 1


def test_too_many_partitions_are_refused_and_the_rows_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PARTITIONS_MAX", 2)
    read = []

    def batches() -> Iterator[Any]:
        for number in range(4):
            read.append(number)
            yield from pa.table({"number": [number], "device": [f"d{number}"]}).to_batches()

    (answer,) = task(tmp_path, "device")(batches())
    assert answer.to_pylist() == [
        {"file": None, "error": "partition_by: device has more than 2 values in one batch"},
    ]
    assert read == [0, 1, 2, 3]


def test_a_folder_that_can_not_be_written_is_told_as_an_error(tmp_path: Path) -> None:
    found, error = run(task(tmp_path / "absent"), pa.table({"number": [1]}))
    assert found == []
    assert error is not None
    assert error.startswith("can't write files: ")
    assert "absent" in error


def test_what_goes_wrong_with_the_rows_themselves_comes_through(tmp_path: Path) -> None:
    def broken() -> Iterator[Any]:
        yield from pa.table({"number": [1]}).to_batches()
        raise OSError("the journal can't be read")

    with pytest.raises(OSError, match="the journal"):
        list(task(tmp_path)(broken()))


def test_names_of_files_tell_queries_apart() -> None:
    assert file_name(BatchKey("rule/a", 3)) != file_name(BatchKey("rule/b", 3))
    assert file_name(BatchKey("a query with / and ü", 12)).endswith("-12")
    assert file_name(BatchKey("a query with / and ü", 12)).isascii()

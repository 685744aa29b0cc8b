"""A process dies while it writes a batch: when the batch comes again, each row is there once, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.spark.actions.dying import POINTS, ROWS, Mortals, mortals
from tests.spark.actions.reading import delta_rows, iceberg_files, iceberg_rows, parquet_rows


@pytest.fixture(scope="module")
def processes() -> Iterator[Mortals]:
    with mortals() as found:
        yield found


def parquet(folder: Path) -> dict[str, Any]:
    return {"type": "parquet", "path": str(folder)}


def delta(folder: Path) -> dict[str, Any]:
    return {"type": "delta", "path": str(folder)}


def iceberg(folder: Path) -> dict[str, Any]:
    return {"type": "iceberg", "warehouse": str(folder), "table": "lake.readings"}


ACTIONS: dict[str, tuple[Callable[[Path], dict[str, Any]], Callable[[Path], pa.Table]]] = {
    "parquet": (parquet, parquet_rows),
    "delta": (delta, delta_rows),
    "iceberg": (iceberg, iceberg_rows),
}


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows["number"].to_pylist())


def files_of(kind: str, folder: Path) -> set[Path]:
    """The data files that the table knows."""
    if kind == "delta":
        return {folder / name for name in DeltaTable(str(folder)).get_add_actions()["path"].to_pylist()}
    if kind == "iceberg":
        return iceberg_files(folder)
    return {Path(name) for name in ds.dataset(folder, partitioning="hive").files}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("kind", ACTIONS)
def test_each_row_is_there_once_when_the_batch_comes_again(
    processes: Mortals, kind: str, point: str, tmp_path: Path
) -> None:
    write = processes.write
    document, read = ACTIONS[kind]
    folder = tmp_path / "table"
    assert write(document(folder), 0) == ROWS

    write(document(folder), 1, point)

    seen = numbers(read(folder))
    assert len(seen) == len(set(seen)), "nobody ever sees a row twice"
    if kind == "parquet" and point == "halfway":
        assert ROWS < len(seen) < 2 * ROWS
    else:
        before_commit = point != "committed" and not (kind == "parquet" and point == "published")
        assert len(seen) == (ROWS if before_commit else 2 * ROWS)

    assert write(document(folder), 1) == (0 if point == "committed" else ROWS)
    assert numbers(read(folder)) == list(range(2 * ROWS))
    assert set(seen) <= set(numbers(read(folder)))

    assert write(document(folder), 1) == 0, "and once more"
    assert write(document(folder), 2) == ROWS
    assert numbers(read(folder)) == list(range(3 * ROWS))
    assert set(folder.rglob("*.parquet")) == files_of(kind, folder), "what died left nothing behind"
    assert not [path for path in folder.rglob("staging/*/*") if path.is_dir()]


def test_every_file_that_a_reader_finds_is_whole(processes: Mortals, tmp_path: Path) -> None:
    for point in POINTS:
        folder = tmp_path / point
        processes.write(parquet(folder), 0, point)
        for file in folder.rglob("*.parquet"):
            assert pq.read_metadata(file).num_rows == ROWS // 2


def test_files_that_somebody_removed_before_the_commit_are_written_anew(processes: Mortals, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    processes.write(parquet(folder), 0, "halfway")
    for file in folder.rglob("*.writing"):
        file.unlink()

    assert processes.write(parquet(folder), 0) == ROWS
    assert numbers(parquet_rows(folder)) == list(range(ROWS))

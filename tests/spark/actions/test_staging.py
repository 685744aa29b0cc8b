"""One process at a time, and files of others are left alone. The steps themselves: test_dying.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from brookmq.spark.actions import staging
from brookmq.spark.actions.files import WrittenFile
from brookmq.spark.actions.interface import ActionError, BatchKey
from brookmq.spark.actions.staging import Staging, local_folder, locked, write_whole
from tests.spark.actions.local_frame import LocalFrame

TABLE = pa.table({"number": [1, 2, 3]})


class MemoryTable:
    """Knows its batches; fails when it is told to."""

    def __init__(self) -> None:
        self.batch = -1
        self.files: list[str] = []
        self.fails = False

    def committed(self, key: BatchKey) -> bool:
        return self.batch >= key.batch

    def commit(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        if self.fails:
            raise ActionError("not now")
        self.batch = key.batch
        self.files += [file.path for file in files]


def write(folder: Path, table: MemoryTable, batch: int, rows: pa.Table = TABLE) -> int:
    frame: Any = LocalFrame(rows)
    return Staging(folder, folder / "data").write_once(frame, BatchKey("q", batch), table, (), rows.schema)


def test_a_commit_that_failed_is_made_up_for_with_the_same_files(tmp_path: Path) -> None:
    table = MemoryTable()
    table.fails = True
    with pytest.raises(ActionError, match="not now"):
        write(tmp_path, table, 0)
    (file,) = (tmp_path / "data").iterdir()
    table.fails = False
    other = pa.table({"number": [9]})
    assert write(tmp_path, table, 0, other) == 3, "what was seen already is what counts"
    assert table.files == [file.name]
    assert list((tmp_path / "data").iterdir()) == [file]


def test_a_batch_that_was_given_up_leaves_nothing_in_staging(tmp_path: Path) -> None:
    table = MemoryTable()
    table.fails = True
    with pytest.raises(ActionError):
        write(tmp_path, table, 0)
    table.fails = False
    assert write(tmp_path, table, 1) == 3
    assert not [path for path in tmp_path.glob("_brookmq/staging/*/*") if path.is_dir()]


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    key = BatchKey("q", 0)
    place = tmp_path / "data" / f"part-{key.tag}-0-0-0.parquet"
    place.parent.mkdir()
    place.write_text("mine")
    with pytest.raises(ActionError, match="is there already, and not from this batch"):
        write(tmp_path, MemoryTable(), 0)
    assert place.read_text() == "mine"


def test_another_pipeline_that_holds_the_lock_is_told_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "LOCK_WAIT_S", 0.1)
    tag = BatchKey("q", 0).tag
    with (
        locked(tmp_path / "_brookmq" / "staging" / tag / "lock"),
        pytest.raises(ActionError, match="another pipeline is writing there"),
    ):
        write(tmp_path, MemoryTable(), 0)
    assert write(tmp_path, MemoryTable(), 0) == 3


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "one")
    write_whole(file, "two")
    assert file.read_text() == "two"
    assert list(tmp_path.iterdir()) == [file]


def test_folders_may_be_written_as_file_addresses() -> None:
    assert local_folder("file:///data/x", "path") == Path("/data/x")
    assert local_folder("x", "path").is_absolute()

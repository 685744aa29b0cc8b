"""The data folder of a pipeline."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.spark.pipeline.folder import OUTPUT_BYTES_MAX, DataFolder


def test_one_pipeline_at_a_time(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")
    assert first.previous_id is None
    with pytest.raises(OperationError, match="another pipeline runs with the folder"):
        DataFolder(tmp_path / "data")
    first.release()
    second = DataFolder(tmp_path / "data")
    assert second.previous_id == first.id != second.id
    assert str(tmp_path / "data" / "spark.log") in second.logging.read_text()
    second.release()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="can't be used"):
        DataFolder(tmp_path / "file")


def test_what_processes_print_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = DataFolder(tmp_path)
    with folder.output_kept():
        subprocess.run(["sh", "-c", "echo out; echo err >&2"], check=True)
    subprocess.run(["sh", "-c", "echo shown"], check=True)
    assert (tmp_path / "output.log").read_text() == "out\nerr\n"
    assert capfd.readouterr().out == "shown\n"
    (tmp_path / "output.log").write_bytes(bytes(OUTPUT_BYTES_MAX + 1))
    with folder.output_kept():
        subprocess.run(["echo", "again"], check=True)
    assert (tmp_path / "output.log").read_text() == "again\n"
    folder.release()

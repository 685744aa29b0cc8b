"""The data folder of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.spark.pipeline.folder import DataFolder


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

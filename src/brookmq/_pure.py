"""Which form of a hot module is loaded: compiled, or the plain Python beside it.

Python prefers ``name.so`` to ``name.py``. With ``BROOKMQ_PURE=1`` in the environment a finder in front of Python's own
turns that around for the modules of this package, so that the same checkout can be tested, profiled and debugged in
both forms. A module that exists only compiled (a ``.pyx`` without a plain twin) is then not found at all, as on a
machine without a compiler.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path
from types import ModuleType

PACKAGE = "brookmq"


@lru_cache(maxsize=64)  # one entry per folder of the package
def _source_finder(folder: str) -> FileFinder:
    return FileFinder(folder, (SourceFileLoader, list(SOURCE_SUFFIXES)))


class PureFinder(MetaPathFinder):
    """Finds modules of this package as source only."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith(PACKAGE + "."):
            return None
        for folder in path:
            spec = _source_finder(folder).find_spec(fullname)
            if spec is not None:
                return spec
        # None would hand the question on to Python's own finder, which takes the compiled file.
        raise ModuleNotFoundError(f"no plain Python form of {fullname}", name=fullname)


def asked_for() -> bool:
    return os.environ.get("BROOKMQ_PURE", "") not in {"", "0"}


def install() -> None:
    """Puts the finder in front when the environment asks for it; called before any other module is imported."""
    if asked_for() and not any(isinstance(finder, PureFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PureFinder())


def hot_modules() -> list[str]:
    """Names of all modules that can be compiled: those with a ``.pxd`` or ``.pyx``."""
    root = Path(__file__).parent
    files = {path.with_suffix("") for pattern in ("*.pxd", "*.pyx") for path in root.rglob(pattern)}
    return sorted(".".join((PACKAGE, *path.relative_to(root).parts)) for path in files)


def is_compiled(name: str) -> bool:
    """Whether an import of ``name`` would load (or did load) a compiled file.

    Its package is not imported for the answer: that of an extra may need what is not installed here.
    """
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else _find(name)
    return spec is not None and spec.origin is not None and spec.origin.endswith(tuple(EXTENSION_SUFFIXES))


def _find(name: str) -> ModuleSpec | None:
    folder = str(Path(__file__).parent.joinpath(*name.split(".")[1:-1]))
    try:
        if any(isinstance(finder, PureFinder) for finder in sys.meta_path):
            return PureFinder().find_spec(name, [folder])
        return PathFinder.find_spec(name, [folder])
    except ModuleNotFoundError:
        return None


def form() -> str:
    """``compiled``, ``plain Python``, or a mixture with the modules that run as plain Python."""
    names = hot_modules()
    plain = [name for name in names if not is_compiled(name)]
    if len(plain) == len(names):
        return "plain Python"
    if plain:
        return f"compiled, but plain Python: {', '.join(plain)}"
    return "compiled"

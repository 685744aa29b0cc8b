"""Both forms of the kernel in one process, whichever of them the package itself uses: each is loaded from its file."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import brookmq
from brookmq.mqtt import kernel

FOLDER = Path(brookmq.__file__).parent / "mqtt"


def _load(name: str, path: Path, loader: type[ExtensionFileLoader | SourceFileLoader]) -> ModuleType:
    spec = spec_from_file_location(name, path, loader=loader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain() -> ModuleType:
    return _load("tests.mqtt.plain_kernel", FOLDER / "kernel.py", SourceFileLoader)


def compiled() -> ModuleType | None:
    """None where there is no compiler."""
    if kernel.COMPILED:
        return kernel
    for suffix in EXTENSION_SUFFIXES:
        path = FOLDER / f"kernel{suffix}"
        if path.exists():
            return _load("brookmq.mqtt.kernel", path, ExtensionFileLoader)
    return None

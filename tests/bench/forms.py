"""Both forms of the load tool's byte work: the plain one, and the compiled one where it is there."""

from __future__ import annotations

import importlib
from types import ModuleType

import brookmq.bench.frames_plain as plain
from brookmq.bench import wire


def forms() -> list[ModuleType]:
    return [plain, importlib.import_module("brookmq.bench.frames")] if wire.COMPILED else [plain]

"""Nodes that run with one module of ours loaded first.

Used for what the command line does not offer: a mechanism of enhanced authentication (`tests.spec.mechanism`) and the
deliberately broken nodes (`tests/spec/broken/`). Production code has no switch for either.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.harness.node import Node

ROOT = Path(__file__).parents[2]


def start_patched(folder: Path, module: str, config: str = "") -> Node:
    """A node of the plain Python files (compiled ones cannot be changed) that imports `module` before it starts."""
    program: tuple[str, ...] = (sys.executable, "-c", f"import {module}; from brookmq.cli import main; main()")
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment: dict[str, Any] = {"BROOKMQ_PURE": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return Node(folder, config, program=program, environment=environment)

"""A results file: JSON that a person can read in a diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_results(content: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


def read_results(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content

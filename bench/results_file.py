"""A results file: JSON of a dataclass that a person can read in a diff."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any


class ResultsFile:
    """A base of dataclasses that are kept in a file of their own."""

    __slots__ = ()

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")  # type: ignore[call-overload]  # its subclasses are


def content_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content

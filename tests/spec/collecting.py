"""A pytest plugin that prints the statements of each collected test, for `tests.spec.statements`."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    printed: set[str] = set()
    for item in session.items:
        name = f"{Path(item.path).name}::{getattr(item, 'originalname', item.name)}"
        for mark in item.iter_markers():
            if mark.name in {"mqtt5", "mqtt311"}:
                printed.update(f"statement {mark.name} {number} {name}" for number in mark.args)
    print("\n" + "\n".join(sorted(printed)))

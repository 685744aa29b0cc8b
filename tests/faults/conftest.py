"""Every test here has a node of its own, since it is its memory, its files and its end that are looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.crowd import Crowd
from tests.harness.fixtures import client, make_node, raw

__all__ = ["client", "make_node", "raw"]


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    gathered = Crowd()
    yield gathered
    gathered.close()

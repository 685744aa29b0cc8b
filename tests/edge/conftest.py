"""Tests of the edge run on the event loop that the node runs on."""

from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from tests.edge.certificates import Authority
from tests.edge.loop import coroutine_tests

pytest_pyfunc_call = coroutine_tests(uvloop.new_event_loop)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(Path(tmp_path_factory.mktemp("certificates")))

"""The specification suite runs against the node of its worker, or against BROOKMQ_TEST_BROKER."""

from __future__ import annotations

import pytest

from tests.harness.fixtures import client, make_node, node, raw

__all__ = ["client", "make_node", "node", "raw"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mqtt5(*numbers): the statements of MQTT 5.0 that the test proves")
    config.addinivalue_line("markers", "mqtt311(*numbers): the statements of MQTT 3.1.1 that the test proves")

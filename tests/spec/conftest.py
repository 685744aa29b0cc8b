"""The specification suite runs against the node of its worker, or against BROOKMQ_TEST_BROKER."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.harness.fixtures import client, make_node, node, raw
from tests.harness.node import Node

__all__ = ["client", "make_node", "modest", "node", "raw"]

MODEST = """
[mqtt]
packet_size_max = 1000
client_id_length_max = 23
receive_max = 3
topic_alias_max = 0
qos_max = 1
retain_available = false
wildcard_available = false
shared_available = false
subscription_ids_available = false
payload_format_check = true
response_information = "answers/here"

[session]
expiry_max = 100

[http]
enable = false
"""


@pytest.fixture(scope="session")
def modest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that offers less than the specification allows, and says so in CONNACK."""
    if "BROOKMQ_TEST_BROKER" in os.environ:
        pytest.skip("needs a node with a configuration of its own")
    started = Node(tmp_path_factory.mktemp("modest"), MODEST)
    yield started
    started.stop()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "mqtt5(*numbers): the statements of MQTT 5.0 that the test proves")
    config.addinivalue_line("markers", "mqtt311(*numbers): the statements of MQTT 3.1.1 that the test proves")

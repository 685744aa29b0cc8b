"""The fixtures of tests that need a node: import them in the `conftest.py` of a folder that uses them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harness.node import Broker, Node, OtherBroker
from tests.harness.raw import Client, Stream

ClientMaker = Callable[..., Client]
NodeMaker = Callable[..., Node]

SHARED_CONFIG = """
[listeners.plain]
type = "tcp"
bind = "127.0.0.1:0"

[listeners.web]
type = "ws"
bind = "127.0.0.1:0"

[journal]
shards = 1
"""


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The node that the tests of one worker process share; its log must be clean at the end."""
    if "BROOKMQ_TEST_BROKER" in os.environ:
        yield OtherBroker()
        return
    shared = Node(tmp_path_factory.mktemp("node"), SHARED_CONFIG)
    try:
        yield shared
    finally:
        shared.stop()


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[NodeMaker]:
    """Starts nodes with a configuration of their own: `make_node('[mqtt]\\n…')`."""
    if "BROOKMQ_TEST_BROKER" in os.environ:
        pytest.skip("needs a node with a configuration of its own")
    count = 0
    with ExitStack() as started:  # each of them ends, whatever the others say

        def make(config: str = "", **options: Any) -> Node:
            nonlocal count
            node = Node(tmp_path / f"node{count}", config, **options)
            count += 1
            started.callback(node.stop)
            return node

        yield make


@pytest.fixture
def raw(request: pytest.FixtureRequest) -> Iterator[ClientMaker]:
    """Opens connections that have sent nothing yet; closed after the test."""
    clients: list[Client] = []

    def make(version: int = 5, *, to: Broker | None = None, stream: Stream | None = None) -> Client:
        broker = to or request.getfixturevalue("node")
        clients.append(Client(broker.mqtt, version, stream))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(raw: ClientMaker) -> ClientMaker:
    """Opens connections with CONNECT and CONNACK done: `client(5, clean=False, …)`."""

    def make(
        version: int = 5, client_id: str | bytes | None = None, *, to: Broker | None = None, **fields: Any
    ) -> Client:
        return raw(version, to=to).connect(client_id, **fields)

    return make

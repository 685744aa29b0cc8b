"""The broker, and clients of every library over every transport in every version."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.edge.loop import coroutine_tests
from tests.harness.fixtures import make_node as make_node
from tests.interop.aiomqtt_client import AiomqttClient
from tests.interop.broker import InteropBroker, running_broker
from tests.interop.client import Client
from tests.interop.gmqtt_client import GmqttClient
from tests.interop.paho_client import PahoClient

pytest_pyfunc_call = coroutine_tests(asyncio.new_event_loop)

LIBRARIES: dict[str, type[Client]] = {"paho": PahoClient, "gmqtt": GmqttClient, "aiomqtt": AiomqttClient}


class Kind(NamedTuple):
    """How a client connects."""

    library: str
    transport: str
    version: int

    def __str__(self) -> str:
        return f"{self.library}-{self.transport}-v{self.version}"


KINDS = [
    *(Kind("paho", transport, version) for transport in ("tcp", "tls", "ws", "wss") for version in (4, 5)),
    Kind("paho", "tcp", 3),
    *(Kind("gmqtt", transport, version) for transport in ("tcp", "tls") for version in (4, 5)),
    *(Kind("aiomqtt", transport, version) for transport in ("tcp", "tls", "ws") for version in (4, 5)),
]
KINDS_5 = [kind for kind in KINDS if kind.version == 5]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteropBroker]:
    with running_broker(tmp_path_factory.mktemp("interop")) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A part of the topic tree that no other test uses."""
    return f"interop/{uuid.uuid4().hex}"


Opener = Callable[..., Awaitable[Client]]


@pytest.fixture
def client(broker: InteropBroker) -> Opener:
    """`await client(kind, "name", **options)`: a connected client. The same name is the same client id."""
    numbers = itertools.count()
    prefix = uuid.uuid4().hex[:12]

    async def open_client(kind: Kind, name: str = "", **options: Any) -> Client:
        client_id = f"{prefix}{name or next(numbers)}"[:23]  # what every broker of MQTT 3.1 takes
        made = LIBRARIES[kind.library](broker.endpoints[kind.transport], kind.version, client_id, **options)
        await made.connect()
        return made

    return open_client

"""A real HTTP server over a node of a few dicts, on its own loop in its own thread, and a client to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from typing import Any, TypeVar

import httpx
import pytest
import uvloop

from brookmq.ops.login import HttpAuthenticator
from brookmq.ops.server import HttpServer
from tests.ops.memory_node import MemoryNode

Result = TypeVar("Result")
WAIT_S = 60.0  # only reached by a failure


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until something is so; fail if it does not come."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


class LoopThread:
    """An event loop in a thread, for servers that tests talk to from outside."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="ops-test-loop")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)

    def close(self) -> None:
        """Stop; what still runs on the loop then was left behind by whoever started it."""
        left_behind = self.run(_end_other_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_S)
        if not left_behind:
            self.loop.close()  # with a server that nobody stopped it would wait for ever
        assert not left_behind


async def _end_other_tasks() -> list[str]:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    return [repr(task) for task in tasks]


@pytest.fixture
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture
def memory_node() -> MemoryNode:
    return MemoryNode()


ServerMaker = Callable[..., tuple[HttpServer, str]]


@pytest.fixture
def make_server(loop_thread: LoopThread, memory_node: MemoryNode) -> Iterator[ServerMaker]:
    """Starts servers over the node; gives the server and its address."""
    with ExitStack() as stop_all:

        def make(
            host: str = "127.0.0.1", port: int = 0, authenticator: HttpAuthenticator | None = None
        ) -> tuple[HttpServer, str]:
            server = HttpServer(memory_node, host, port, authenticator=authenticator)
            address = loop_thread.run(server.start())
            stop_all.callback(lambda: loop_thread.run(server.stop()))
            return server, address

        yield make


@pytest.fixture
def address(make_server: ServerMaker) -> str:
    return make_server()[1]


@pytest.fixture
def api(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://{address}", timeout=WAIT_S, trust_env=False) as client:
        yield client

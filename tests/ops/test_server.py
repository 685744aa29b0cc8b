"""The server's life: its address, its start, its end."""

from __future__ import annotations

import json
import signal
import socket
from http import HTTPStatus

import httpx
import pytest

from brookmq.base.errors import OperationError
from brookmq.ops.server import HttpServer
from tests.ops.conftest import WAIT_S, LoopThread, ServerMaker, wait_until
from tests.ops.memory_node import MemoryNode


def test_port_0_is_any_free_one(make_server: ServerMaker) -> None:
    _, first = make_server()
    _, second = make_server()
    assert first != second
    assert httpx.get(f"http://{second}/healthz", trust_env=False).status_code == HTTPStatus.OK


def test_an_address_in_use_is_an_error_before_anything_is_promised(
    loop_thread: LoopThread, memory_node: MemoryNode
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = HttpServer(memory_node, "127.0.0.1", port)
        with pytest.raises(OperationError, match=rf"HTTP can't listen on 127\.0\.0\.1:{port}: Address already in use"):
            loop_thread.run(server.start())
        loop_thread.run(server.stop())


def test_a_host_that_is_not_there_is_such_an_error_too(loop_thread: LoopThread, memory_node: MemoryNode) -> None:
    with pytest.raises(OperationError, match=r"192\.0\.2\.1:0"):
        loop_thread.run(HttpServer(memory_node, "192.0.2.1", 0).start())


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6(make_server: ServerMaker) -> None:
    _, address = make_server("::1")
    assert address.startswith("[::1]:")
    assert httpx.get(f"http://{address}/api/v1/node", trust_env=False).status_code == HTTPStatus.OK


def test_signals_stay_with_the_node(make_server: ServerMaker) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    make_server()
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_open_streams_do_not_hold_up_the_end(make_server: ServerMaker, loop_thread: LoopThread) -> None:
    server, address = make_server()
    with httpx.stream("GET", f"http://{address}/api/v1/overview/stream", timeout=WAIT_S, trust_env=False) as stream:
        lines = stream.iter_lines()
        sample = json.loads(next(lines).removeprefix("data: "))
        assert sample["ready"] is True
        loop_thread.run(server.stop())
        assert [line for line in lines if line] == []


def test_a_request_that_hangs_is_cut_off(
    make_server: ServerMaker, loop_thread: LoopThread, memory_node: MemoryNode
) -> None:
    server, address = make_server()
    host, port = address.rsplit(":", 1)
    body = b'{"topic": "stuck"}'
    with socket.create_connection((host, int(port)), WAIT_S) as stream:
        head = f"POST /api/v1/publish HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        stream.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: memory_node.waiting)
        loop_thread.run(server.stop())


def test_stop_without_start_and_twice(loop_thread: LoopThread, memory_node: MemoryNode) -> None:
    server = HttpServer(memory_node, "127.0.0.1", 0)
    loop_thread.run(server.stop())
    loop_thread.run(server.start())
    loop_thread.run(server.stop())
    loop_thread.run(server.stop())

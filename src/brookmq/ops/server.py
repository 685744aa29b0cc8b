"""The node's HTTP server: uvicorn on the node's own event loop and on a socket of ours.

The node owns the process. So the server takes no signals and configures no logging, and it opens its socket itself:
port 0 works, and an address in use is an error of :meth:`HttpServer.start`, before the node says that it is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI
from starlette.types import Message

from brookmq.base.errors import OperationError
from brookmq.ops.app import create_app
from brookmq.ops.bounds import CONNECTIONS_MAX, HEADER_BYTES_MAX, KEEP_ALIVE_S, BoundedHttpProtocol
from brookmq.ops.history import History
from brookmq.ops.login import HttpAuthenticator, LoopbackOnly
from brookmq.ops.view import NodeView

STOP_WAIT_S = 2
"""How long requests under way may take to end once the node stops."""


class HttpServer:
    """Serves the API, the metrics and the pages of one node on one address."""

    def __init__(self, view: NodeView, host: str, port: int, *, authenticator: HttpAuthenticator | None = None) -> None:
        self._view = view
        self._host = host
        self._port = port
        self._authenticator = authenticator if authenticator is not None else LoopbackOnly()
        self._history: History | None = None
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen and serve; returns the address as ``host:port``. ``OperationError`` if it can't be had."""
        listening = _listen(self._host, self._port)
        self._history = History(self._view)
        app = create_app(self._view, self._authenticator, self._history)
        await _warm_up(app)
        self._server = _Server(_uvicorn_config(app))
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listening]), name="ops-http")
        await self._server.tried.wait()
        if not self._server.started:
            await self._serving  # raises what kept it from starting
        self._history.start()
        return _address(listening)

    async def stop(self) -> None:
        """Stop listening, end the streams, let requests under way finish within a bound."""
        if self._server is None or self._serving is None or self._history is None:
            return
        await self._history.stop()
        self._server.should_exit = True
        await self._serving
        self._server = self._serving = self._history = None


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with an event for "it listens, or failed to"."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.tried = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.tried.set()


async def _warm_up(app: FastAPI) -> None:
    """Ask for two pages of no interest before anybody listens.

    The framework puts itself together on its first request, which takes some 40 ms: now is better than in between
    the messages of clients.
    """

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Message) -> None:
        return None

    for path in ("/api/v1/node", "/healthz"):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
            "client": ("127.0.0.1", 0),
        }
        await app(scope, receive, send)


def _uvicorn_config(app: FastAPI) -> uvicorn.Config:
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    return uvicorn.Config(
        app,
        loop="none",
        http=BoundedHttpProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WAIT_S,
    )


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; binding here makes "in use" an error before anything is promised."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OperationError(f"HTTP can't listen on {_joined(host, port)}: {error.strerror or error}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen()
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise OperationError(f"HTTP can't listen on {_joined(host, port)}: {error.strerror or error}") from error
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return _joined(host, port)


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

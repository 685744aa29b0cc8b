"""What one HTTP connection may cost: a bounded body, a bounded header, a bounded wait.

The framework reads a body of any size at any pace and waits for ever for the first byte of a request. A node must not
grow, or run out of connections, because somebody does not finish a sentence.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import cast

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from brookmq.ops.errors import ApiError, error_response

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Room for a message of the default maximum packet size, base64-encoded, several times over."""

HEADER_BYTES_MAX = 32 * 1024
"""Request line and headers; a client id of 64 KiB is legal MQTT, but then the listing has to do."""

REQUEST_WAIT_S = 10.0
"""How long a new connection may take for the headers of its first request."""

BODY_WAIT_S = 30.0
"""How long a request may take to send its whole body."""

STREAMED = frozenset({("PUT", "/api/v1/data")})
"""Requests whose body is taken in as it comes, and may have any size; each piece of it has to come in time."""

KEEP_ALIVE_S = 5
"""How long a connection may stay idle between requests."""

CONNECTIONS_MAX = 512
"""Open HTTP connections; one more is answered with 503."""


class BoundedHttpProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn does it (h11 bounds the headers), with a limit on the wait for the first request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(REQUEST_WAIT_S, self._close_if_silent)

    def _close_if_silent(self) -> None:
        first_request = cast("object | None", self.cycle)
        if first_request is None and not self.transport.is_closing():
            self.transport.close()


class BoundedBodies:
    """Refuses bodies that are too long or too slow."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (scope["method"], scope["path"]) in STREAMED:
            with suppress(ClientDisconnect):  # in the middle of its body: there is nobody to answer
                await self._app(scope, _prompt(receive), send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > BODY_BYTES_MAX:
            response = error_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LONG, {"connection": "close"})
            await response(scope, receive, send)
            return
        with suppress(ClientDisconnect):
            await self._app(scope, _bounded(receive), send)


def _prompt(receive: Receive) -> Receive:
    """``receive`` with a limit on the wait for each piece of the body."""
    complete = False

    async def prompt_receive() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout(BODY_WAIT_S):
                message = await receive()
        except TimeoutError:
            raise ApiError(
                HTTPStatus.REQUEST_TIMEOUT, f"nothing came for {BODY_WAIT_S:.0f} s", {"connection": "close"}
            ) from None
        complete = not message.get("more_body", False)
        return message

    return prompt_receive


_TOO_LONG = f"a request may have {BODY_BYTES_MAX} bytes"


def _bounded(receive: Receive) -> Receive:
    """``receive`` with a count of the bytes and a deadline until the body is complete."""
    received_bytes = 0
    complete = False
    deadline = asyncio.get_running_loop().time() + BODY_WAIT_S

    async def bounded_receive() -> Message:
        nonlocal received_bytes, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise ApiError(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the request did not end within {BODY_WAIT_S:.0f} s",
                {"connection": "close"},
            ) from None
        received_bytes += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if received_bytes > BODY_BYTES_MAX:
            raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LONG, {"connection": "close"})
        return message

    return bounded_receive

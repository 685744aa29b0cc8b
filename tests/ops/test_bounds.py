"""What one HTTP connection may cost."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from brookmq.ops import bounds
from brookmq.ops.api.parameters import PAGE_ROWS_MAX
from brookmq.ops.bounds import KEEP_ALIVE_S
from brookmq.ops.history import WATCHERS_MAX
from tests.ops.conftest import WAIT_S

TOO_MANY = bounds.BODY_BYTES_MAX + 1


def connected(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), WAIT_S)


def everything(stream: socket.socket) -> bytes:
    """What comes until the other side closes."""
    received = b""
    while chunk := stream.recv(65536):
        received += chunk
    return received


def test_the_guide_has_these_limits() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "operations.md").read_text()
    limits = dict(
        re.findall(r"^\| ([^|]+) \| ([\d.]+)[^|]* \| [^|]+ \|$", guide.partition("## Limits")[2], re.MULTILINE)
    )
    assert limits == {
        "body of a request": str(bounds.BODY_BYTES_MAX // 2**20),
        "request line and headers": str(bounds.HEADER_BYTES_MAX // 2**10),
        "time for the headers of the first request": f"{bounds.REQUEST_WAIT_S:.0f}",
        "time for a whole body": f"{bounds.BODY_WAIT_S:.0f}",
        "time between requests on a connection": str(KEEP_ALIVE_S),
        "open HTTP connections": str(bounds.CONNECTIONS_MAX),
        "open overview pages": str(WATCHERS_MAX),
        "rows in a page": str(PAGE_ROWS_MAX),
    }


def test_a_body_that_says_it_is_too_long_is_not_read(address: str) -> None:
    with connected(address) as stream:
        head = f"POST /api/v1/publish HTTP/1.1\r\nHost: {address}\r\nContent-Length: {TOO_MANY}\r\n\r\n"
        stream.sendall(head.encode())
        answer = everything(stream)
    assert b"413" in answer.splitlines()[0]
    assert b'{"code":"too_large"' in answer


def test_a_body_that_turns_out_too_long_is_not_kept(api: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(bounds.BODY_BYTES_MAX // 65536 + 1):
            yield b" " * 65536

    response = api.post("/api/v1/publish", content=chunks(), headers={"content-type": "application/json"})
    assert response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert response.json()["code"] == "too_large"


def test_a_body_at_the_bound_is_read(api: httpx.Client) -> None:
    body = b'{"topic": "a"}'.ljust(bounds.BODY_BYTES_MAX)
    response = api.post("/api/v1/publish", content=body, headers={"content-type": "application/json"})
    assert response.status_code == HTTPStatus.OK


def test_a_body_that_does_not_come_is_given_up(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_WAIT_S", 0.1)
    with connected(address) as stream:
        head = f"POST /api/v1/publish HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        stream.sendall(f"{head}Content-Length: 100\r\n\r\nhalf".encode())
        answer = everything(stream)
    assert b"408" in answer.splitlines()[0]
    assert b'{"code":"request_timeout"' in answer


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_request_that_does_not_come_is_given_up(
    address: str, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "REQUEST_WAIT_S", 0.1)
    with connected(address) as stream:
        stream.sendall(beginning)
        assert everything(stream) == b""


def test_endless_headers_are_refused(address: str) -> None:
    with connected(address) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * (2 * bounds.HEADER_BYTES_MAX))
        assert b"400" in everything(stream).splitlines()[0]

"""Every error has the one shape."""

from __future__ import annotations

from http import HTTPStatus

import httpx
import pytest

from brookmq.base.errors import OperationError
from brookmq.ops.view import NodeInfo
from tests.ops.conftest import wait_until
from tests.ops.memory_node import MemoryNode

PROBES = [
    ("GET", "/nothing", HTTPStatus.NOT_FOUND, "not_found"),
    ("GET", "/api/v1/nothing", HTTPStatus.NOT_FOUND, "not_found"),
    ("GET", "/api/v1/clients/", HTTPStatus.NOT_FOUND, "not_found"),
    ("GET", "/api/docs/../secret", HTTPStatus.NOT_FOUND, "not_found"),
    ("GET", "/api/docs/redoc.standalone.js", HTTPStatus.NOT_FOUND, "not_found"),
    ("POST", "/healthz", HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed"),
    ("PATCH", "/api/v1/clients/a", HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed"),
    ("GET", "/api/v1/clients?limit=0", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients?limit=1001", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients?limit=many", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients?connected=perhaps", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients?after=!", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients?after=_w", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("POST", "/api/v1/publish", HTTPStatus.BAD_REQUEST, "bad_request"),
    ("GET", "/api/v1/clients/bug", HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"),
]


@pytest.mark.parametrize(("method", "path", "status", "code"), PROBES)
def test_the_one_shape(api: httpx.Client, method: str, path: str, status: HTTPStatus, code: str) -> None:
    response = api.request(method, path)
    assert response.status_code == status
    body = response.json()
    assert set(body) == {"code", "message"}
    assert body["code"] == code
    assert body["message"]
    assert "secret of the node" not in response.text


def test_broken_json_says_where(api: httpx.Client) -> None:
    response = api.post("/api/v1/publish", content=b'{"topic": ', headers={"content-type": "application/json"})
    assert response.json() == {"code": "bad_request", "message": "body: not JSON at character 10"}


def test_405_says_what_is_allowed(api: httpx.Client) -> None:
    assert "GET" in api.post("/api/v1/node").headers["allow"]


def test_what_the_node_can_not_do_now_is_503(
    api: httpx.Client, memory_node: MemoryNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_now() -> NodeInfo:
        raise OperationError("the store does not answer")

    monkeypatch.setattr(memory_node, "info", not_now)
    response = api.get("/api/v1/node")
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert response.json() == {"code": "unavailable", "message": "the store does not answer"}


def test_a_bug_is_in_the_log(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    api.get("/api/v1/clients/bug")
    wait_until(lambda: "a secret of the node" in caplog.text)


def test_readiness(api: httpx.Client, memory_node: MemoryNode) -> None:
    assert api.get("/readyz").json() == {"status": "ready"}
    memory_node.not_ready = "the listeners are not open yet"
    response = api.get("/readyz")
    assert response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert response.json() == {"code": "unavailable", "message": "the listeners are not open yet"}
    assert api.head("/readyz").status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert api.head("/healthz").status_code == HTTPStatus.OK

"""Who gets in."""

from __future__ import annotations

from http import HTTPStatus

import httpx
import pytest
from fastapi import Request

from brookmq.ops.errors import ApiError
from brookmq.ops.login import Identity, is_loopback
from tests.ops.conftest import ServerMaker


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "::ffff:127.0.0.1"])
def test_names_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "example.com", "localhost.example.com", "", "::ffff:10.0.0.1", "0.0.0.0"])
def test_names_of_others(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("path", ["/api/v1/node", "/metrics", "/api/v1/overview/stream"])
def test_a_page_that_points_its_own_name_here_gets_nothing(api: httpx.Client, path: str) -> None:
    response = api.get(path, headers={"host": "evil.example"})
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert response.json()["code"] == "forbidden"


def test_a_page_of_another_origin_can_not_act(api: httpx.Client) -> None:
    response = api.post("/api/v1/publish", json={"topic": "a"}, headers={"origin": "http://evil.example"})
    assert response.status_code == HTTPStatus.FORBIDDEN
    assert "evil.example" in response.json()["message"]


def test_a_form_of_another_page_can_not_publish(api: httpx.Client) -> None:
    response = api.post("/api/v1/publish", content=b'{"topic": "a"}', headers={"content-type": "text/plain"})
    assert response.status_code == HTTPStatus.BAD_REQUEST


def test_our_own_page_can(api: httpx.Client, address: str) -> None:
    response = api.post("/api/v1/publish", json={"topic": "a"}, headers={"origin": f"http://{address}"})
    assert response.status_code == HTTPStatus.OK


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_availability_needs_no_login(api: httpx.Client, path: str) -> None:
    assert api.get(path, headers={"host": "balancer.example"}).status_code == HTTPStatus.OK


class OneToken:
    """The smallest authenticator."""

    async def authenticate(self, request: Request) -> Identity:
        if request.headers.get("authorization") != "Bearer right":
            raise ApiError(HTTPStatus.UNAUTHORIZED, "log in first", {"www-authenticate": "Bearer"})
        return Identity("someone")


def test_an_authenticator_decides(make_server: ServerMaker) -> None:
    _, address = make_server(authenticator=OneToken())
    url = f"http://{address}/api/v1/node"
    refused = httpx.get(url, trust_env=False)
    assert refused.status_code == HTTPStatus.UNAUTHORIZED
    assert refused.json() == {"code": "unauthorized", "message": "log in first"}
    assert refused.headers["www-authenticate"] == "Bearer"
    assert httpx.get(url, headers={"authorization": "Bearer right"}, trust_env=False).status_code == HTTPStatus.OK

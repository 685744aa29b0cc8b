"""The pages for people, and the description of the API: complete, and without the internet."""

from __future__ import annotations

import base64
import hashlib
import re
from http import HTTPStatus
from typing import Any

import httpx
import pytest


def test_the_overview_needs_nothing_but_itself(api: httpx.Client) -> None:
    response = api.get("/")
    assert response.status_code == HTTPStatus.OK
    assert response.headers["content-type"].startswith("text/html")
    loaded = re.findall(r"""(?:src|href|url|import|fetch)\s*[=(]\s*["']?(\w+://[^"' )]+)""", response.text)
    assert loaded == []


def test_only_its_own_script_runs_in_the_overview(api: httpx.Client) -> None:
    response = api.get("/")
    (script,) = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    source_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = response.headers["content-security-policy"]
    assert f"script-src 'sha256-{source_hash}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "innerHTML" not in script


def test_what_the_overview_reads_is_there(api: httpx.Client) -> None:
    page = api.get("/").text
    paths = set(re.findall(r'"(/api/v1/[^"]+)"', page))
    assert len(paths) == 4
    for path in paths:
        with api.stream("GET", path) as response:
            assert response.status_code == HTTPStatus.OK


def test_the_documentation_comes_from_the_node(api: httpx.Client) -> None:
    page = api.get("/api/docs").text
    files = re.findall(r'(?:src|href)="([^"]+)"', page)
    local = [file for file in files if not file.startswith("data:")]
    assert sorted(local) == ["/api/docs/swagger-ui-bundle.js", "/api/docs/swagger-ui.css"]
    for file in local:
        assert len(api.get(file).content) > 100_000


def operations(api: httpx.Client) -> list[tuple[str, str, dict[str, Any]]]:
    paths = api.get("/api/openapi.json").json()["paths"]
    return [(path, method, operation) for path, methods in paths.items() for method, operation in methods.items()]


def test_every_operation_is_described(api: httpx.Client) -> None:
    described = operations(api)
    assert {"/api/v1/node", "/metrics", "/healthz", "/readyz", "/api/v1/publish"} <= {path for path, _, _ in described}
    ids = [operation["operationId"] for _, _, operation in described]
    assert len(set(ids)) == len(ids)
    for _, _, operation in described:
        assert operation["description"]
        assert {"4XX", "5XX"} <= set(operation["responses"])
        assert "422" not in operation["responses"]


@pytest.mark.parametrize("value", ["", "0", "-1", "1e9", "%00", "%ff", "a" * 5000, "%F0%9F%98%80", "true", "../.."])
def test_no_parameter_makes_the_node_fail(api: httpx.Client, value: str) -> None:
    for path, method, operation in operations(api):
        if method != "get" or path.endswith("/stream"):
            continue
        filled = re.sub(r"\{\w+\}", lambda _: value.replace("/", "%2F") or "x", path)
        names = [parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
        query = "&".join(f"{name}={value}" for name in names)
        response = api.get(f"{filled}?{query}")
        assert response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (path, query)

"""Names in paths: whatever a client calls itself, it can be addressed."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.ops.names import _decode_but_slashes, name_from_path
from tests.ops.memory_node import MemoryNode


@given(st.text().filter(lambda name: not any("\ud800" <= char <= "\udfff" for char in name)))
def test_a_name_survives_the_path(name: str) -> None:
    segment = _decode_but_slashes(quote(name, safe=""))
    assert "/" not in segment
    assert name_from_path(segment) == name


@pytest.mark.parametrize("name", ["room/7", "a%2Fb", "100%", "a b", "ü/ö", "x/subscriptions", "a//b", "?#&"])
def test_such_clients_can_be_shown_and_kicked(api: httpx.Client, memory_node: MemoryNode, name: str) -> None:
    memory_node.add_client(name)
    memory_node.add_subscription(name, "a/b")
    path = f"/api/v1/clients/{quote(name, safe='')}"
    assert api.get(path).json()["client_id"] == name
    assert [row["client_id"] for row in api.get(f"{path}/subscriptions").json()["items"]] == [name]
    assert api.delete(path).status_code == HTTPStatus.NO_CONTENT
    assert api.get(path).status_code == HTTPStatus.NOT_FOUND

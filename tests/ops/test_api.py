"""The resources of the API over a real server."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from brookmq.ops.view import AlarmInfo, PublishProperties, PublishRequest
from tests.ops.memory_node import STARTED_AT, MemoryNode

V1 = "/api/v1"


def rows_of(api: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """All rows of a listing, followed to its end."""
    rows: list[dict[str, Any]] = []
    after = ""
    while True:
        page = api.get(V1 + path, params={"after": after, **query}).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        after = page["next"]


def test_node(api: httpx.Client) -> None:
    node = api.get(f"{V1}/node").json()
    assert node["name"] == "brookmq@127.0.0.1"
    assert node["started_at"] == "2026-01-02T03:04:05Z"
    assert node["connections_fit"] == 65000
    assert node["listeners"][0] == {
        "name": "default",
        "kind": "tcp",
        "address": "127.0.0.1:1883",
        "connections": 3,
        "connections_max": 1000,
    }


def test_clients_page_by_page(api: httpx.Client, memory_node: MemoryNode) -> None:
    ids = [f"client-{number:03}" for number in range(25)]
    for client_id in reversed(ids):
        memory_node.add_client(client_id)
    first = api.get(f"{V1}/clients", params={"limit": 10}).json()
    assert [row["client_id"] for row in first["items"]] == ids[:10]
    assert [row["client_id"] for row in rows_of(api, "/clients", limit=10)] == ids


def test_clients_by_search_and_state(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_client("Pump-1", username="alice")
    memory_node.add_client("pump-2", connected=False)
    memory_node.add_client("valve", username="pumpkin")
    assert [row["client_id"] for row in rows_of(api, "/clients", search="pump")] == ["Pump-1", "pump-2", "valve"]
    assert [row["client_id"] for row in rows_of(api, "/clients", connected=False)] == ["pump-2"]


def test_one_client(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_client("a", connected=False)
    detail = api.get(f"{V1}/clients/a").json()
    assert detail["connected"] is False
    assert detail["address"] is None
    assert detail["bytes_sent"] == 2000
    assert detail["disconnected_at"] == "2026-01-02T03:06:05Z"


def test_kick(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_client("a")
    assert api.delete(f"{V1}/clients/a").status_code == HTTPStatus.NO_CONTENT
    assert "a" not in memory_node.table
    again = api.delete(f"{V1}/clients/a")
    assert again.status_code == HTTPStatus.NOT_FOUND
    assert again.json() == {"code": "not_found", "message": "no client 'a' on this node"}


def test_subscriptions(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_client("a")
    memory_node.add_subscription("a", "x/#", 1)
    memory_node.add_subscription("a", "y")
    memory_node.add_subscription("b", "y", 2)
    every = rows_of(api, "/subscriptions", limit=1)
    assert [(row["client_id"], row["filter"], row["qos"]) for row in every] == [
        ("a", "x/#", 1),
        ("a", "y", 0),
        ("b", "y", 2),
    ]
    assert [row["filter"] for row in rows_of(api, "/subscriptions", client_id="a")] == ["x/#", "y"]
    assert [row["client_id"] for row in rows_of(api, "/subscriptions", filter="y")] == ["a", "b"]
    assert [row["filter"] for row in rows_of(api, "/clients/a/subscriptions")] == ["x/#", "y"]
    assert api.get(f"{V1}/clients/b/subscriptions").status_code == HTTPStatus.NOT_FOUND


def test_topics(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_subscription("a", "y")
    memory_node.add_subscription("b", "y")
    memory_node.add_subscription("b", "x/#")
    assert rows_of(api, "/topics") == [{"filter": "x/#", "subscribers": 1}, {"filter": "y", "subscribers": 2}]
    assert rows_of(api, "/topics", match="y") == [{"filter": "y", "subscribers": 2}]


def test_retained(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_retained("room/7", b"warm")
    memory_node.add_retained("/binary", b"\xff\x00")
    listed = rows_of(api, "/retained")
    assert [(row["topic"], row["payload_bytes"]) for row in listed] == [("/binary", 2), ("room/7", 4)]
    assert "payload" not in listed[0]
    message = api.get(f"{V1}/retained/room%2F7").json()
    assert (message["payload"], message["payload_encoding"]) == ("warm", "plain")
    message = api.get(f"{V1}/retained/%2Fbinary").json()
    assert (message["payload"], message["payload_encoding"]) == ("/wA=", "base64")
    assert api.delete(f"{V1}/retained/room%2F7").status_code == HTTPStatus.NO_CONTENT
    assert api.get(f"{V1}/retained/room%2F7").status_code == HTTPStatus.NOT_FOUND
    assert api.delete(f"{V1}/retained/room%2F7").status_code == HTTPStatus.NOT_FOUND


def test_publish(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.add_subscription("a", "room/7")
    body = {
        "topic": "room/7",
        "payload": "zażółć",
        "qos": 1,
        "retain": True,
        "properties": {
            "payload_format": 1,
            "message_expiry_s": 60,
            "content_type": "text/plain",
            "response_topic": "answers",
            "correlation_data": base64.b64encode(b"\x01\x02").decode(),
            "user": [["a", "1"], ["b", "2"], ["a", "3"]],
        },
    }
    assert api.post(f"{V1}/publish", json=body).json() == {"receivers": 1}
    properties = PublishProperties(1, 60, "text/plain", "answers", b"\x01\x02", (("a", "1"), ("b", "2"), ("a", "3")))
    assert memory_node.published == [PublishRequest("room/7", "zażółć".encode(), 1, True, properties)]


def test_publish_bytes(api: httpx.Client, memory_node: MemoryNode) -> None:
    body = {"topic": "a", "payload": base64.b64encode(bytes(range(256))).decode(), "payload_encoding": "base64"}
    assert api.post(f"{V1}/publish", json=body).status_code == HTTPStatus.OK
    assert memory_node.published[0].payload == bytes(range(256))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({}, "body.topic: Field required"),
        ({"topic": ""}, "body.topic: String should have at least 1 character"),
        ({"topic": "a", "qos": 3}, "body.qos: Input should be less than or equal to 2"),
        ({"topic": "a", "qoss": 1}, "body.qoss: Extra inputs are not permitted"),
        ({"topic": "a", "payload": "?", "payload_encoding": "base64"}, "body.payload: not base64"),
        ({"topic": "a", "payload": "\ud800"}, "body.payload: a lone surrogate is not a character"),
        (
            {"topic": "\ud800"},
            "body.topic: Input should be a valid string, unable to parse raw data as a unicode string",
        ),
        ({"topic": "a/#"}, "a topic name has no wildcards (MQTT reason 0x90)"),
    ],
)
def test_publish_what_is_wrong(api: httpx.Client, body: dict[str, Any], complaint: str) -> None:
    response = api.post(f"{V1}/publish", content=json.dumps(body), headers={"content-type": "application/json"})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.json() == {"code": "bad_request", "message": complaint}


def test_metrics(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.counted["messages_sent"] = 7
    answer = api.get(f"{V1}/metrics").json()
    assert answer["counters"]["messages_sent"] == 7
    assert answer["gauges"]["loop_lag_s"] == 0.001


def test_alarms(api: httpx.Client, memory_node: MemoryNode) -> None:
    memory_node.raised = [AlarmInfo("plugin_off", "audit was switched off", STARTED_AT + timedelta(seconds=1))]
    assert api.get(f"{V1}/alarms").json() == [
        {"name": "plugin_off", "message": "audit was switched off", "raised_at": "2026-01-02T03:04:06Z"}
    ]


def test_log_level(api: httpx.Client, memory_node: MemoryNode) -> None:
    assert api.get(f"{V1}/log-level").json() == {"level": "info"}
    assert api.put(f"{V1}/log-level", json={"level": "debug"}).json() == {"level": "debug"}
    assert memory_node.level == "debug"
    assert api.put(f"{V1}/log-level", json={"level": "loud"}).status_code == HTTPStatus.BAD_REQUEST


def test_recent_clients_are_the_newest(api: httpx.Client, memory_node: MemoryNode) -> None:
    for number in range(20):
        memory_node.add_client(f"c{number}")
    recent = api.get(f"{V1}/overview/clients").json()
    assert [row["client_id"] for row in recent] == [f"c{number}" for number in range(19, 9, -1)]

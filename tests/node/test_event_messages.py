"""Events of a real node as MQTT messages: seen by subscribers, captured, and nobody else's to publish."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from typing import Any

import httpx
import pytest

from brookmq.base.events import EVENTS, columns_of
from tests.harness import wire
from tests.harness.fixtures import NodeMaker, make_node
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Kind, Property

__all__ = ["make_node"]  # a fixture

CONFIG = """
[journal]
capture = ["$events/#"]
shards = 2
"""
SMALL_QUEUES = """
[session]
queue_count_max = 1
inflight_max = 1
"""
NOT_AUTHORIZED = 0x87
WAIT_S = 60.0
TYPES = {"string": (str, type(None)), "int": int, "bigint": int, "double": float}


def event_of(packet: Any) -> dict[str, Any]:
    """What a message says; its columns are those of the list, each of its type."""
    event: dict[str, Any] = json.loads(packet.payload)
    assert packet.topic.decode() == f"$events/{event['event']}"
    columns = columns_of(event["event"])
    assert list(event) == list(columns)
    for column, value in event.items():
        assert isinstance(value, TYPES[columns[column]]), column
    assert abs(event["at"] - time.time()) < 60
    return event


def until(client: Client, name: str, **wanted: object) -> dict[str, Any]:
    """The next event of a name that says this; others may come in between."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        event = event_of(client.take())
        if event["event"] == name and wanted.items() <= event.items():
            return event
    raise AssertionError(f"no {name}")


def test_the_life_of_a_client(make_node: NodeMaker) -> None:
    node = make_node(CONFIG)
    with Client(node.mqtt).connect("watcher") as watcher:
        watcher.subscribe("$events/#", qos=1)
        device = Client(node.mqtt)
        device.connect("device", username="who", props=[(Property.SESSION_EXPIRY, 100)])
        created = until(watcher, "session_created", client_id="device")
        assert (created["username"], created["protocol_version"], created["listener"]) == ("who", 5, "default")
        assert created["node"] in node.ready
        until(watcher, "client_online", client_id="device", address=created["address"])
        device.subscribe("a/+", qos=1)
        until(watcher, "subscribed", client_id="device", filter="a/+", qos=1)
        device.unsubscribe("a/+")
        until(watcher, "unsubscribed", client_id="device", filter="a/+")
        device.disconnect()
        until(watcher, "client_offline", client_id="device", reason=0)
        device = Client(node.mqtt)
        device.connect("device", clean=False)
        until(watcher, "session_resumed", client_id="device")
        until(watcher, "client_online", client_id="device")
        device.disconnect(props=[(Property.SESSION_EXPIRY, 0)])
        until(watcher, "session_ended", client_id="device")
        first, other = captured(node)
    assert first > 8, "they are in the journal"
    assert other == 0, "and in one order"


def ready(node: Node) -> None:
    deadline = time.monotonic() + WAIT_S
    url = "http://{}:{}/readyz".format(*node.http)
    while httpx.get(url, timeout=WAIT_S, trust_env=False).status_code != HTTPStatus.OK:
        assert time.monotonic() < deadline


def captured(node: Node) -> list[int]:
    """How many messages each shard has."""
    with httpx.Client(base_url="http://{}:{}".format(*node.http), timeout=WAIT_S, trust_env=False) as http:
        return [shard["end"] for shard in http.get("/api/v1/journal").json()["shards"]]


def test_wildcards_in_front_do_not_match_and_no_client_publishes_events(make_node: NodeMaker) -> None:
    node = make_node("")
    ready(node)
    with Client(node.mqtt).connect() as everything, Client(node.mqtt).connect() as liar:
        everything.subscribe("#", "+/client_online", qos=1)
        with Client(node.mqtt) as somebody:
            somebody.connect("somebody").disconnect()
        answer = liar.publish("$events/client_online", b"{}", qos=1)
        assert answer is not None
        assert answer.reason == NOT_AUTHORIZED
        everything.expect_nothing()
    assert not any(captured(node)), "nobody wants them"


def test_drops_are_counted_by_reason(make_node: NodeMaker) -> None:
    node = make_node(SMALL_QUEUES)
    with Client(node.mqtt).connect("watcher") as watcher, Client(node.mqtt).connect("full") as full:
        watcher.subscribe("$events/message_dropped", qos=1)
        full.subscribe("a", qos=1)
        with Client(node.mqtt).connect() as publisher:
            for _ in range(20):
                publisher.publish("a", b"x", qos=1)
        event = until(watcher, "message_dropped")
        assert event["reason"] == "queue_full"
        assert 1 <= event["count"] <= 18
        full.send(wire.acknowledge(Kind.PUBACK, full.expect(Kind.PUBLISH).packet_id))


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_is_described(name: str) -> None:
    event = EVENTS[name]
    assert event.about
    assert not event.columns.keys() & {"event", "at", "node"}
    assert list(columns_of(name))[:3] == ["event", "at", "node"]

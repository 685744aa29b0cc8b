"""A real node, started as a user starts it, seen and steered over HTTP."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from brookmq.ops.ctl import ctl
from tests.harness.fixtures import NodeMaker, make_node
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Property
from tests.ops.conftest import WAIT_S, wait_until
from tests.ops.test_api import rows_of
from tests.ops.test_metrics import parsed

__all__ = ["make_node"]  # a fixture

ADMINISTRATIVE_ACTION = 0x98
EXIT_CONFIGURATION = 2


@pytest.fixture
def running(make_node: NodeMaker) -> Node:
    return make_node()


@pytest.fixture
def http(running: Node) -> Iterator[httpx.Client]:
    host, port = running.http
    with httpx.Client(base_url=f"http://{host}:{port}", timeout=WAIT_S, trust_env=False) as client:
        yield client


@pytest.fixture
def device(running: Node) -> Iterator[Client]:
    """A client with a slash in its name whose session lives on for ten minutes."""
    with Client(running.mqtt) as client:
        yield client.connect("room/7", keep_alive=30, props=[(Property.SESSION_EXPIRY, 600)])


def test_the_node_says_what_it_is(running: Node, http: httpx.Client) -> None:
    node = http.get("/api/v1/node").json()
    assert node["name"] in running.ready
    (listener,) = node["listeners"]
    assert listener["address"] == "{}:{}".format(*running.mqtt)
    wait_until(lambda: http.get("/readyz").json() == {"status": "ready"})
    assert http.get("/healthz").status_code == HTTPStatus.OK


def test_a_client_is_seen_and_kicked(http: httpx.Client, device: Client) -> None:
    device.subscribe("a/+", "$share/group/b", qos=1)
    (row,) = rows_of(http, "/clients", search="ROOM")
    assert (row["client_id"], row["connected"], row["protocol_version"]) == ("room/7", True, 5)
    assert row["subscriptions"] == 2
    detail = http.get("/api/v1/clients/room%2F7").json()
    assert detail["session_expiry_s"] == 600
    assert detail["keep_alive_s"] == 30
    assert detail["bytes_received"] > 0
    assert [row["client_id"] for row in http.get("/api/v1/overview/clients").json()] == ["room/7"]
    filters = [row["filter"] for row in rows_of(http, "/clients/room%2F7/subscriptions")]
    assert filters == ["$share/group/b", "a/+"]
    assert rows_of(http, "/subscriptions", filter="a/+")[0]["qos"] == 1
    assert {row["filter"] for row in rows_of(http, "/topics", match="a/x")} == {"a/+"}
    assert http.delete("/api/v1/clients/room%2F7").status_code == HTTPStatus.NO_CONTENT
    device.expect_closed(ADMINISTRATIVE_ACTION)
    assert http.get("/api/v1/clients/room%2F7").status_code == HTTPStatus.NOT_FOUND
    assert http.delete("/api/v1/clients/room%2F7").status_code == HTTPStatus.NOT_FOUND


def test_a_session_whose_client_is_away_is_seen(http: httpx.Client, device: Client) -> None:
    device.disconnect()
    (row,) = rows_of(http, "/clients", connected=False)
    assert row["address"].startswith("127.0.0.1:")  # where it was last seen
    assert row["disconnected_at"] is not None
    assert http.delete("/api/v1/clients/room%2F7").status_code == HTTPStatus.NO_CONTENT
    assert rows_of(http, "/clients") == []


def test_publishing_reaches_subscribers_with_everything(http: httpx.Client, device: Client) -> None:
    device.subscribe("a/#", qos=1)
    body = {
        "topic": "a/b",
        "payload": "hello",
        "qos": 1,
        "properties": {"content_type": "text/plain", "user": [["k", "1"], ["k", "2"]], "message_expiry_s": 100},
    }
    assert http.post("/api/v1/publish", json=body).json() == {"receivers": 1}
    message = device.take()
    assert (message.topic, message.payload, message.qos) == (b"a/b", b"hello", 1)
    assert message.get(Property.CONTENT_TYPE) == "text/plain"
    assert message.all(Property.USER_PROPERTY) == [("k", "1"), ("k", "2")]
    assert 98 <= message.number(Property.MESSAGE_EXPIRY) <= 100


@pytest.mark.parametrize("topic", ["a/#", "+", "$SYS/broker/version", "a\u0000b"])
def test_what_a_client_may_not_publish_nobody_may(http: httpx.Client, topic: str) -> None:
    response = http.post("/api/v1/publish", json={"topic": topic})
    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert response.json()["code"] == "bad_request"


def test_retained_messages(http: httpx.Client) -> None:
    topics = [f"floor/{number}" for number in range(25)]
    for topic in topics:
        http.post("/api/v1/publish", json={"topic": topic, "payload": "on", "retain": True})
    listed = rows_of(http, "/retained", match="floor/+", limit=10)
    assert sorted(row["topic"] for row in listed) == sorted(topics)
    message = http.get("/api/v1/retained/floor%2F3").json()
    assert (message["payload"], message["payload_encoding"]) == ("on", "plain")
    assert http.delete("/api/v1/retained/floor%2F3").status_code == HTTPStatus.NO_CONTENT
    assert http.get("/api/v1/retained/floor%2F3").status_code == HTTPStatus.NOT_FOUND


def test_figures_count_what_happened(http: httpx.Client, device: Client) -> None:
    device.subscribe("a", qos=1)
    for _ in range(3):
        http.post("/api/v1/publish", json={"topic": "a", "qos": 1})
    device.take_payloads(3)
    families = parsed(http.get("/metrics").text)
    assert float(families["brookmq_connections"][2]) == 1
    assert int(families["brookmq_messages_sent_total"][2]) == 3
    assert float(families["brookmq_resident_memory_bytes"][2]) > 1e6
    figures = http.get("/api/v1/metrics").json()
    assert figures["counters"]["subscribes"] == 1
    assert figures["gauges"]["subscriptions"] == 1


def test_what_the_overview_page_shows_is_there(http: httpx.Client) -> None:
    wait_until(lambda: http.get("/api/v1/overview/samples").json())
    sample = http.get("/api/v1/overview/samples", params={"last": 1}).json()[0]
    page = http.get("/").text
    assert set(re.findall(r'gauge\("(\w+)"\)', page)) <= set(sample["gauges"])
    assert set(re.findall(r"rates\.(\w+)", page)) <= set(sample["rates"])


@pytest.mark.parametrize("request_line", ["POST /api/v1/publish/exactly-once/q/0", "PUT /api/v1/data"])
def test_who_leaves_within_a_request_is_no_error(running: Node, http: httpx.Client, request_line: str) -> None:
    host, port = running.http
    with socket.create_connection(running.http, WAIT_S) as stream:
        head = f"{request_line} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/vnd.brookmq.rows\r\n"
        stream.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        assert http.get("/healthz").is_success  # the node has seen it
    assert http.get("/healthz").is_success
    assert running.stop() == 0  # and its log has no complaint


def test_what_is_no_backup_is_the_sender_s_mistake(http: httpx.Client) -> None:
    deadline = time.monotonic() + WAIT_S
    while not http.get("/readyz").is_success:  # without its store a node takes no backup at all
        assert time.monotonic() < deadline
    answer = http.put("/api/v1/data", content=b"something else, and enough of it to see that")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert "not a backup of BrookMQ" in answer.json()["message"]


def test_the_log_level_changes(running: Node, http: httpx.Client) -> None:
    assert http.get("/api/v1/log-level").json() == {"level": "info"}
    assert http.put("/api/v1/log-level", json={"level": "debug"}).json() == {"level": "debug"}


def test_ctl(running: Node, http: httpx.Client, device: Client) -> None:
    def run(*arguments: str) -> Result:
        url = "http://{}:{}".format(*running.http)
        result = CliRunner().invoke(ctl, arguments, env={"BROOKMQ_URL": url})
        assert result.exit_code == 0, result.output
        return result

    device.subscribe("a/b", qos=1)
    wait_until(lambda: http.get("/api/v1/overview/samples").json())
    assert json.loads(run("status", "--json").stdout)["ready"] is True
    assert "connections\t1 (" in run("status").stdout
    assert run("clients", "list").stdout.splitlines()[1].startswith("room/7\t")
    assert "subscriptions\ta/b (QoS 1)" in run("clients", "show", "room/7").stdout
    assert run("topics", "list").stdout.splitlines()[1:] == ["a/b\t1"]
    assert run("publish", "a/b", "-m", "x", "-q", "1").stdout == "published to 1 subscription\n"
    assert device.take_payloads(1) == [b"x"]
    assert run("clients", "kick", "room/7").stdout == "kicked\n"
    device.expect_closed(ADMINISTRATIVE_ACTION)


def test_an_http_port_in_use_is_one_line_and_exit_code_2(running: Node, tmp_path: Path) -> None:
    address = "{}:{}".format(*running.http)
    done = subprocess.run(
        [sys.executable, "-m", "brookmq", "start", "--mqtt", "127.0.0.1:0", "--http", address, "--data-dir", tmp_path],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == EXIT_CONFIGURATION
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"HTTP can't listen on {address}: Address already in use" in line

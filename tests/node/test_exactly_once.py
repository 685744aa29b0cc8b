"""Rows over HTTP to a real node that is killed in between: each of them once at a kept QoS 2 subscriber."""

from __future__ import annotations

import random
import struct
import threading
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from tests.harness import wire
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Property

ROWS = "application/vnd.brookmq.rows"
KEPT = [(Property.SESSION_EXPIRY, 1000), (Property.RECEIVE_MAXIMUM, 1000)]
WAIT_S = 60.0
TOPICS = 9


def post(http: httpx.Client, batch: int, first: int, last: int) -> httpx.Response:
    """Rows of a partition, both ends included."""
    packets = [
        wire.publish(f"out/{row % TOPICS}", b"%d:%d" % (batch, row), qos=2, packet_id=1)
        for row in range(first, last + 1)
    ]
    body = struct.pack(">qq", batch, first) + b"".join(packets)
    return http.post("/publish/exactly-once/my%2Fquery/3", content=body, headers={"content-type": ROWS})


def api(node: Node) -> httpx.Client:
    return httpx.Client(base_url="http://{}:{}/api/v1".format(*node.http), timeout=WAIT_S, trust_env=False)


def subscriber(node: Node) -> Client:
    return Client(node.mqtt).connect("kept", clean=False, props=KEPT)


def test_repeats_are_dropped_and_a_restart_remembers(tmp_path: Path) -> None:
    node = Node(tmp_path)
    try:
        with subscriber(node) as client, api(node) as http:
            client.subscribe("out/#", qos=2)
            assert http.get("/publish/exactly-once/my%2Fquery/3").json() == {"batch": -1, "row": -1}
            assert post(http, 0, 0, 499).json() == {"batch": 0, "row": 499}
            assert post(http, 0, 0, 499).json() == {"batch": 0, "row": 499}
            assert sorted(client.take_payloads(500)) == sorted(b"0:%d" % row for row in range(500))
            assert post(http, 0, 490, 509).json() == {"batch": 0, "row": 509}
            assert sorted(client.take_payloads(10)) == [b"0:%d" % row for row in range(500, 510)]
            client.expect_nothing()
            body = bytes(16) + b"\xc0\x00"
            wrong = http.post("/publish/exactly-once/q/0", content=body, headers={"content-type": ROWS})
            assert wrong.status_code == HTTPStatus.BAD_REQUEST
            assert "row 0: not a PUBLISH packet" in wrong.json()["message"]
        assert node.stop() == 0
        node = Node(tmp_path)
        with api(node) as http:
            assert http.get("/publish/exactly-once/my%2Fquery/3").json() == {"batch": 0, "row": 509}
            assert http.get("/publish/exactly-once/my%2Fquery/4").json() == {"batch": -1, "row": -1}
            assert post(http, 0, 0, 509).json() == {"batch": 0, "row": 509}
        with subscriber(node) as client:
            client.expect_nothing()
    finally:
        node.stop()


def killed_runs(tmp_path: Path, kills: int, seed: int) -> None:
    """A driver sends batches of 1,000 rows in requests of 250 and begins a batch anew when it got no answer."""
    chance = random.Random(seed)
    node = Node(tmp_path)
    try:
        with subscriber(node) as client:
            client.subscribe("out/#", qos=2)
        batch = killed = 0
        while batch <= kills:
            timer = threading.Timer(chance.uniform(0.0, 0.25), node.process.kill) if killed < kills else None
            with api(node) as http:
                try:
                    if timer is not None:
                        timer.start()
                    for first in range(0, 1000, 250):
                        answer = post(http, batch, first, first + 249).json()
                        assert answer["batch"] == batch
                        assert answer["row"] >= first + 249, "more when it was answered before the node died"
                    batch += 1
                except httpx.TransportError:
                    pass
            if timer is not None:
                timer.join()
                killed += 1
                node.kill()
                node = Node(tmp_path)
        expected = sorted(b"%d:%d" % (number, row) for number in range(batch) for row in range(1000))
        with subscriber(node) as client:
            assert sorted(client.take_payloads(len(expected))) == expected
            client.expect_nothing()
    finally:
        node.stop()


def test_kill_9_in_between(tmp_path: Path) -> None:
    killed_runs(tmp_path, 4, 1)


@pytest.mark.long
def test_kill_9_twenty_times(tmp_path: Path) -> None:
    killed_runs(tmp_path, 20, 2)

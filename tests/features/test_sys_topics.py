"""docs/guide/sys-topics.md: the page lists exactly what a node publishes, and the figures are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from brookmq.node.load_averages import LoadAverages
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Client

PREFIX = "$SYS/broker/"
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "sys-topics.md"
# What Mosquitto 2.0 publishes, but for the three kinds that the page says are missing.
USUAL = {
    *(f"bytes/{way}" for way in ("received", "sent")),
    *(f"messages/{way}" for way in ("received", "sent", "stored")),
    *(f"publish/messages/{way}" for way in ("received", "sent", "dropped")),
    *(f"clients/{kind}" for kind in ("active", "connected", "disconnected", "inactive", "maximum", "total")),
    *(f"store/messages/{what}" for what in ("bytes", "count")),
    *("retained messages/count", "shared_subscriptions/count", "subscriptions/count", "uptime", "version"),
    *(
        f"load/{what}/{window}"
        for what in (
            *("bytes/received", "bytes/sent", "connections", "messages/received", "messages/sent"),
            *("publish/dropped", "publish/received", "publish/sent", "sockets"),
        )
        for window in ("1min", "5min", "15min")
    ),
}


def _documented() -> set[str]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


@pytest.fixture
def quick(make_node: NodeMaker) -> Node:
    return make_node("[sys_topics]\ninterval = 1\n")


def _round(client: Client, count: int) -> dict[str, str]:
    """The values of one round: the next `count` messages."""
    taken = [client.take() for _ in range(count)]
    return {got.topic.decode().removeprefix(PREFIX): got.payload.decode() for got in taken}


def test_the_page_lists_what_a_node_publishes(quick: Node, client: ClientMaker) -> None:
    documented = _documented()
    assert documented == USUAL
    watcher = client(to=quick)
    watcher.subscribe("$SYS/#")
    first = [watcher.take() for _ in documented]
    assert {got.topic.decode().removeprefix(PREFIX) for got in first} == documented
    assert all(got.retain and got.qos == 0 for got in first)


def test_the_figures(quick: Node, client: ClientMaker) -> None:
    topics = len(_documented())
    watcher = client(to=quick)
    worker = client(5, "worker", to=quick)
    worker.subscribe("$share/g/a", "b", qos=1)
    for _ in range(5):
        watcher.publish("a", b"x", qos=1)
    worker.take_payloads(5)
    worker.sync()
    before = 1 + 5 + 5  # CONNECT and PUBLISH packets of one, acknowledgements of the other: no fewer than that
    watcher.subscribe("$SYS/#", retain_handling=2)
    figures = _round(watcher, topics)
    assert figures["version"].startswith("BrookMQ version ")
    assert re.fullmatch(r"\d+ seconds", figures["uptime"])
    assert figures["clients/connected"] == figures["clients/total"] == "2"
    assert figures["clients/disconnected"] == "0"
    assert figures["publish/messages/received"] == "5"
    assert int(figures["publish/messages/sent"]) >= 5
    assert figures["publish/messages/dropped"] == "0"
    assert int(figures["messages/received"]) >= before
    assert int(figures["bytes/received"]) > 50
    assert figures["subscriptions/count"] == "3"
    assert figures["shared_subscriptions/count"] == "1"
    assert figures["retained messages/count"] == str(topics)
    assert float(figures["load/publish/received/1min"]) > float(figures["load/publish/received/15min"]) > 0


def test_switched_off(client: ClientMaker, make_node: NodeMaker) -> None:
    watcher = client(to=make_node("[sys_topics]\nenable = false\n"))
    watcher.subscribe("$SYS/#")
    watcher.expect_nothing()


def test_a_steady_rate_is_the_load_average() -> None:
    load = LoadAverages(0.0)
    averages: dict[str, float] = {}
    for step in range(1, 721):  # two hours, 2 events a second
        averages = dict(load.update({"x": step * 20}, step * 10.0))
    assert averages == pytest.approx({"x/1min": 120.0, "x/5min": 120.0, "x/15min": 120.0}, rel=1e-3)


def test_a_burst_fades_at_the_speed_of_each_window() -> None:
    load = LoadAverages(0.0)
    load.update({"x": 600}, 10.0)
    after_a_minute = load.update({"x": 600}, 70.0)
    assert after_a_minute["x/1min"] == pytest.approx(3600 * (1 - 0.84648) * 0.36788, rel=1e-3)
    assert after_a_minute["x/15min"] == pytest.approx(3600 * (1 - 0.98895) * 0.93551, rel=1e-3)


def test_a_clock_that_goes_backwards_changes_nothing() -> None:
    load = LoadAverages(100.0)
    before = dict(load.update({"x": 10}, 110.0))
    assert load.update({"x": 20}, 50.0) == before
    assert load.update({"x": 20}, 120.0)["x/1min"] > 0

"""What a store that does not answer means to clients: who needs it waits for `store.wait`, everybody else goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import KEPT, Kind
from tests.node.watching import WatchedStore, until

QUOTA_EXCEEDED = 0x97
WAIT_SECONDS = 2.0
CONFIG = f'[store]\nwait = "{WAIT_SECONDS}s"'


@pytest.fixture
def node(make_node: NodeMaker) -> Node:
    return make_node(CONFIG)


@pytest.fixture
def watched(node: Node) -> Iterator[WatchedStore]:
    with WatchedStore(node) as watching:
        watching.until_ready()
        yield watching


def away(client: ClientMaker, node: Node, client_id: str) -> None:
    """A session that is kept, whose client is not there."""
    reader = client(5, client_id, to=node, **KEPT)
    reader.subscribe("kept/#", qos=2)
    reader.disconnect()


def back(client: ClientMaker, node: Node, client_id: str) -> Client:
    return client(5, client_id, to=node, **KEPT)


@pytest.mark.parametrize(("qos", "kind"), [(1, Kind.PUBACK), (2, Kind.PUBREC)])
def test_mqtt_5_is_told_after_the_wait(
    watched: WatchedStore, node: Node, client: ClientMaker, qos: int, kind: Kind
) -> None:
    away(client, node, "reader")
    publisher = client(5, to=node)
    publisher.publish("kept/a", b"before", qos=qos)
    store = watched.has_store()
    store.suspend()
    try:
        begin = time.monotonic()
        publisher.send(wire.publish("kept/a", b"meanwhile", qos=qos, packet_id=77))
        answer = publisher.expect(kind)
        took = time.monotonic() - begin
        assert (answer.packet_id, answer.reason) == (77, QUOTA_EXCEEDED)
        assert took >= WAIT_SECONDS * 0.9
        print(f"0x97 after {took:.2f} s")
        publisher.sync()
    finally:
        store.resume()
    watched.until_ready()
    publisher.publish("kept/a", b"after", qos=qos)
    received = back(client, node, "reader")
    got = [received.take().payload]
    while got[-1] != b"after":
        got.append(received.take().payload)
    assert got in ([b"before", b"after"], [b"before", b"meanwhile", b"after"]), "no answer proves nothing"


@pytest.mark.parametrize("qos", [1, 2])
def test_mqtt_3_gets_no_acknowledgement_and_is_closed(
    watched: WatchedStore, node: Node, client: ClientMaker, qos: int
) -> None:
    away(client, node, "reader")
    publisher = client(4, to=node)
    store = watched.has_store()
    store.suspend()
    try:
        publisher.send(wire.publish("kept/a", b"meanwhile", qos=qos, packet_id=77, version=4))
        publisher.expect_closed()
    finally:
        store.resume()


def test_who_needs_no_store_goes_on(watched: WatchedStore, node: Node, client: ClientMaker) -> None:
    away(client, node, "reader")
    publisher, subscriber = client(5, to=node), client(4, to=node)
    subscriber.subscribe("live/#", qos=2)
    store = watched.has_store()
    store.suspend()
    try:
        for number in range(20):
            for qos in (0, 1, 2):
                publisher.publish("live/a", b"%d" % number, qos=qos)
                assert subscriber.take().payload == b"%d" % number
        client(5, to=node).subscribe("live/#", qos=1)  # and newcomers
    finally:
        store.resume()


def test_a_restart_of_the_store_is_waited_for(watched: WatchedStore, node: Node, client: ClientMaker) -> None:
    """kill -9 of the store: an acknowledgement comes a moment later, and means what it says."""
    away(client, node, "reader")
    publisher = client(5, to=node)
    for number in range(5):
        restarts = watched.counter("store_restarts")
        watched.has_store().kill()
        answer = publisher.publish("kept/a", b"%d" % number, qos=1)
        assert answer is not None
        assert answer.reason < 0x80
        until(lambda: watched.counter("store_restarts") > restarts, "a new one serves")  # noqa: B023
    reader = back(client, node, "reader")
    assert [reader.take().payload for _ in range(5)] == [b"%d" % number for number in range(5)]


def test_what_was_acknowledged_is_there_after_kill_9_of_the_node(
    make_node: NodeMaker, node: Node, client: ClientMaker
) -> None:
    away(client, node, "reader")
    publisher = client(5, to=node)
    for number in range(20):
        publisher.publish("kept/a", b"%d" % number, qos=1 + number % 2)
    node.kill()
    again = make_node(CONFIG, arguments=("--data-dir", str(node.folder / "data")))
    reader = back(client, again, "reader")
    assert reader.connack.session_present
    assert [reader.take().payload for _ in range(20)] == [b"%d" % number for number in range(20)]

"""Connections that say nothing, too little or nothing any more end by themselves, and only those."""

from __future__ import annotations

import socket
import time

import pytest

from tests.faults.watching import Watched, wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.websocket import WebSocketStream
from tests.harness.wire import PINGREQ, Kind, Property

CONNECT_TIMEOUT = 1.0
KEEP_ALIVE = 1
PATIENCE_SECONDS = 60.0  # only reached by a failure
KEEP_ALIVE_TIMEOUT = 0x8D

CONFIG = """
[mqtt]
connect_timeout = "1s"

[listeners.plain]
type = "tcp"
bind = "127.0.0.1:0"

[listeners.web]
type = "ws"
bind = "127.0.0.1:0"
"""


@pytest.fixture
def node(make_node: NodeMaker) -> Node:
    return make_node(CONFIG)


def seconds_to_end(connection: Client) -> float:
    began = time.monotonic()
    connection.read_to_end()
    return time.monotonic() - began


def test_a_connection_without_connect_ends(node: Node, raw: ClientMaker) -> None:
    assert seconds_to_end(raw(to=node)) >= CONNECT_TIMEOUT - 0.1


def test_half_a_connect_ends(node: Node, raw: ClientMaker) -> None:
    seconds_to_end(raw(to=node).send(wire.connect("half")[:-1]))


def test_a_connect_byte_by_byte_ends_in_the_same_time(node: Node, raw: ClientMaker) -> None:
    dripping = raw(to=node)
    dripping.stream.socket.settimeout(0.05)
    ended = False
    for byte in wire.connect("x" * 200):
        dripping.send(bytes([byte]))
        try:
            ended = dripping.stream.socket.recv(1) == b""
        except TimeoutError:
            continue  # the pace of the drip
        except ConnectionResetError:
            ended = True
        break
    assert ended


def test_a_websocket_without_connect_ends(node: Node, raw: ClientMaker) -> None:
    assert node.websocket is not None
    seconds_to_end(raw(to=node, stream=WebSocketStream(node.websocket)))


def test_a_websocket_request_byte_by_byte_ends(node: Node) -> None:
    assert node.websocket is not None
    began = time.monotonic()
    with socket.create_connection(node.websocket) as dripping:
        dripping.settimeout(0.05)
        ended = False
        while not ended:
            assert time.monotonic() - began <= PATIENCE_SECONDS
            try:
                dripping.send(b"G")
                ended = dripping.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_peer_that_vanished_ends_at_one_and_a_half_keep_alives(node: Node, client: ClientMaker, version: int) -> None:
    watcher = client(to=node)
    watcher.subscribe("will")
    vanished = client(version, to=node, keep_alive=KEEP_ALIVE, will=wire.Will("will"))
    began = time.monotonic()
    vanished.expect_closed(KEEP_ALIVE_TIMEOUT)
    assert time.monotonic() - began >= 1.5 * KEEP_ALIVE - 0.1
    assert watcher.take().payload == b"will"
    with Watched(node) as watched:
        assert watched.counter("keep_alive_timeouts") == 1


def test_a_peer_that_vanished_with_its_buffers_full_ends_as_well(node: Node, client: ClientMaker) -> None:
    """Its last DISCONNECT can't be delivered: it is cut off, and leaves nothing behind."""
    stuck = client(to=node, keep_alive=KEEP_ALIVE)
    stuck.subscribe("t")
    publisher = client(to=node)
    with Watched(node) as watched:
        while not watched.counter("keep_alive_timeouts"):
            publisher.publish("t", bytes(10_000))
        wait_until(lambda: watched.gauge("transports") == 1, "the stuck one was cut off")
        assert watched.gauge("sessions") == watched.gauge("connections") == 1


def test_any_packet_keeps_a_connection_and_keep_alive_0_needs_none(node: Node, client: ClientMaker) -> None:
    alive, silent = client(to=node, keep_alive=KEEP_ALIVE), client(to=node, keep_alive=0)
    gone = client(to=node, keep_alive=2 * KEEP_ALIVE)  # ends later than the others would
    with Watched(node) as watched:
        while not watched.counter("keep_alive_timeouts"):
            alive.publish("t")
        assert watched.gauge("connections") == 2
    gone.expect_closed(KEEP_ALIVE_TIMEOUT)
    alive.sync()
    silent.sync()


def test_a_server_keep_alive_holds_for_clients_that_asked_for_none(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[mqtt]\nkeep_alive_max = "1s"')
    told = client(5, to=node, keep_alive=0)
    assert told.connack.number(Property.SERVER_KEEP_ALIVE) == KEEP_ALIVE
    untold = client(4, to=node, keep_alive=0)
    told.expect_closed(KEEP_ALIVE_TIMEOUT)
    untold.expect_closed()


def test_a_peer_held_up_by_a_full_subscriber_is_not_called_silent(make_node: NodeMaker, client: ClientMaker) -> None:
    """It has sent its PINGREQ in time; that nobody reads it is our doing."""
    node = make_node('[edge]\npatience = "3s"')
    stuck, publisher = client(to=node), client(to=node, keep_alive=KEEP_ALIVE)
    stuck.subscribe("t")
    with Watched(node) as watched:
        while not watched.counter("publishers_paused"):
            publisher.send(wire.publish("t", bytes(10_000)))
        publisher.send(PINGREQ)
        wait_until(lambda: watched.counter("subscribers_lagging"), "patience is used up")
        assert publisher.expect(Kind.PINGRESP)
        assert watched.counter("keep_alive_timeouts") == 0

"""SIGTERM and SIGINT: every client is told, every socket is closed, and the process ends in time, whoever is there."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

import pytest

from tests.faults.crowd import Crowd, make_room
from tests.faults.watching import Watched, wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Address, ClosedError
from tests.harness.wire import Kind

SERVER_SHUTTING_DOWN = 0x8B
CONNECTIONS = 1_000
DRAIN_TIME = 2.0
GRACE = 2.0  # seconds beyond the drain time
CONFIG = '[edge]\ndrain_time = "2s"'


def wait_for_end(node: Node, began: float) -> float:
    """The node ends with exit code 0 and a clean log; gives the seconds since ``began``."""
    assert node.process.wait(DRAIN_TIME + 10) == 0, node.log()
    node.check_log()
    return time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_thousand_clients_are_told_and_let_go(make_node: NodeMaker, crowd: Crowd, number: signal.Signals) -> None:
    node = make_node(CONFIG)
    clients = crowd.gather(CONNECTIONS, node.mqtt, "t/%i")
    began = time.monotonic()
    os.killpg(node.process.pid, number)  # as a terminal does: to the group
    for client in clients:
        client.expect_closed(SERVER_SHUTTING_DOWN)  # MQTT 3 has no DISCONNECT from a server
    assert wait_for_end(node, began) < DRAIN_TIME + GRACE


def test_clients_that_do_not_read_hold_nothing_up(make_node: NodeMaker, crowd: Crowd, client: ClientMaker) -> None:
    node = make_node(CONFIG)
    crowd.gather(100, node.mqtt, "t")
    publisher = client(to=node)
    with Watched(node) as watched:
        while watched.counter("subscribers_lagging") < 100:
            publisher.publish("t", bytes(10_000))
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    publisher.expect_closed(SERVER_SHUTTING_DOWN)
    assert wait_for_end(node, began) < DRAIN_TIME + GRACE


def test_without_a_drain_time_the_end_is_at_once(make_node: NodeMaker, crowd: Crowd, client: ClientMaker) -> None:
    node = make_node('[edge]\ndrain_time = "0s"')
    crowd.gather(20, node.mqtt, "t")
    publisher = client(to=node)
    with Watched(node) as watched:
        while watched.counter("subscribers_lagging") < 20:
            publisher.publish("t", bytes(10_000))
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    assert wait_for_end(node, began) < GRACE


def test_a_stop_in_the_middle_of_connects(make_node: NodeMaker) -> None:
    """Whoever is between two steps when the signal comes: accepted, half a CONNECT, or just in."""
    node = make_node(CONFIG)
    make_room(2_000)
    over = threading.Event()
    storm = threading.Thread(target=keep_connecting, args=(node.mqtt, over))
    storm.start()
    try:
        with Watched(node) as watched:
            wait_until(lambda: watched.gauge("connections") > 100, "the storm has begun")
        began = time.monotonic()
        node.process.send_signal(signal.SIGTERM)
        assert wait_for_end(node, began) < DRAIN_TIME + GRACE
    finally:
        over.set()
        storm.join()


def keep_connecting(address: Address, over: threading.Event) -> None:
    opened: list[socket.socket] = []
    whole = wire.connect("")
    with contextlib.suppress(OSError), contextlib.ExitStack() as all_of_them:
        while not over.is_set() and len(opened) < 1_500:
            opened.append(all_of_them.enter_context(socket.create_connection(address)))
            step = len(opened) % 3
            opened[-1].send((whole, whole[:7], b"\x10")[step])
        over.wait()


def test_a_second_signal_changes_nothing(make_node: NodeMaker, crowd: Crowd, client: ClientMaker) -> None:
    node = make_node(CONFIG)
    (stuck,) = crowd.gather(1, node.mqtt, "t")
    publisher = client(to=node)
    with Watched(node) as watched:
        while not watched.counter("subscribers_lagging"):
            publisher.publish("t", bytes(10_000))
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    publisher.expect_closed(SERVER_SHUTTING_DOWN)  # the stop has begun, and waits for the stuck one
    node.process.send_signal(signal.SIGTERM)
    node.process.send_signal(signal.SIGINT)
    assert wait_for_end(node, began) < DRAIN_TIME + GRACE
    stuck.drop()


def test_what_was_published_before_the_stop_is_delivered(make_node: NodeMaker, client: ClientMaker) -> None:
    """Messages that are acknowledged are on their way; the stop does not overtake them."""
    node = make_node(CONFIG)
    subscriber, publisher = client(to=node), client(to=node)
    subscriber.subscribe("t", qos=1)
    for number in range(200):
        publisher.publish("t", bytes([number]) * 1_000, qos=1)
    node.process.send_signal(signal.SIGTERM)
    for number in range(200):
        assert subscriber.expect(Kind.PUBLISH).payload[0] == number
    subscriber.expect_closed(SERVER_SHUTTING_DOWN)
    wait_for_end(node, time.monotonic())


def test_new_clients_are_refused_while_the_node_stops(make_node: NodeMaker, crowd: Crowd, client: ClientMaker) -> None:
    node = make_node(CONFIG)
    crowd.gather(1, node.mqtt, "t")
    publisher = client(to=node)
    with Watched(node) as watched:
        while not watched.counter("subscribers_lagging"):
            publisher.publish("t", bytes(10_000))
    node.process.send_signal(signal.SIGTERM)
    publisher.expect_closed(SERVER_SHUTTING_DOWN)
    with pytest.raises((ConnectionRefusedError, ClosedError)):
        client(to=node)
    wait_for_end(node, time.monotonic())

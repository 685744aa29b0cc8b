"""A thousand connections that end at once leave nothing behind: no file, no session, no memory."""

from __future__ import annotations

import pytest

from tests.faults.crowd import Crowd
from tests.faults.watching import MIB, Watched, wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker

CONNECTIONS = 1_000
WAVES = 5
GROWTH_MAX = MIB  # a thousand connections cost some 4 MiB: a quarter of one wave over three of them


@pytest.mark.parametrize("how", ["reset", "finish", "leave"])
def test_waves_of_connections_that_end_leave_nothing(make_node: NodeMaker, crowd: Crowd, how: str) -> None:
    node = make_node()
    with Watched(node) as watched:
        before = watched.left_behind()
        sizes = []
        for _ in range(WAVES):
            # a long keep alive: what waits for its end would wait for hours
            clients = crowd.gather(CONNECTIONS, node.mqtt, "t/%i", qos=1, keep_alive=10_000)
            assert watched.gauge("connections") == CONNECTIONS
            for number, client in enumerate(clients):  # to itself, at QoS 1: something is in flight everywhere
                packet = wire.publish(f"t/{number}", b"x" * 100, version=client.version, qos=1, packet_id=1)
                client.send(packet)
            wait_until(lambda: watched.counter("messages_sent") % CONNECTIONS == 0, "all messages are out")
            getattr(crowd, how)()
            wait_until(
                lambda: watched.left_behind() == before, f"all is as before: {before}, not {watched.left_behind()}"
            )
            sizes.append(watched.rss())
        assert sizes[-1] - sizes[1] < GROWTH_MAX, [size >> 10 for size in sizes]


def test_connections_that_never_said_connect_leave_nothing(make_node: NodeMaker, raw: ClientMaker) -> None:
    node = make_node()
    with Watched(node) as watched:
        before = watched.left_behind()
        half = wire.connect("half")[:10]
        connections = [raw(to=node).send(half) for _ in range(200)]
        wait_until(lambda: watched.gauge("transports") == 200, "all are in")
        for connection in connections:
            connection.drop()
        wait_until(lambda: watched.left_behind() == before, "all is as before")


def test_kept_sessions_stay_and_no_more(make_node: NodeMaker, client: ClientMaker) -> None:
    """A client that comes and goes a thousand times costs what it cost the first time."""
    node = make_node()
    with Watched(node) as watched:
        files = watched.files()
        for _ in range(1_000):
            client(4, "restless", to=node, clean=False).drop()
        wait_until(lambda: watched.gauge("transports") == 0, "it is gone")
        wait_until(lambda: watched.files() == files, "no file is left open")
        assert watched.gauge("sessions") == 1


def test_waiting_publishers_of_a_dropped_subscriber_go_on(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[edge]\npatience = "60s"')
    stuck, publisher = client(to=node), client(to=node)
    stuck.subscribe("t")
    with Watched(node) as watched:
        while not watched.counter("publishers_paused"):
            publisher.send(wire.publish("t", bytes(10_000)))
        stuck.drop()
        publisher.sync()
        assert watched.gauge("publishers_waiting_for") == 0
        assert watched.gauge("subscriptions") == 0


def test_a_dropped_publisher_that_waits_is_forgotten(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[edge]\npatience = "1s"')
    stuck, publisher = client(to=node), client(to=node)
    stuck.subscribe("t")
    with Watched(node) as watched:
        while not watched.counter("publishers_paused"):
            publisher.send(wire.publish("t", bytes(10_000)))
        publisher.drop()
        wait_until(lambda: watched.gauge("transports") == 1, "the publisher is gone")
        stuck.drop()
        wait_until(lambda: watched.gauge("transports") == 0, "the subscriber is gone")

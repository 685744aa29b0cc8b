"""Two nodes on one store by mistake: the newer one has it, the older one lets go, says so, and does not fight."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import KEPT, Kind
from tests.node.watching import WatchedStore, until
from tests.store.log_servers import Servers, running

QUOTA_EXCEEDED = 0x97
SERVER_UNAVAILABLE = 0x88
USE_ANOTHER_SERVER = 0x9C
ROOM = "100GB"
TAKEN_OVER = "another node has taken over this store: brookmq@127.0.0.1 (process {} on "
ADVICE = "); stop one of the two, and start this one again"


def config_of(servers: Servers) -> str:
    return f'[store]\nservers = {servers.urls}\nwait = "1s"\n[journal]\nshards = 2'


@pytest.fixture
def servers() -> Iterator[Servers]:
    with running(room=ROOM) as started:
        yield started


def away(client: Client) -> None:
    client.subscribe("kept/#", qos=1)
    client.disconnect()


def refused(client: Client, topic: str, *, retain: bool = False) -> None:
    client.send(wire.publish(topic, b"refused", qos=1, packet_id=77, retain=retain))
    assert client.expect(Kind.PUBACK).reason == QUOTA_EXCEEDED


def has_let_go(watched: WatchedStore, *newer: Node) -> None:
    until(lambda: "another node" in watched.readiness(), "it is noticed")
    reason = watched.readiness()
    print(reason)
    assert reason.startswith(tuple(TAKEN_OVER.format(each.process.pid) for each in newer))
    assert reason.endswith(ADVICE)
    assert reason in watched.alarms()["store_down"]
    assert watched.is_healthy()


def test_the_older_node_lets_go_and_the_newer_one_is_not_disturbed(
    make_node: NodeMaker, client: ClientMaker, raw: ClientMaker, servers: Servers
) -> None:
    first = make_node(config_of(servers))
    with WatchedStore(first) as watched:
        watched.until_ready()
        away(client(5, "reader", to=first, **KEPT))
        publisher, old_publisher, retainer = client(5, to=first), client(4, to=first), client(5, to=first)
        publisher.publish("kept/a", b"before", qos=1)
        will = wire.Will("kept/will", b"will", qos=1)
        staying = client(5, "staying", to=first, **KEPT, will=will)
        staying_too = client(4, "staying too", to=first, **KEPT)
        second = make_node(config_of(servers))
        with WatchedStore(second) as other:
            other.until_ready()
            has_let_go(watched, second)
            assert staying.expect(Kind.DISCONNECT).reason == USE_ANOTHER_SERVER
            staying_too.expect_closed()
            newer = client(5, to=second)
            for number in range(40):  # on all shards, one after the other on each node: who seizes takes from who has
                refused(publisher, f"kept/{number}")
                newer.publish(f"kept/{number}", b"%d" % number, qos=1)
            refused(retainer, "value", retain=True)
            old_publisher.send(wire.publish("kept/a", b"refused", qos=1, packet_id=77, version=4))
            old_publisher.expect_closed()
            raw(5, to=first).send(wire.connect("another", **KEPT)).expect_refused(SERVER_UNAVAILABLE)
            publisher.subscribe("live", qos=2)
            for qos in (0, 1, 2):
                publisher.publish("live", b"live", qos=qos)
                assert publisher.take().payload == b"live", "who needs no store is served"
            assert not other.readiness()
            assert other.alarms() == {}
            has_let_go(watched, second)
            reader = client(5, "reader", to=second, **KEPT)
            expected = [b"before", b"will", *(b"%d" % number for number in range(40))]
            assert sorted(reader.take_payloads(42)) == sorted(expected)
            assert client(5, "staying", to=second, **KEPT).connack.session_present
            reader.expect_nothing()
            assert second.stop() == 0
        has_let_go(watched, second)  # also when the other one is gone: an operator has decided something
        refused(publisher, "kept/a")
        assert first.stop() == 0
    for log in (first.log(), second.log()):
        assert "takes messages again" not in log
    third = make_node(config_of(servers))
    with WatchedStore(third) as watched:
        watched.until_ready()
        assert client(5, "reader", to=third, **KEPT).connack.session_present


def test_nodes_without_traffic_notice_it_too_and_the_last_of_three_has_it(
    make_node: NodeMaker, client: ClientMaker, servers: Servers
) -> None:
    nodes = [make_node(config_of(servers)) for _ in range(3)]
    with WatchedStore(nodes[0]) as first, WatchedStore(nodes[1]) as second, WatchedStore(nodes[2]) as third:
        has_let_go(first, nodes[1], nodes[2])
        has_let_go(second, nodes[2])
        third.until_ready()
        away(client(5, "reader", to=nodes[2], **KEPT))


def test_of_nodes_that_start_at_the_same_moment_one_has_the_store(
    make_node: NodeMaker, client: ClientMaker, servers: Servers
) -> None:
    """The store is away while they start, so that they open it together when it is back."""
    servers.kill()
    nodes = [make_node(config_of(servers)) for _ in range(3)]
    with WatchedStore(nodes[0]) as first, WatchedStore(nodes[1]) as second, WatchedStore(nodes[2]) as third:
        watched = [first, second, third]
        servers.start()

        def settled() -> bool:
            reasons = [each.readiness() for each in watched]
            return reasons.count("") == 1 and sum("another node has taken over" in each for each in reasons) == 2

        until(settled, "one has it")
        owner = next(node for node, each in zip(nodes, watched, strict=True) if not each.readiness())
        away(client(5, "reader", to=owner, **KEPT))
        publisher = client(5, to=owner)
        for number in range(8):
            assert publisher.publish(f"kept/{number}", b"", qos=1)
        assert settled()

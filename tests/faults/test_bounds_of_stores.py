"""The limits of what a node keeps: queues, sessions, retained and delayed messages, connections."""

from __future__ import annotations

import pytest

from tests.faults.watching import Watched
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.wire import Kind, Property

KEEP: list[tuple[int, wire.Value]] = [(Property.SESSION_EXPIRY, 300)]
QUOTA_EXCEEDED = 0x97
NO_SYS_TOPICS = "[sys_topics]\nenable = false"  # they are retained and count, too
MESSAGE_BYTES = 101  # payload of 100 and a topic of one letter


def queued(make_node: NodeMaker, client: ClientMaker, config: str, payloads: list[bytes]) -> tuple[list[bytes], int]:
    """What a client whose session ends with its connection gets after all, when it took nothing while these were
    published at QoS 1, and how many were dropped."""
    node = make_node(f'{config}\n[edge]\npatience = "0s"')
    slow = client(5, "slow", to=node, props=[(Property.RECEIVE_MAXIMUM, 1)])
    slow.subscribe("t", qos=1)
    publisher = client(to=node)
    for payload in [b"in flight", *payloads]:
        answer = publisher.publish("t", payload, qos=1)
        assert answer is not None
        assert answer.reason == 0
    found = []
    got = slow.expect(Kind.PUBLISH)
    while True:
        slow.send(wire.acknowledge(Kind.PUBACK, got.packet_id), wire.PINGREQ)
        got = slow.receive()
        if got.kind is Kind.PINGRESP:
            break
        found.append(got.payload)
        slow.expect(Kind.PINGRESP)
    with Watched(node) as watched:
        return found, watched.counter("dropped_queue_full")


@pytest.mark.parametrize(("which", "kept"), [("drop_oldest", [b"1", b"2", b"3"]), ("drop_newest", [b"0", b"1", b"2"])])
def test_queue_count(make_node: NodeMaker, client: ClientMaker, which: str, kept: list[bytes]) -> None:
    config = f'[session]\nqueue_count_max = 3\nqueue_full = "{which}"'
    assert queued(make_node, client, config, [b"0", b"1", b"2"]) == ([b"0", b"1", b"2"], 0)
    assert queued(make_node, client, config, [b"0", b"1", b"2", b"3"]) == (kept, 1)


def test_queue_count_of_none(make_node: NodeMaker, client: ClientMaker) -> None:
    assert queued(make_node, client, "[session]\nqueue_count_max = 0", [b"0", b"1"]) == ([], 2)


@pytest.mark.parametrize("which", ["drop_oldest", "drop_newest"])
def test_queue_bytes(make_node: NodeMaker, client: ClientMaker, which: str) -> None:
    config = f'[session]\nqueue_bytes_max = {3 * MESSAGE_BYTES}\nqueue_full = "{which}"'
    payloads = [bytes([number]) * 100 for number in range(4)]
    assert queued(make_node, client, config, payloads[:3]) == (payloads[:3], 0)
    kept = payloads[1:] if which == "drop_oldest" else payloads[:3]
    assert queued(make_node, client, config, payloads) == (kept, 1)


def test_a_message_larger_than_the_queue_pushes_nothing_out(make_node: NodeMaker, client: ClientMaker) -> None:
    config = f"[session]\nqueue_bytes_max = {3 * MESSAGE_BYTES}"
    small = bytes(100)
    assert queued(make_node, client, config, [small, bytes(400), small]) == ([small, small], 1)


def test_sessions(make_node: NodeMaker, client: ClientMaker, raw: ClientMaker) -> None:
    node = make_node("[session]\ncount_max = 2")
    client(5, "kept", to=node, clean=False, props=KEEP).disconnect(4, [])
    client(5, "here", to=node)
    for version, reason in ((5, QUOTA_EXCEEDED), (4, 3), (3, 3)):
        raw(version, to=node).send(wire.connect("new", version=version)).expect_refused(reason)
    back = client(5, "kept", to=node, clean=False, props=KEEP)  # who has a session comes in
    assert back.connack.session_present
    client(5, "here", to=node)  # and takes its own over
    back.disconnect(0, [(Property.SESSION_EXPIRY, 0)])
    client(4, "new", to=node)


def test_in_flight_messages(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node("[session]\ninflight_max = 2")
    subscriber, publisher = client(to=node), client(to=node)
    subscriber.subscribe("t", qos=1)
    for number in range(3):
        publisher.publish("t", bytes([number]), qos=1)
    first, second = subscriber.expect(Kind.PUBLISH), subscriber.expect(Kind.PUBLISH)
    subscriber.expect_nothing()
    subscriber.send(wire.acknowledge(Kind.PUBACK, first.packet_id))
    assert subscriber.expect(Kind.PUBLISH).payload == b"\2"
    assert second.payload == b"\1"


def test_connections_of_a_listener(make_node: NodeMaker, client: ClientMaker, raw: ClientMaker) -> None:
    node = make_node('[listeners.default]\nbind = "127.0.0.1:0"\nconnections_max = 2')
    first, second = client(to=node), client(to=node)
    raw(to=node).expect_closed()
    first.disconnect()
    client(to=node).sync()
    second.sync()
    with Watched(node) as watched:
        assert watched.counter("connections_refused_limit") == 1


def retained(client: ClientMaker, node: object, filter: str = "#") -> list[tuple[bytes, bytes]]:
    """What a new subscription finds."""
    reader = client(to=node)
    reader.subscribe(filter)
    reader.send(wire.PINGREQ)
    found = []
    while (got := reader.receive()).kind is Kind.PUBLISH:
        found.append((got.topic, got.payload))
    return sorted(found)


def test_retained_count(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node(f"[retained]\ncount_max = 2\n{NO_SYS_TOPICS}")
    live, publisher = client(to=node), client(to=node)
    live.subscribe("#")
    for topic in ("a", "b", "c"):
        publisher.publish(topic, b"1", retain=True, qos=1)
        assert live.take().topic == topic.encode()  # delivered, whatever becomes of it
    assert retained(client, node) == [(b"a", b"1"), (b"b", b"1")]
    publisher.publish("b", b"2", retain=True)  # a topic that has one may change it
    publisher.publish("a", b"", retain=True)
    publisher.publish("c", b"1", retain=True)
    assert retained(client, node) == [(b"b", b"2"), (b"c", b"1")]
    with Watched(node) as watched:
        assert watched.counter("dropped_retained_limit") == 1


def test_retained_bytes_and_payload(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node(f"[retained]\nbytes_max = {2 * MESSAGE_BYTES}\npayload_max = 100\n{NO_SYS_TOPICS}")
    publisher = client(to=node)
    publisher.publish("p", bytes(101), retain=True)  # one byte too large by itself
    assert retained(client, node) == []
    full = [(b"a", bytes(100)), (b"b", bytes(100))]
    for topic, payload in full:
        publisher.publish(topic, payload, retain=True)
    publisher.publish("c", b"x", retain=True)
    assert retained(client, node) == full
    publisher.publish("b", b"less", retain=True)
    publisher.publish("c", b"x", retain=True)
    assert retained(client, node) == [full[0], (b"b", b"less"), (b"c", b"x")]
    with Watched(node) as watched:
        assert watched.counter("dropped_retained_limit") == 2


@pytest.mark.parametrize("config", ["count_max = 2", f"bytes_max = {2 * MESSAGE_BYTES}"])
def test_delayed(make_node: NodeMaker, client: ClientMaker, config: str) -> None:
    node = make_node(f"[delayed]\n{config}")
    publisher = client(to=node)
    for _ in range(2):
        answer = publisher.publish("$delayed/600/t", bytes(100), qos=1)
        assert answer is not None
        assert answer.reason < 0x80
    for qos in (1, 2):
        answer = publisher.publish("$delayed/600/t", bytes(100), qos=qos)
        assert answer is not None
        assert answer.reason == QUOTA_EXCEEDED
    publisher.publish("$delayed/600/t", bytes(100))  # no words for it at QoS 0: dropped, and the client stays
    with Watched(node) as watched:
        assert watched.gauge("delayed") == 2
        assert watched.counter("dropped_delayed_limit") == 3


def test_the_longest_delay(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[delayed]\ndelay_max = "60s"')
    publisher = client(to=node)
    at_bound, beyond = (publisher.publish(f"$delayed/{seconds}/t", qos=1) for seconds in (60, 61))
    assert at_bound is not None
    assert beyond is not None
    assert at_bound.reason < 0x80
    assert beyond.reason == 0x90
    publisher.publish("$delayed/61/t")
    with Watched(node) as watched:
        assert watched.gauge("delayed") == 1
        assert watched.counter("dropped_delayed_limit") == 2  # "counted", says the table


def test_session_expiry(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[session]\nexpiry_max = "60s"')
    assert client(to=node, props=[(Property.SESSION_EXPIRY, 60)]).connack.get(Property.SESSION_EXPIRY) is None
    assert client(to=node, props=[(Property.SESSION_EXPIRY, 61)]).connack.get(Property.SESSION_EXPIRY) == 60

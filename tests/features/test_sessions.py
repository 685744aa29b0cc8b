"""docs/guide/sessions.md and retained.md: lives and queues of sessions, limits, and what a restart loses."""

from __future__ import annotations

import time

import pytest

from tests.features.figures import metric, wait_until
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Kind, Property, connect

KEPT = [(Property.SESSION_EXPIRY, 100)]


def test_mqtt_3_sessions_live_for_the_longest_expiry(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node('[session]\nexpiry_max = "1s"\n')
    away = client(4, "meter", to=node, clean=False)
    away.subscribe("alerts/#", qos=1)
    away.disconnect()
    back = client(4, "meter", to=node, clean=False)
    assert back.connack.session_present
    back.disconnect()
    wait_until(lambda: metric(node, "sessions") == 0)
    assert not client(4, "meter", to=node, clean=False).connack.session_present


def slow_client(client: ClientMaker, node: Node) -> Client:
    """One whose session ends with its connection, and which takes one message at a time."""
    slow = client(5, "meter", to=node, props=[(Property.RECEIVE_MAXIMUM, 1)])
    slow.subscribe("alerts/#", qos=1)
    return slow


@pytest.mark.parametrize(
    ("queue_full", "expected"), [("drop_oldest", [b"0", b"3", b"4", b"5"]), ("drop_newest", [b"0", b"1", b"2", b"3"])]
)
def test_a_full_queue_drops_as_configured(
    client: ClientMaker, make_node: NodeMaker, queue_full: str, expected: list[bytes]
) -> None:
    node = make_node(f'[session]\nqueue_count_max = 3\nqueue_full = "{queue_full}"\n[edge]\npatience = "0s"\n')
    slow = slow_client(client, node)
    publisher = client(to=node)
    for number in range(6):
        publisher.publish("alerts/fire", b"%d" % number, qos=1)
    assert metric(node, "dropped_queue_full") == 2
    assert slow.take_payloads(4) == expected
    slow.expect_nothing()


def test_a_queue_is_bounded_by_bytes_too(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node('[session]\nqueue_bytes_max = "1KiB"\n[edge]\npatience = "0s"\n')
    slow = slow_client(client, node)
    publisher = client(to=node)
    for number in range(4):
        publisher.publish("alerts/fire", b"%d" % number * 500, qos=1)
    assert [payload[:1] for payload in slow.take_payloads(3)] == [b"0", b"2", b"3"]
    slow.expect_nothing()


def test_a_kept_session_has_no_limit_by_count(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node('[session]\nqueue_count_max = 3\nqueue_bytes_max = "1KiB"\n')
    away = client(5, "meter", to=node, clean=False, props=KEPT)
    away.subscribe("alerts/#", qos=1)
    away.disconnect()
    publisher = client(to=node)
    for number in range(20):
        publisher.publish("alerts/fire", b"%d" % number * 100, qos=1)
    back = client(5, "meter", to=node, clean=False, props=KEPT)
    assert len(back.take_payloads(20)) == 20


def test_qos_0_messages_wait_for_nobody(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node("")
    away = client(5, "meter", to=node, clean=False, props=KEPT)
    away.subscribe("alerts/#", qos=1)
    away.disconnect()
    client(to=node).publish("alerts/fire", b"0", qos=0)
    client(to=node).publish("alerts/fire", b"1", qos=1)
    back = client(5, "meter", to=node, clean=False, props=KEPT)
    assert back.take_payloads(1) == [b"1"]
    back.expect_nothing()


@pytest.mark.parametrize(("version", "refusal"), [(4, 3), (5, 0x97)])
def test_a_full_node_takes_nobody_new(
    client: ClientMaker, raw: ClientMaker, make_node: NodeMaker, version: int, refusal: int
) -> None:
    node = make_node("[session]\ncount_max = 1\n")
    client(5, "first", to=node, clean=False, props=KEPT).disconnect()
    visitor = raw(version, to=node)
    visitor.send(connect("second", version=version))
    visitor.expect_refused(refusal)
    assert client(5, "first", to=node, clean=False, props=KEPT).connack.session_present


def test_assigned_client_ids(client: ClientMaker, raw: ClientMaker) -> None:
    given = client(5, "").connack.get(Property.ASSIGNED_CLIENT_ID)
    assert isinstance(given, str)
    assert given.startswith("brook-")
    assert len(given) == len("brook-") + 24
    visitor = raw(4)
    visitor.send(connect("", version=4, clean=False))
    visitor.expect_refused(2)


def test_a_restart_loses_sessions_retained_and_delayed_messages(client: ClientMaker, make_node: NodeMaker) -> None:
    """Known, and said on every page that it concerns: they are in memory."""
    first = make_node()
    meter = client(5, "meter", to=first, clean=False, props=KEPT)
    meter.subscribe("a", qos=1)
    meter.publish("kept", b"1", retain=True)
    meter.publish("$delayed/1/later", b"1")
    assert first.stop() == 0
    second = make_node()
    back = client(5, "meter", to=second, clean=False, props=KEPT)
    assert not back.connack.session_present
    back.subscribe("kept", "later")
    until = time.time() + 1.5
    wait_until(lambda: time.time() > until)
    back.expect_nothing()


def test_a_stop_tells_the_clients(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node()
    five, four = client(5, to=node), client(4, to=node)
    assert node.stop() == 0
    assert five.expect(Kind.DISCONNECT).reason == 0x8B
    four.expect_closed()


def test_retained_limits_keep_what_was_there(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node('[retained]\ncount_max = 1\npayload_max = "4"\n\n[sys_topics]\nenable = false\n')
    publisher, live = client(to=node), client(to=node)
    live.subscribe("#", retain_handling=2)
    publisher.publish("a", b"1234", retain=True)
    publisher.publish("a", b"12345", retain=True)
    publisher.publish("b", b"1", retain=True)
    assert live.take_payloads(3) == [b"1234", b"12345", b"1"]
    assert metric(node, "dropped_retained_limit") == 2
    late = client(to=node)
    late.subscribe("#")
    assert late.take().payload == b"1234"
    late.expect_nothing()
    publisher.publish("a", b"", retain=True)
    publisher.publish("b", b"1", retain=True)
    assert metric(node, "retained") == 1

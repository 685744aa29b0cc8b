"""docs/guide/topics.md: delayed, exclusive, rewritten, automatic and mounted topics on a real node."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Broker, Node
from tests.harness.raw import Address, Client, unique
from tests.harness.wire import Kind, Property, Will, connect

REFUSED = 0x97
NOT_AUTHORIZED = 0x87
TOPIC_NAME_INVALID = 0x90
NO_MATCHING_SUBSCRIBERS = 0x10
CLIENT_IDENTIFIER_NOT_VALID = 0x85

FEATURES = """
[listeners.plain]
bind = "127.0.0.1:0"

[listeners.tenants]
bind = "127.0.0.1:0"
mountpoint = "tenant/${username}/"

[[rewrite]]
filter = "old/#"
pattern = "^old/(.+)/(.+)$"
target = "first/$1/$2"

[[rewrite]]
filter = "old/#"
pattern = "^old/(.+)/(.+)$"
target = "new/$1/$2"

[[rewrite]]
action = "publish"
filter = "mine/#"
pattern = "^mine/(.+)$"
target = "of/${username}/$1"

[[auto_subscribe]]
filter = "device/${client_id}/commands"
qos = 1

[[auto_subscribe]]
filter = "user/${username}/news"

[delayed]
delay_max = "1h"
"""


class Mounted:
    """The second listener of the node."""

    def __init__(self, node: Node) -> None:
        address = node.address("mqtt", 1)
        assert address is not None
        self.mqtt = address
        self.websocket: Address | None = None


@pytest.fixture(scope="module")
def featured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    started = Node(tmp_path_factory.mktemp("featured"), FEATURES)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def tenants(featured: Node) -> Broker:
    return Mounted(featured)


# -- delayed publish


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_delayed_message_comes_after_its_seconds(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique("delayed/")
    subscriber = client(version)
    subscriber.subscribe(topic, qos=qos)
    publisher = client(version)
    before = time.time()
    acknowledged = publisher.publish(f"$delayed/1/{topic}", b"on", qos=qos)
    if acknowledged is not None:
        assert acknowledged.reason == (NO_MATCHING_SUBSCRIBERS if version == 5 else 0)
    subscriber.expect_nothing()
    got = subscriber.take()
    assert (got.topic, got.payload, got.qos) == (topic.encode(), b"on", qos)
    assert 0.9 < time.time() - before < 3.0


def test_a_moment_that_has_just_passed_is_due_at_once(client: ClientMaker) -> None:
    topic = unique("delayed/")
    subscriber = client()
    subscriber.subscribe(topic)
    client().publish(f"$delayed/{int(time.time()) - 10}/{topic}", b"late")
    assert subscriber.take().payload == b"late"


@pytest.mark.parametrize("level", ["5000", "abc", "4294968"])
def test_wrong_seconds_are_refused_and_the_connection_stays(featured: Node, client: ClientMaker, level: str) -> None:
    publisher = client(to=featured)
    refused = publisher.publish(f"$delayed/{level}/{unique('delayed/')}", b"x", qos=1)
    assert refused is not None
    assert refused.reason == TOPIC_NAME_INVALID
    publisher.expect_nothing()


def test_switched_off_it_is_an_ordinary_topic(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node("[delayed]\nenable = false\n")
    subscriber = client(to=node)
    subscriber.subscribe("$delayed/5/lamp")
    client(to=node).publish("$delayed/5/lamp", b"on")
    assert subscriber.take().topic == b"$delayed/5/lamp"


# -- exclusive subscription


@pytest.mark.parametrize("version", [4, 5])
def test_one_client_at_a_time_has_an_exclusive_subscription(client: ClientMaker, version: int) -> None:
    topic = unique("door/")
    one, two, ordinary = client(version), client(version), client(version)
    assert one.subscribe(f"$exclusive/{topic}").reasons == [0]
    assert two.subscribe(f"$exclusive/{topic}").reasons == [REFUSED if version == 5 else 0x80]
    assert ordinary.subscribe(topic).reasons == [0]
    client().publish(topic, b"open")
    assert one.take().topic == topic.encode()
    assert ordinary.take().payload == b"open"
    two.expect_nothing()
    one.unsubscribe(f"$exclusive/{topic}")
    assert two.subscribe(f"$exclusive/{topic}").reasons == [0]


def test_a_kept_session_holds_an_exclusive_subscription_while_its_client_is_away(client: ClientMaker) -> None:
    topic = unique("door/")
    name = unique()
    one = client(5, name, clean=False, props=[(Property.SESSION_EXPIRY, 100)])
    one.subscribe(f"$exclusive/{topic}")
    one.disconnect()
    two = client()
    assert two.subscribe(f"$exclusive/{topic}").reasons == [REFUSED]
    client(5, name, clean=True).disconnect()  # ends the session
    assert two.subscribe(f"$exclusive/{topic}").reasons == [0]


# -- topic rewrite


def test_the_last_rule_that_matches_rewrites_names_and_filters(featured: Node, client: ClientMaker) -> None:
    room = unique()
    new, old = client(to=featured), client(to=featured)
    new.subscribe(f"new/{room}/+")
    old.subscribe(f"old/{room}/1")
    client(to=featured).publish(f"old/{room}/1", b"20")
    assert new.take().topic == f"new/{room}/1".encode()
    assert old.take().topic == f"new/{room}/1".encode()
    assert old.unsubscribe(f"old/{room}/1").reasons == [0]


def test_a_rule_without_a_value_for_its_placeholder_does_not_apply(featured: Node, client: ClientMaker) -> None:
    thing = unique()
    subscriber = client(to=featured)
    subscriber.subscribe(f"of/+/{thing}", f"mine/{thing}")
    client(to=featured, username="ada").publish(f"mine/{thing}", b"1")
    client(to=featured).publish(f"mine/{thing}", b"2")
    assert [subscriber.take().topic for _ in range(2)] == [f"of/ada/{thing}".encode(), f"mine/{thing}".encode()]


def test_wills_are_rewritten(featured: Node, client: ClientMaker) -> None:
    room = unique()
    subscriber = client(to=featured)
    subscriber.subscribe(f"new/{room}/1", f"{room}/#")
    client(to=featured, will=Will(f"{room}/will")).drop()
    assert subscriber.take().topic == f"{room}/will".encode()
    client(to=featured, will=Will(f"old/{room}/1")).drop()
    assert subscriber.take().topic == f"new/{room}/1".encode()


# -- automatic subscriptions


@pytest.mark.parametrize("version", [4, 5])
def test_every_client_gets_the_automatic_subscriptions(featured: Node, client: ClientMaker, version: int) -> None:
    name = unique("pump")
    pump = client(version, name, to=featured, username="ada")
    publisher = client(to=featured)
    publisher.publish(f"device/{name}/commands", b"start", qos=1)
    publisher.publish("user/ada/news", b"hello", qos=1)
    start, hello = pump.take(), pump.take()
    assert (start.payload, start.qos) == (b"start", 1)
    assert (hello.payload, hello.qos) == (b"hello", 0)


def test_an_automatic_subscription_can_be_ended_until_the_next_connect(featured: Node, client: ClientMaker) -> None:
    name = unique("pump")
    pump = client(5, name, to=featured)
    assert pump.unsubscribe(f"device/{name}/commands", "user/ada/news").reasons == [0, 0x11]
    client(to=featured).publish(f"device/{name}/commands", b"start")
    pump.expect_nothing()
    pump.disconnect()
    again = client(5, name, to=featured)
    client(to=featured).publish(f"device/{name}/commands", b"stop")
    assert again.take().payload == b"stop"


# -- mount points


def test_mounted_clients_live_in_their_own_tree(featured: Node, tenants: Broker, client: ClientMaker) -> None:
    tenant, other = unique("acme"), unique("other")
    inside = client(to=tenants, username=tenant)
    neighbour = client(to=tenants, username=other)
    outside = client(to=featured)
    inside.subscribe("#", "$SYS/#")
    neighbour.subscribe("#")
    outside.subscribe(f"tenant/{tenant}/#")
    client(to=tenants, username=tenant).publish("temperature", b"21")
    assert inside.take().topic == b"temperature"
    assert outside.take().topic == f"tenant/{tenant}/temperature".encode()
    neighbour.expect_nothing()
    inside.expect_nothing()


def test_the_will_of_a_mounted_client(featured: Node, tenants: Broker, client: ClientMaker) -> None:
    tenant = unique("acme")
    outside = client(to=featured)
    outside.subscribe(f"tenant/{tenant}/gone")
    client(to=tenants, username=tenant, will=Will("gone")).drop()
    assert outside.take().payload == b"will"


@pytest.mark.parametrize("username", [None, "a/b", "+", "#"])
def test_a_user_name_that_would_break_the_tree_is_refused(
    tenants: Broker, raw: ClientMaker, username: str | None
) -> None:
    visitor: Client = raw(to=tenants)
    visitor.send(connect(unique(), username=username))
    visitor.expect_refused(CLIENT_IDENTIFIER_NOT_VALID)


# -- topics of the node


def test_clients_cannot_publish_to_sys_topics(client: ClientMaker) -> None:
    publisher = client()
    refused = publisher.publish("$SYS/broker/version", b"mine", qos=1)
    assert refused is not None
    assert refused.reason == NOT_AUTHORIZED
    publisher.publish("$SYS/broker/version", b"mine", retain=True)
    publisher.subscribe("$SYS/broker/version")
    assert publisher.expect(Kind.PUBLISH).payload.startswith(b"BrookMQ version ")

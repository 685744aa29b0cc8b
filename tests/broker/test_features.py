"""Retained, delayed, rewritten, shared and mounted messages as clients see them, and hooks in between: in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brookmq.access.points import ALLOW, DROP, IGNORE, Access, ClientInfo, Credentials, Decision, Deny
from brookmq.base.message import Message
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import RewriteRule
from brookmq.broker.settings import Settings
from tests.broker.memory import MemoryNode, MemoryStream
from tests.harness import wire
from tests.harness.raw import Client
from tests.harness.wire import Kind, Property

MakeNode = Callable[..., MemoryNode]


@pytest.fixture
def make_node() -> Iterator[MakeNode]:
    nodes: list[MemoryNode] = []

    def make(**parts: Any) -> MemoryNode:
        nodes.append(MemoryNode(**parts))
        return nodes[-1]

    yield make
    for node in nodes:
        node.close()


@pytest.fixture
def node(make_node: MakeNode) -> MemoryNode:
    return make_node()


def topics_of(client: Client, count: int) -> list[bytes]:
    return [client.take().topic for _ in range(count)]


# -- retained


def test_a_wildcard_over_many_retained_topics_gives_each_once(node: MemoryNode) -> None:
    publisher = node.client()
    for number in range(2_000):
        publisher.send(wire.publish(f"site/{number}/on", b"1", version=5, retain=True))
    reader = node.client()
    reader.subscribe("site/+/on")
    assert len(set(topics_of(reader, 2_000))) == 2_000
    reader.expect_nothing()


def test_retained_messages_of_a_slow_window_all_arrive(node: MemoryNode) -> None:
    """A client that takes two at a time gets every one of 300, none twice."""
    publisher = node.client()
    for number in range(300):
        publisher.publish(f"r/{number}", b"1", qos=1, retain=True)
    reader = node.client(props=[(Property.RECEIVE_MAXIMUM, 2)])
    reader.subscribe("r/#", qos=1)
    got = []
    for _ in range(300):
        got.append(reader.take().topic)
        node.pass_time(0.0)  # the tick takes up replays that had to wait
    assert len(set(got)) == 300
    reader.expect_nothing()


def test_a_replay_is_put_aside_while_its_session_is_away_and_goes_on_when_it_is_back(node: MemoryNode) -> None:
    """Nothing looks at it meanwhile: a node may have a million such sessions."""
    publisher = node.client()
    for number in range(300):
        publisher.publish(f"r/{number}", b"1", qos=1, retain=True)
    kept = [(Property.SESSION_EXPIRY, 3600), (Property.RECEIVE_MAXIMUM, 2)]
    reader = node.client(5, "reader", clean=False, props=kept)
    reader.subscribe("r/#", qos=1)
    got = {reader.take().topic for _ in range(10)}
    reader.close()
    node.pass_time(1.0)
    assert not node.broker.replays.waiting
    reader = node.client(5, "reader", clean=False, props=kept)
    while len(got) < 300:
        got.add(reader.take().topic)
        node.pass_time(0.0)
    reader.close()
    node.pass_time(1.0)
    node.client(5, "reader").expect_nothing()  # a clean start ends the session, and with it what was put aside
    assert not node.broker.replays.waiting


def test_a_replay_gives_no_older_value_after_a_newer_one(node: MemoryNode) -> None:
    publisher = node.client()
    for number in range(300):
        publisher.publish(f"r/{number:03}", b"old", retain=True)
    reader = node.client(props=[(Property.RECEIVE_MAXIMUM, 2)])
    reader.subscribe("r/#", qos=1)
    for number in range(300):
        publisher.publish(f"r/{number:03}", b"new", qos=1, retain=True)
    last: dict[bytes, bytes] = {}
    while len(last) < 300 or set(last.values()) != {b"new"}:
        got = reader.take()
        assert (last.get(got.topic), got.payload) != (b"new", b"old")
        last[got.topic] = got.payload
        node.pass_time(0.0)


def test_an_unsubscribed_filter_gets_nothing_more_of_a_replay(node: MemoryNode) -> None:
    """[MQTT-3.10.4-2]"""
    publisher = node.client()
    for number in range(1_000):
        publisher.send(wire.publish(f"r/{number}", b"1", version=5, qos=0, retain=True))
    reader = node.client()
    # in one write: no turn of the loop lies between the two packets
    reader.send(wire.subscribe(1, [("r/#", 0)], version=5), wire.unsubscribe(2, ["r/#"], version=5))
    reader.await_(Kind.SUBACK)
    reader.await_(Kind.UNSUBACK)
    before = len(reader._early)
    node.pass_time(1.0)
    reader.sync()
    assert len(reader._early) == before < 1_000


def test_a_retained_message_that_expired_is_not_sent(node: MemoryNode) -> None:
    publisher = node.client()
    publisher.publish("r", b"short", retain=True, props=[(Property.MESSAGE_EXPIRY, 10)])
    node.pass_time(4.0)
    early = node.client()
    early.subscribe("r")
    assert early.take().number(Property.MESSAGE_EXPIRY) == 6
    node.pass_time(6.0)
    late = node.client()
    late.subscribe("r")
    late.expect_nothing()
    assert node.broker.retained.count == 0


def test_beyond_a_limit_a_message_is_delivered_but_not_kept(make_node: MakeNode) -> None:
    node = make_node(retained=RetainedStore(count_max=1))
    reader = node.client()
    reader.subscribe("#")
    publisher = node.client()
    publisher.publish("a", b"1", qos=1, retain=True)
    publisher.publish("b", b"2", qos=1, retain=True)
    assert topics_of(reader, 2) == [b"a", b"b"]
    late = node.client()
    late.subscribe("#")
    assert topics_of(late, 1) == [b"a"]
    late.expect_nothing()
    assert node.counters.dropped_retained_limit == 1


# -- delayed


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_delayed_message_comes_when_it_is_due(node: MemoryNode, qos: int) -> None:
    reader = node.client()
    reader.subscribe("t", qos=2)
    node.client().publish("$delayed/5/t", b"later", qos=qos)
    node.pass_time(4.9)
    reader.expect_nothing()
    node.pass_time(0.2)
    got = reader.take()
    assert (got.topic, got.payload, got.qos) == (b"t", b"later", qos)


def test_delayed_messages_come_in_the_order_of_their_time(node: MemoryNode) -> None:
    reader = node.client()
    reader.subscribe("t", qos=1)
    publisher = node.client()
    for seconds in (3, 1, 2, 1):
        publisher.publish(f"$delayed/{seconds}/t", b"%d" % seconds, qos=1)
    for _ in range(4):
        node.pass_time(1.0)
    assert reader.take_payloads(4) == [b"1", b"1", b"2", b"3"]


def test_a_delayed_retained_message_is_retained_when_it_is_due(node: MemoryNode) -> None:
    node.client().publish("$delayed/5/t", b"later", qos=1, retain=True)
    assert node.broker.retained.count == 0
    node.pass_time(6.0)
    reader = node.client()
    reader.subscribe("t")
    assert reader.take().retain


def test_the_expiry_of_a_delayed_message_begins_when_it_is_due(node: MemoryNode) -> None:
    reader = node.client()
    reader.subscribe("t")
    node.client().publish("$delayed/60/t", b"x", props=[(Property.MESSAGE_EXPIRY, 30)])
    node.pass_time(60.0)
    assert reader.take().number(Property.MESSAGE_EXPIRY) == 30


@pytest.mark.parametrize("topic", ["$delayed/x/t", "$delayed/5/", "$delayed/9999999/t", "$delayed/1/$delayed/1/t"])
def test_a_malformed_delay_is_refused_and_the_connection_stays(node: MemoryNode, topic: str) -> None:
    publisher = node.client()
    for qos in (1, 2):
        answer = publisher.publish(topic, b"x", qos=qos)
        assert answer is not None
        assert answer.reason == 0x90
    publisher.publish(topic, b"x")  # QoS 0: dropped
    publisher.expect_nothing()
    assert node.broker.delayed.count == 0


def test_too_many_delayed_messages(make_node: MakeNode) -> None:
    node = make_node(delayed=DelayedMessages(1))
    publisher = node.client()
    publisher.publish("$delayed/5/t", b"1", qos=1)
    answer = publisher.publish("$delayed/5/t", b"2", qos=1)
    assert answer is not None
    assert answer.reason == 0x97


# -- rewrite and mount points

RULES = [
    RewriteRule("publish", "old/#", "^old/(.*)$", "new/$1"),
    RewriteRule("subscribe", "old/#", "^old/(.*)$", "new/$1"),
    RewriteRule("publish", "later/+", "^later/(.*)$", "$delayed/10/$1"),
    RewriteRule("all", "own/#", "^own/(.*)$", "clients/${client_id}/$1"),
]


def test_topics_are_rewritten_both_ways(make_node: MakeNode) -> None:
    node = make_node(rules=RULES)
    plain, old = node.client(), node.client()
    plain.subscribe("new/#", qos=1)
    old.subscribe("old/1", qos=1)
    node.client().publish("old/1", b"x", qos=1)
    assert topics_of(plain, 1) == [b"new/1"]
    assert topics_of(old, 1) == [b"new/1"]
    assert old.unsubscribe("old/1").reasons == [0]


def test_a_rewritten_shared_subscription(make_node: MakeNode) -> None:
    node = make_node(rules=RULES)
    members = [node.client(), node.client()]
    for member in members:
        member.subscribe("$share/g/old/#", qos=1)
    publisher = node.client()
    for _ in range(4):
        publisher.publish("new/1", b"x", qos=1)
    for member in members:
        assert topics_of(member, 2) == [b"new/1"] * 2


def test_rewriting_leads_to_delayed_publish(make_node: MakeNode) -> None:
    node = make_node(rules=RULES)
    reader = node.client()
    reader.subscribe("t")
    node.client().publish("later/t", b"x", qos=1)
    reader.expect_nothing()
    node.pass_time(10.0)
    assert topics_of(reader, 1) == [b"t"]


def test_a_client_id_is_no_way_to_a_filter(make_node: MakeNode) -> None:
    node = make_node(rules=RULES)
    odd = node.client(client_id="#")
    assert odd.subscribe("own/x").reasons == [0]
    node.client(client_id="other").publish("own/x", b"private", qos=1)
    odd.expect_nothing()


def test_mounted_clients_live_in_their_own_tree(node: MemoryNode) -> None:
    one = node.client(client_id="one", mount="tenants/${client_id}/")
    two = node.client(client_id="two", mount="tenants/${client_id}/")
    everything = node.client()
    everything.subscribe("#", qos=1)
    for client in (one, two):
        client.subscribe("#", qos=1)
    one.publish("a/b", b"x", qos=1)
    assert topics_of(one, 1) == [b"a/b"]
    assert topics_of(everything, 1) == [b"tenants/one/a/b"]
    two.expect_nothing()


def test_mounted_shared_delayed_and_retained(node: MemoryNode) -> None:
    one = node.client(client_id="one", mount="m/")
    one.subscribe("$share/g/t", qos=1)
    one.publish("$delayed/5/t", b"x", qos=1, retain=True)
    node.pass_time(5.0)
    assert topics_of(one, 1) == [b"t"]
    one.subscribe("t")
    assert topics_of(one, 1) == [b"t"]
    assert node.broker.retained.get(b"m/t", node.now) is not None


@pytest.mark.parametrize("client_id", ["a/b", "+", "#"])
def test_a_mount_point_that_a_client_id_would_break(node: MemoryNode, client_id: str) -> None:
    with pytest.raises(AssertionError, match="reason=133"):
        node.client(client_id=client_id, mount="tenants/${client_id}/")


# -- shared


@pytest.mark.parametrize("strategy", ["round_robin", "random", "sticky", "hash_client", "hash_topic", "local"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_each_message_goes_to_one_member(make_node: MakeNode, strategy: str, qos: int) -> None:
    settings = Settings()
    settings.shared_strategy = strategy
    node = make_node(settings=settings)
    members = [node.client() for _ in range(3)]
    for member in members:
        member.subscribe("$share/g/t/#", qos=qos)
    publisher = node.client()
    # whole runs in one write, and one by one
    publisher.send(
        *(wire.publish("t/run", b"%d" % n, version=5, qos=qos, packet_id=n + 1 if qos else None) for n in range(30))
    )
    for number in range(30, 60):
        publisher.send(
            wire.publish(f"t/{number}", b"%d" % number, version=5, qos=qos, packet_id=number + 1 if qos else None)
        )
    got: Counter[bytes] = Counter()
    for member in members:
        member.sync()
        while member._early:
            got[member.take().payload] += 1
    assert got == Counter({b"%d" % number: 1 for number in range(60)})


def test_a_member_that_is_away_is_skipped_until_all_are(node: MemoryNode) -> None:
    kept = node.client(client_id="kept", clean=False, props=[(Property.SESSION_EXPIRY, 100)])
    kept.subscribe("$share/g/t", qos=1)
    there = node.client()
    there.subscribe("$share/g/t", qos=1)
    kept.close()
    publisher = node.client()
    for number in range(4):
        publisher.publish("t", b"%d" % number, qos=1)
    assert there.take_payloads(4) == [b"0", b"1", b"2", b"3"]
    there.close()
    publisher.publish("t", b"later", qos=1)
    back = node.client(client_id="kept", clean=False, props=[(Property.SESSION_EXPIRY, 100)])
    assert back.take().payload == b"later"


def test_what_a_leaving_member_did_not_acknowledge_goes_to_another(node: MemoryNode) -> None:
    """[MQTT-4.8.2-5]"""
    members = [node.client(), node.client()]
    for member in members:
        member.subscribe("$share/g/t", qos=1)
    publisher = node.client()
    for number in range(4):
        publisher.publish("t", b"%d" % number, qos=1)
    members[0].close()  # acknowledged nothing
    assert sorted(members[1].take_payloads(4)) == [b"0", b"1", b"2", b"3"]


# -- hooks


def decide(answer: Decision, *, sync: bool) -> Callable[..., Any]:
    async def waiting(*_: Any) -> Decision:
        await asyncio.sleep(0)
        return answer

    return (lambda *_: answer) if sync else waiting


@pytest.mark.parametrize("sync", [True, False])
def test_connect_is_decided_by_hooks(node: MemoryNode, sync: bool) -> None:
    node.hooks.register("authenticate", decide(Deny(0x86), sync=sync), "test", sync=sync)
    with pytest.raises(AssertionError, match="reason=134"):
        node.client()


@pytest.mark.parametrize("sync", [True, False])
def test_authorization_of_every_way_to_a_topic(node: MemoryNode, sync: bool) -> None:
    def judge(_: ClientInfo, access: Access) -> Decision:
        return Deny() if access.topic.startswith("secret") else IGNORE

    async def judge_later(client: ClientInfo, access: Access) -> Decision:
        await asyncio.sleep(0)
        return judge(client, access)

    node.hooks.register("authorize", judge if sync else judge_later, "test", sync=sync)
    client = node.client()
    filters = ("secret/#", "$share/g/secret/#", "$exclusive/secret/a", "open/#")
    assert client.subscribe(*filters, qos=1).reasons == [0x87, 0x87, 0x87, 1]
    for topic in ("secret/a", "$delayed/1/secret/a"):
        for _ in range(2):  # the second time from what the channel remembers
            answer = client.publish(topic, b"x", qos=1)
            assert answer is not None
            assert answer.reason == 0x87
    assert node.broker.delayed.count == 0
    client.publish("open/a", b"x", qos=1)
    assert client.take().payload == b"x"


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_keep_their_order_through_hooks(node: MemoryNode, sync: bool, qos: int) -> None:
    def shout(_: ClientInfo, message: Message) -> Any:
        if message.payload == b"7":
            return DROP
        return Message(message.topic, message.payload + b"!", message.qos)

    async def shout_later(client: ClientInfo, message: Message) -> Any:
        await asyncio.sleep(0)
        return shout(client, message)

    node.hooks.register("publish", shout if sync else shout_later, "test", sync=sync)
    reader, publisher = node.client(), node.client()
    reader.subscribe("t", qos=qos)
    publisher.send(
        *(wire.publish("t", b"%d" % n, version=5, qos=qos, packet_id=n + 1 if qos else None) for n in range(20))
    )
    assert reader.take_payloads(19) == [b"%d!" % number for number in range(20) if number != 7]
    if qos:
        kind = Kind.PUBACK if qos == 1 else Kind.PUBREC
        assert [publisher.expect(kind).packet_id for _ in range(20)] == list(range(1, 21))


def test_a_broken_publish_hook_changes_nothing(node: MemoryNode) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("oops")

    node.hooks.register("publish", broken, "test", sync=True)
    client = node.client()
    client.subscribe("t", qos=1)
    client.publish("t", b"x", qos=1)
    assert client.take().payload == b"x"
    assert node.alarms.is_active("hook_failing/test/publish")


def test_a_connection_that_ends_while_a_hook_decides(node: MemoryNode) -> None:
    """The client is gone when the answer comes: no session, no will, no trace."""
    asked: list[Credentials] = []

    async def slow(credentials: Credentials) -> Decision:
        asked.append(credentials)
        return ALLOW

    node.hooks.register("authenticate", slow, "test")
    stream = MemoryStream(node, "")
    stream.host.channel.receive(wire.connect("gone", version=5), node.monotonic)
    stream.close()
    node.settle()
    assert len(asked) == 1
    assert len(node.broker.sessions.by_client_id) == 0

"""``$replay/…`` in memory: history in order, then live, without a gap or a repeat; through crashes, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from brookmq.access.points import DROP, Access, Allow, ClientInfo, Deny
from brookmq.base.message import Message
from brookmq.broker.delivering import DeliverHooks
from brookmq.broker.rewrite import RewriteRule
from brookmq.broker.settings import Settings
from tests.broker.memory import MemoryNode, MemoryStream
from tests.harness import wire
from tests.harness.raw import Client
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property

EXPIRY = [(Property.SESSION_EXPIRY, 3600)]
CAPTURE = [b"#"]
ALL = "$replay/earliest/#"
INVALID = 0x8F


@pytest.fixture
def node() -> Iterator[MemoryNode]:
    first = MemoryNode(capture=CAPTURE)
    yield first
    first.loop.close()


def after(node: MemoryNode, unanswered: int = 0) -> MemoryNode:
    return MemoryNode(capture=CAPTURE, after=node, unanswered=unanswered)


def fill(node: MemoryNode, *numbers: int, topics: int = 7, qos: int = 1, client_id: str = "writer") -> None:
    """Numbered messages over some topics, so that all partitions get some."""
    publisher = node.client(5, client_id)
    for number in numbers:
        publisher.publish(f"t/{number % topics}", b"%d" % number, qos=qos)
    publisher.close()


def history(node: MemoryNode, filter: str = ALL, qos: int = 1, version: int = 5, **fields: object) -> Client:
    client = node.client(version, **fields)  # type: ignore[arg-type]
    assert client.subscribe(filter, qos=qos).reasons == [qos]
    return client


def kept(node: MemoryNode, filter: str = ALL, qos: int = 1, *, new: bool = True, most: int = 100) -> Client:
    props = [*EXPIRY, (Property.RECEIVE_MAXIMUM, most)]
    client = node.client(5, "reader", clean=new, props=props)
    assert client.connack.session_present is not new
    if new:
        assert client.subscribe(filter, qos=qos).reasons == [qos]
    return client


def place(packet: Packet) -> tuple[int, int]:
    """Partition and offset."""
    found = dict(packet.all(Property.USER_PROPERTY)[-3:])  # type: ignore[arg-type]
    return int(found["partition"]), int(found["offset"])


def waiting(client: Client) -> list[Packet]:
    """All that has come, acknowledged."""
    found: list[Packet] = []
    client.sync()
    while client._early:
        found.append(client.take())
        client.sync()
    return found


def numbers(packets: list[Packet]) -> list[int]:
    return [int(packet.payload) for packet in packets]


def in_order(packets: list[Packet], topics: int = 7) -> bool:
    got = numbers(packets)
    return all(
        one < two for topic in range(topics) for one, two in pairwise([each for each in got if each % topics == topic])
    )


# -- history, then live


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_everything_from_the_beginning_and_then_live(node: MemoryNode, version: int, qos: int) -> None:
    fill(node, *range(100))
    client = history(node, version=version, qos=qos)
    packets = waiting(client)
    fill(node, *range(100, 150))
    packets += waiting(client)
    assert sorted(numbers(packets)) == [*range(150)]
    assert in_order(packets)
    assert {packet.qos for packet in packets} == {min(qos, 1)}
    assert not any(packet.dup or packet.retain for packet in packets)
    if version == 5:
        assert len({place(packet) for packet in packets}) == 150


def test_user_properties_say_where_it_stands(node: MemoryNode) -> None:
    publisher = node.client(5)
    publisher.publish("a", b"0", qos=1, props=[(Property.USER_PROPERTY, ("offset", "mine"))])
    packet = history(node).take()
    partition = node.journal.batches[[bool(each) for each in node.journal.batches].index(True)][0].shard
    assert packet.all(Property.USER_PROPERTY) == [
        ("offset", "mine"),
        ("partition", str(partition)),
        ("offset", "0"),
        ("published_at", f"{node.now:.3f}"),
    ]


def test_offsets_are_dense_in_a_partition_and_in_order(node: MemoryNode) -> None:
    fill(node, *range(60))
    found: dict[int, list[int]] = {}
    for packet in waiting(history(node)):
        partition, offset = place(packet)
        found.setdefault(partition, []).append(offset)
    assert len(found) > 1
    for offsets in found.values():
        assert offsets == [*range(len(offsets))]


def test_runs_are_taken_apart(node: MemoryNode) -> None:
    publisher = node.client(5)
    publisher.send(*[wire.publish("t/0", b"%d" % number, qos=1, packet_id=number + 1) for number in range(300)])
    for version in (4, 5):
        packets = waiting(history(node, version=version))
        assert numbers(packets) == [*range(300)]


def test_history_that_is_not_in_memory(node: MemoryNode) -> None:
    fill(node, *range(100))
    node.journal.unloaded = True
    packets = waiting(history(node))
    assert sorted(numbers(packets)) == [*range(100)]
    assert in_order(packets)


def test_published_while_history_is_read(node: MemoryNode) -> None:
    """The reader is slow, and what is published meanwhile comes behind, once."""
    fill(node, *range(50))
    client = node.client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
    client.subscribe(ALL, qos=1)
    packets = []
    publisher = node.client(5)
    for number in range(50, 150):
        packets.append(client.take())
        publisher.publish(f"t/{number % 7}", b"%d" % number, qos=1)
    packets += waiting(client)
    assert sorted(numbers(packets)) == [*range(150)]
    assert in_order(packets)


def test_only_what_was_captured(node: MemoryNode) -> None:
    node.broker.index.capture = [b"seen/#"]
    node.client(5, "away", props=EXPIRY).subscribe("#", qos=1)
    publisher = node.client(5)
    publisher.publish("hidden", b"0", qos=1)
    publisher.publish("seen/a", b"1", qos=1)
    client = history(node)
    publisher.publish("hidden", b"2", qos=1)
    publisher.publish("seen/b", b"3", qos=1)
    assert sorted(numbers(waiting(client))) == [1, 3]


def test_captured_at_qos_0(node: MemoryNode) -> None:
    fill(node, 0, 1, 2, qos=0)
    packets = waiting(history(node, qos=2))
    assert sorted(numbers(packets)) == [0, 1, 2]
    assert {packet.qos for packet in packets} == {0}


def test_qos_2_is_handed_out_at_qos_2(node: MemoryNode) -> None:
    fill(node, *range(10), qos=2)
    packets = waiting(history(node, qos=2))
    assert sorted(numbers(packets)) == [*range(10)]
    assert {packet.qos for packet in packets} == {2}


def test_a_filter_without_wildcards_reads_one_partition(node: MemoryNode) -> None:
    fill(node, *range(70))
    read: set[int] = set()
    look = node.journal.look

    def noticed(shard: int, offset: int, wanted: frozenset[int] | None) -> object:
        read.add(shard)
        return look(shard, offset, wanted)

    node.journal.look = noticed  # type: ignore[method-assign, assignment]
    client = history(node, "$replay/earliest/t/3")
    assert numbers(waiting(client)) == [*range(3, 70, 7)]
    fill(node, 70, 73)
    assert numbers(waiting(client)) == [73]
    assert len(read) == 1


def test_options_of_the_subscription(node: MemoryNode) -> None:
    reader = node.client(5, "both")
    reader.publish("t/0", b"own", qos=1)
    node.client(5).publish("t/0", b"other", qos=1, retain=True)
    identifier = [(Property.SUBSCRIPTION_ID, 7)]
    reader.subscribe(ALL, qos=1, no_local=True, retain_as_published=True, props=identifier)
    packet = reader.take()
    assert (packet.payload, packet.retain, packet.all(Property.SUBSCRIPTION_ID)) == (b"other", True, [7])
    reader.expect_nothing()  # and no retained message besides


def test_an_expired_message_is_history_no_more(node: MemoryNode) -> None:
    """[MQTT-3.3.2-5], [MQTT-3.3.2-6]"""
    publisher = node.client(5)
    publisher.publish("t/0", b"0", qos=1, props=[(Property.MESSAGE_EXPIRY, 10)])
    publisher.publish("t/0", b"1", qos=1, props=[(Property.MESSAGE_EXPIRY, 100)])
    node.pass_time(40)
    packets = waiting(history(node))
    assert numbers(packets) == [1]
    assert packets[0].all(Property.MESSAGE_EXPIRY) == [60]


def test_beside_an_ordinary_subscription(node: MemoryNode) -> None:
    """Two subscriptions, two copies: one is of now, the other is of the journal."""
    client = node.client(5)
    client.subscribe("t/#", ALL, qos=1)
    fill(node, 0)
    packets = waiting(client)
    assert numbers(packets) == [0, 0]
    assert sorted(len(packet.all(Property.USER_PROPERTY)) for packet in packets) == [0, 3]


# -- where it begins


def test_from_a_time_on(node: MemoryNode) -> None:
    fill(node, *range(10))
    node.pass_time(100)
    moment = node.now
    fill(node, *range(10, 20))
    node.pass_time(100)
    fill(node, *range(20, 30))
    for form in (f"{moment:.3f}", f"{moment * 1000:.0f}"):
        client = history(node, f"$replay/time/{form}/#")
        assert sorted(numbers(waiting(client))) == [*range(10, 30)]
    assert waiting(history(node, f"$replay/time/{node.now + 1:.0f}/#")) == []


def test_messages_of_the_same_batch_are_told_apart_by_time(node: MemoryNode) -> None:
    publisher = node.client(5)
    for log in node.journal.logs:
        log.hold()
    publisher.send(wire.publish("t/0", b"0", qos=1, packet_id=1))  # goes out alone, and is not answered
    publisher.send(wire.publish("t/0", b"1", qos=1, packet_id=2))
    node.pass_time(5)
    publisher.send(wire.publish("t/0", b"2", qos=1, packet_id=3))
    for log in node.journal.logs:
        log.release()
    assert numbers(waiting(history(node, f"$replay/time/{node.now:.0f}/#"))) == [2]


def test_a_time_that_has_not_come(node: MemoryNode) -> None:
    client = history(node, f"$replay/time/{node.now + 10:.0f}/#")
    fill(node, 0)
    client.expect_nothing()
    node.pass_time(10)
    fill(node, 1)
    assert numbers(waiting(client)) == [1]


def test_positions_that_were_received_go_back_in(node: MemoryNode) -> None:
    fill(node, *range(40))
    first = node.client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
    first.subscribe(ALL, qos=1)
    seen = [first.take() for _ in range(25)]
    first.close()
    following = {partition: offset + 1 for partition, offset in sorted(place(packet) for packet in seen)}
    positions = ",".join(f"{partition}:{offset}" for partition, offset in following.items())
    rest = waiting(history(node, f"$replay/offset/{positions}/#"))
    assert sorted(numbers(seen + rest)) == [*range(40)]


def test_one_offset_for_one_topic(node: MemoryNode) -> None:
    fill(node, *range(10), topics=1)
    assert numbers(waiting(history(node, "$replay/offset/4/t/0"))) == [*range(4, 10)]


def test_what_retention_took_is_not_there(node: MemoryNode) -> None:
    """Older than the oldest begins with the oldest; what goes while it is being read is counted."""
    fill(node, *range(20), topics=1)
    batches = next(each for each in node.journal.batches if each)
    shard = batches[0].shard
    node.journal.firsts[shard] = 5
    for filter in (ALL, "$replay/offset/2/t/0"):
        client = node.client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
        client.subscribe(filter, qos=1)
        assert numbers([client.take()]) == [5]
        client.close()
    assert node.counters.messages_lost_to_retention == 0
    client = node.client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
    client.subscribe(ALL, qos=1)
    client.expect(Kind.PUBLISH)
    node.journal.firsts[shard] = 10
    client.send(wire.acknowledge(Kind.PUBACK, 1))
    assert numbers(waiting(client)) == [*range(10, 20)]
    assert node.counters.messages_lost_to_retention == 4


# -- who may, and what is refused


def why(packet: Packet) -> str:
    (reason,) = packet.all(Property.REASON_STRING)
    assert isinstance(reason, str)
    return reason


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("$replay/tomorrow/a", "the forms are"),
        ("$replay/time/never/a", "unix seconds"),
        ("$replay/offset/9:0/a", "no partition 9, they are 0 to 3"),
        ("$replay/offset/0:99/#", "partition 0 ends at 0, before 99"),
        ("$replay/offset/3/a/+", "wildcards"),
        ("$replay/earliest/a/#/b", "#"),
        ("$share/g/$replay/earliest/a", "neither shared nor exclusive"),
        ("$exclusive/$replay/earliest/a", "neither shared nor exclusive"),
        ("$share/g/$exclusive/$replay/earliest/a", "exclusive"),
    ],
)
def test_wrong_forms_are_refused_with_the_reason(node: MemoryNode, filter: str, said: str) -> None:
    client = node.client(5)
    answer = client.subscribe(filter, qos=1)
    assert answer.reasons == [INVALID]
    assert said in why(answer)
    assert node.broker.subscriptions.count == node.broker.keeper.replays.count == 0
    assert node.client(4).subscribe(filter, qos=1).reasons == [0x80]


def test_a_reason_is_for_those_who_asked_for_it_and_have_room(node: MemoryNode) -> None:
    """[MQTT-3.1.2-29], [MQTT-3.9.2-1]"""
    for props in ([(Property.REQUEST_PROBLEM_INFORMATION, 0)], [(Property.MAXIMUM_PACKET_SIZE, 40)]):
        client = node.client(5, props=props)
        answer = client.subscribe("$replay/tomorrow/a", qos=1)
        assert (answer.reasons, answer.properties) == ([INVALID], [])


def test_a_node_that_captures_nothing_says_so() -> None:
    node = MemoryNode()
    answer = node.client(5).subscribe(ALL, qos=1)
    assert answer.reasons == [0x83]
    assert "journal.capture" in why(answer)
    node.close()


def test_access_is_asked_about_the_filter(node: MemoryNode) -> None:
    asked: list[Access] = []

    def authorize(client: ClientInfo, access: Access) -> Allow | Deny:
        asked.append(access)
        return Deny() if access.topic.startswith("secret") else Allow()

    fill(node, 0)
    node.client(5).publish("secret/a", b"1", qos=1)
    node.hooks.register("authorize", authorize, "test", sync=True)
    client = node.client(5)
    forms = ["earliest", "time/5", "time/2026-01-01T00:00:00Z", "offset/0:0,1:0"]
    answer = client.subscribe(*[f"$replay/{form}/secret/#" for form in forms], "$replay/earliest/t/#", qos=1)
    assert answer.reasons == [0x87] * len(forms) + [1]
    assert [access.topic for access in asked] == ["secret/#"] * len(forms) + ["t/#"]
    assert numbers(waiting(client)) == [0]


def test_limits_hold_for_the_filter(node: MemoryNode) -> None:
    settings = node.broker.settings
    settings.topic_levels_max = 3
    settings.subscriptions_max = 2
    client = node.client(5)
    assert client.subscribe("$replay/time/0/a/b/c", qos=1).reasons == [1]
    assert client.subscribe("$replay/time/0/a/b/c/d", qos=1).reasons == [INVALID]
    assert client.subscribe(ALL, qos=1).reasons == [1]
    assert client.subscribe("$replay/earliest/x", qos=1).reasons == [0x97]
    settings.wildcard_available = False
    assert client.subscribe(ALL, qos=1).reasons == [0xA2]


def test_the_longest_filters(node: MemoryNode) -> None:
    topic = "t/" + "x" * (65_535 - len("$replay/earliest/t/"))
    node.client(5).publish(topic, b"0", qos=1)
    for qos in (1, 2):  # lazy and strict
        client = kept(node, f"$replay/earliest/{topic}", qos)
        packet = client.take()
        assert (packet.topic, packet.payload) == (topic.encode(), b"0")
        client.close()
        node = after(node)
        client = kept(node, new=False)
        client.expect_nothing()
        node.client(5).publish(topic, b"1", qos=1)
        assert client.take().payload == b"1"
        client.disconnect(props=[(Property.SESSION_EXPIRY, 0)])
        node.client(5, "reader").close()
        node.client(5).publish(topic, b"0", qos=1)
        node.journal.firsts = node.broker.journaling.heads()
        node.journal.firsts = [max(0, first - 1) for first in node.journal.firsts]


# -- placed elsewhere


def test_mount_points_and_rewriting() -> None:
    rule = RewriteRule("all", "old/#", "^old/(.+)$", "new/$1")
    node = MemoryNode(capture=CAPTURE, rules=[rule])
    node.client(5, mount="m/").publish("old/a", b"0", qos=1)
    node.client(5).publish("new/a", b"1", qos=1)
    client = node.client(5, mount="m/")
    client.subscribe("$replay/earliest/old/#", qos=1)
    packet = client.take()
    assert (packet.topic, packet.payload) == (b"new/a", b"0")
    client.expect_nothing()
    assert client.unsubscribe("$replay/earliest/old/#").reasons == [0]
    node.close()


# -- slow readers


@pytest.mark.parametrize("qos", [0, 1])
def test_an_outlet_that_takes_no_more_stops_it(qos: int) -> None:
    settings = Settings()
    settings.output_bytes_max = 4000
    node = MemoryNode(capture=CAPTURE, settings=settings)
    fill(node, *range(200))
    stream = MemoryStream(node, "")
    client = Client(("", 0), 5, stream).connect()
    outlet = stream.host.channel.outlet
    outlet.block()
    client.send(wire.subscribe(1, [(ALL, wire.options(qos))]))
    node.settle()
    assert outlet.size < 4000
    assert node.counters.messages_sent < 100
    node.pass_time(1)
    outlet.unblock()
    client.expect(Kind.SUBACK)
    packets = waiting(client)
    assert sorted(numbers(packets)) == [*range(200)]
    assert node.counters.dropped_output_full == 0
    node.close()


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("props", [[], EXPIRY])
def test_plugins_that_look_at_each_message(
    node: MemoryNode, sync: bool, qos: int, props: list[tuple[Property, int]]
) -> None:
    """However long they take, history is not dropped for them; what they throw away leaves room for the rest."""

    def judge(_: ClientInfo, message: Message) -> Any:
        return DROP if int(message.payload) % 3 else message

    async def judge_later(client: ClientInfo, message: Message) -> Any:
        await asyncio.sleep(0)
        return judge(client, message)

    def run(awaitable: Any, done: Callable[[Any], None]) -> None:
        node.soon.append(lambda: done(node.loop.run_until_complete(awaitable)))

    publisher = node.client(5)
    for start in range(0, 2500, 250):
        publisher.send(
            *[wire.publish("t/0", b"%d" % (start + number), qos=2, packet_id=number + 1) for number in range(250)],
            *[wire.acknowledge(Kind.PUBREL, number + 1) for number in range(250)],
        )
    node.hooks.register("deliver", judge if sync else judge_later, "test", sync=sync)
    deliver = DeliverHooks(node.hooks, run, node.counters)
    node.broker.intercept = deliver
    node.broker.keeper.replays.plugins_busy = deliver.busy
    client = node.client(5, props=[*props, (Property.RECEIVE_MAXIMUM, 50)])
    client.subscribe(ALL, qos=qos)
    assert numbers(waiting(client)) == [*range(0, 2500, 3)]
    assert node.counters.dropped_queue_full == 0


def test_many_at_once_take_turns(node: MemoryNode) -> None:
    fill(node, *range(300))
    clients = [node.client(5) for _ in range(20)]
    for client in clients:
        client.send(wire.subscribe(1, [(ALL, wire.options(0))]))
    for client in clients:
        client.expect(Kind.SUBACK)
        assert sorted(numbers(waiting(client))) == [*range(300)]
    fill(node, 300)
    for client in clients:
        assert numbers(waiting(client)) == [300]


def test_a_turn_is_short(node: MemoryNode) -> None:
    """However much there is, the loop gets its turn every few hundred messages."""
    fill(node, *range(2000), topics=1)
    client = node.client(5)
    stream = client.stream
    assert isinstance(stream, MemoryStream)
    stream.host.channel.receive(wire.subscribe(1, [(ALL, wire.options(0))]), node.monotonic)
    turns = []
    while node.soon:
        before = node.counters.messages_sent
        node.soon.popleft()()
        turns.append(node.counters.messages_sent - before)
    assert sum(turns) == 2000
    assert max(turns) <= 600


def test_nobody_is_told_of_batches_without_a_replay(node: MemoryNode) -> None:
    client = history(node)
    assert len(node.broker.journaling.followers) == 1
    client.close()
    assert node.broker.journaling.followers == []
    assert not node.broker.keeper.replays.at_head


# -- its end


def test_unsubscribe_ends_it(node: MemoryNode) -> None:
    fill(node, *range(10))
    client = node.client(5, props=[(Property.RECEIVE_MAXIMUM, 1)])
    client.subscribe(ALL, qos=1)
    client.take()
    assert client.unsubscribe("$replay/earliest/t/#").reasons == [0x11]
    assert client.unsubscribe(ALL).reasons == [0]
    waiting(client)
    fill(node, 10)
    client.expect_nothing()
    assert node.broker.keeper.replays.count == node.broker.subscriptions.count == 0


def test_subscribing_again_goes_on(node: MemoryNode) -> None:
    """A client that subscribes at each connect must not get all history each time."""
    fill(node, *range(10))
    client = history(node)
    assert len(waiting(client)) == 10
    assert client.subscribe(ALL, qos=0).reasons == [0]
    fill(node, 10)
    packets = waiting(client)
    assert (numbers(packets), packets[0].qos) == ([10], 0)
    assert node.broker.keeper.replays.count == node.broker.subscriptions.count == 1


def test_the_same_twice_in_one_packet(node: MemoryNode) -> None:
    fill(node, 0)
    client = node.client(5)
    client.subscribe("t/#", "t/#", ALL, ALL, qos=1)
    assert numbers(waiting(client)) == [0]


def test_it_is_among_the_subscriptions_of_its_client(node: MemoryNode) -> None:
    history(node, client_id="reader")
    session = node.broker.sessions.by_client_id["reader"]
    assert [*session.subscriptions] == [ALL]
    assert node.broker.subscriptions.count == 1
    assert node.broker.index.entry_count == 0


# -- kept sessions


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_it_goes_on_when_the_client_is_back(node: MemoryNode, qos: int) -> None:
    fill(node, *range(20), qos=2)
    client = kept(node, qos=qos, most=1)
    packets = [client.take() for _ in range(8)] if qos else waiting(client)
    client.close()
    fill(node, *range(20, 40), qos=2)
    client = kept(node, new=False)
    packets += waiting(client)
    fill(node, *range(40, 50), qos=2)
    packets += waiting(client)
    fresh = [packet for packet in packets if not packet.dup]
    assert sorted(set(numbers(packets))) == [*range(50)]
    assert len(fresh) == len(set(numbers(fresh)))
    assert in_order(fresh)
    node.broker.sessions.by_client_id["reader"].check_invariants()


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_acknowledged_comes_again_with_its_place(node: MemoryNode, qos: int) -> None:
    fill(node, *range(5), qos=2)
    client = kept(node, qos=qos)
    first = [client.expect(Kind.PUBLISH) for _ in range(5)]
    client.close()
    node.journal.unloaded = True
    client = kept(node, new=False)
    again = [client.expect(Kind.PUBLISH) for _ in range(5)]
    assert all(packet.dup for packet in again)
    for one, two in zip(first, again, strict=True):
        assert (one.packet_id, one.payload, place(one)) == (two.packet_id, two.payload, place(two))


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("crashes", [1, 3])
def test_qos_1_through_crashes_at_least_once(node: MemoryNode, crashes: int, written: bool) -> None:
    fill(node, *range(30))
    client = kept(node, most=2)
    packets: list[Packet] = []
    for turn in range(crashes):
        packets += [client.take() for _ in range(5)]
        if written:
            node.pass_time(2)
        node = after(node)
        fill(node, *range(30 + 10 * turn, 40 + 10 * turn))
        client = kept(node, new=False, most=2)
    packets += waiting(client)
    assert sorted(set(numbers(packets))) == [*range(30 + 10 * crashes)]
    fresh = [packet for packet in packets if not packet.dup]
    assert len(fresh) == len(set(numbers(fresh)))
    if written:
        assert len(packets) <= 30 + 10 * crashes + 2 * crashes  # the window may come again, no more


class Careful:
    """A client that keeps its QoS 2 state through everything, as the specification wants it. [MQTT-4.3.3-10]"""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.got: list[int] = []

    def handle(self, client: Client, most: int) -> int:
        """Packets until nothing more comes, or so many of them; how many there were."""
        for count in range(most):
            client.send(wire.PINGREQ)
            packet = client.receive()
            if packet.kind is Kind.PINGRESP:
                return count
            client._early.extend(self._until_pong(client))
            self._take(client, packet)
        return most

    def _until_pong(self, client: Client) -> Iterator[Packet]:
        while (packet := client._read(1.0)).kind is not Kind.PINGRESP:
            yield packet

    def _take(self, client: Client, packet: Packet) -> None:
        if packet.kind is Kind.PUBREL:
            self.open.discard(packet.packet_id)
            client.send(wire.acknowledge(Kind.PUBCOMP, packet.packet_id))
            return
        assert packet.kind is Kind.PUBLISH
        if packet.packet_id not in self.open:
            self.open.add(packet.packet_id)
            self.got.append(int(packet.payload))
        client.send(wire.acknowledge(Kind.PUBREC, packet.packet_id))


@pytest.mark.parametrize("seed", range(30))
def test_qos_2_through_crashes_exactly_once(node: MemoryNode, seed: int) -> None:
    random = Random(seed)
    fill(node, *range(30), qos=2)
    careful = Careful()
    client = kept(node, qos=2, most=random.choice([1, 3, 100]))
    for turn in range(10):
        careful.handle(client, random.randrange(12))
        if random.random() < 0.5:
            node.sessions_table.hold()
            careful.handle(client, random.randrange(12))
        if random.random() < 0.3:
            node.monotonic += 2.0
            node.broker.tick(node.now, node.monotonic)
        if random.random() < 0.3 and not node.sessions_table.waiting_bytes:
            node.sessions_table.snapshot_all()
        node = after(node, random.choice([0, 1, 2, 3, 100]))
        node.journal.unloaded = random.random() < 0.3
        fill(node, *range(30 + 5 * turn, 35 + 5 * turn), qos=2)
        client = kept(node, new=False, most=random.choice([1, 3, 100]))
    while careful.handle(client, 1000):
        pass
    assert sorted(careful.got) == [*range(80)]
    assert careful.open == set()
    for topic in range(7):
        assert all(one < two for one, two in pairwise([each for each in careful.got if each % 7 == topic]))


def test_a_crash_before_it_began(node: MemoryNode) -> None:
    """The time was not looked up yet: it is, by the next node."""
    fill(node, 0)
    node.pass_time(10)
    moment = node.now
    fill(node, 1)
    client = node.client(5, "reader", props=EXPIRY)
    client.subscribe("other", qos=1)
    node.journal.find_time = lambda shard, time, callback: None  # type: ignore[method-assign]
    client.subscribe(f"$replay/time/{moment:.0f}/#", qos=1)
    client.expect_nothing()
    node = after(node)
    client = kept(node, new=False)
    assert numbers(waiting(client)) == [1]


def test_it_moves_no_cursor_of_its_session(node: MemoryNode) -> None:
    """A replay in the past and messages that wait for the same session are read apart, and written down apart."""
    client = kept(node, "t/#", most=2)
    fill(node, *range(20))
    client.subscribe(ALL, qos=2)
    packets = [client.take() for _ in range(10)]
    node = after(node)
    client = kept(node, new=False, most=2)
    packets += waiting(client)
    replayed = [packet for packet in packets if packet.all(Property.USER_PROPERTY)]
    own = [packet for packet in packets if not packet.all(Property.USER_PROPERTY)]
    assert sorted(set(numbers(replayed))) == [*range(20)]
    assert sorted(set(numbers(own))) == [*range(20)]


def test_a_snapshot_has_it(node: MemoryNode) -> None:
    fill(node, *range(10))
    client = kept(node)
    assert len(waiting(client)) == 10
    client.close()
    node.sessions_table.snapshot_all()
    node = after(node)
    fill(node, 10)
    client = kept(node, new=False)
    assert numbers(waiting(client)) == [10]


def test_a_quiet_replay_writes_little(node: MemoryNode) -> None:
    """Batches that have nothing for it move it on; that is worth a record a minute, not one a second."""
    kept(node, "$replay/earliest/never/#")
    node.pass_time(2)
    fill(node, *range(5))
    session = node.broker.sessions.by_client_id["reader"]
    assert not session.moved
    node.pass_time(61)
    fill(node, 5)
    assert session.moved
    node.pass_time(2)
    assert not session.moved


def test_a_session_that_ends_takes_its_replay_along(node: MemoryNode) -> None:
    fill(node, *range(5))
    client = kept(node)
    client.expect(Kind.PUBLISH)
    client.close()
    node.pass_time(3601)
    assert node.broker.keeper.replays.count == 0
    node = after(node)
    assert "reader" not in node.broker.sessions.by_client_id
    assert node.broker.keeper.replays.count == 0


def test_before_the_store_is_open(node: MemoryNode) -> None:
    fill(node, 0)
    keeper = node.broker.keeper
    journal, keeper.journal = keeper.journal, None
    client = history(node)
    client.expect_nothing()
    keeper.journal = journal
    keeper.replays.opened()
    node.settle()
    assert numbers(waiting(client)) == [0]

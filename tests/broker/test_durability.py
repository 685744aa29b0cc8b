"""Kept sessions through crashes of the node, in memory: what was acknowledged is there, exactly as promised."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, pairwise
from typing import Any

import pytest

from brookmq.mqtt.packets import SubscriptionRequest
from brookmq.store import session_ops
from brookmq.store.errors import StoreError
from brookmq.store.memory_table import MemoryTable
from brookmq.store.session_state import session_key
from brookmq.store.table.interface import Entry, part_of
from tests.broker.memory import MemoryNode, MemoryStream
from tests.harness import wire
from tests.harness.raw import Client
from tests.harness.wire import Kind, Property, Will

EXPIRY = [(Property.SESSION_EXPIRY, 3600)]


@pytest.fixture
def node() -> Iterator[MemoryNode]:
    first = MemoryNode()
    yield first
    first.loop.close()


def reader(node: MemoryNode, qos: int = 1, *, new: bool = True, filter: str = "t/#", name: str = "reader") -> Client:
    client = node.client(5, name, clean=new, props=EXPIRY)
    if new:
        client.subscribe(filter, qos=qos)
    else:
        assert client.connack.session_present
    return client


def writer(node: MemoryNode, *, new: bool = True) -> Client:
    return node.client(5, "writer", clean=new, props=EXPIRY)


def test_acknowledged_while_away_comes_after_a_crash(node: MemoryNode) -> None:
    reader(node).close()
    publisher = writer(node)
    for number in range(3):
        publisher.publish("t/a", b"%d" % number, qos=1)
    node = MemoryNode(after=node)
    assert reader(node, new=False).take_payloads(3) == [b"0", b"1", b"2"]


def test_nothing_is_acknowledged_before_it_is_stored(node: MemoryNode) -> None:
    reader(node).close()
    publisher = writer(node)
    for log in node.journal.logs:
        log.hold()
    publisher.send(wire.publish("t/a", b"0", qos=1, packet_id=1))
    publisher.expect_nothing()
    for log in node.journal.logs:
        log.release()
    assert publisher.expect(Kind.PUBACK).packet_id == 1


def test_acknowledgements_keep_their_order_over_shards(node: MemoryNode) -> None:
    """[MQTT-4.6.0-2]"""
    reader(node).close()
    publisher = writer(node)
    topics = [f"t/{number}" for number in range(20)]
    for log in node.journal.logs:
        log.hold()
    for number, topic in enumerate(topics, 1):
        publisher.send(wire.publish(topic, b"", qos=1, packet_id=number))
    for log in reversed(node.journal.logs):
        log.release()
        node.settle()
    assert [publisher.expect(Kind.PUBACK).packet_id for _ in topics] == [*range(1, 21)]


def test_a_live_session_gets_what_was_not_acknowledged_again(node: MemoryNode) -> None:
    subscriber = reader(node)
    writer(node).publish("t/a", b"0", qos=1)
    first = subscriber.expect(Kind.PUBLISH)
    node.pass_time(2)  # its window is written down
    node = MemoryNode(after=node)
    again = reader(node, new=False).expect(Kind.PUBLISH)
    assert (again.payload, again.packet_id, again.dup) == (b"0", first.packet_id, True)


def test_what_was_lazily_acknowledged_comes_again_as_a_duplicate(node: MemoryNode) -> None:
    subscriber = reader(node)
    writer(node).publish("t/a", b"0", qos=1)
    subscriber.take()
    node = MemoryNode(after=node)  # before progress is written
    again = reader(node, new=False).take()
    assert (again.payload, again.dup) == (b"0", True)


def test_what_was_acknowledged_and_written_down_does_not_come_again(node: MemoryNode) -> None:
    subscriber = reader(node)
    writer(node).publish("t/a", b"0", qos=1)
    subscriber.take()
    node.pass_time(2)
    node = MemoryNode(after=node)
    reader(node, new=False).expect_nothing()


@pytest.mark.parametrize("written", [False, True])
def test_qos2_is_sent_once_whenever_the_node_dies(node: MemoryNode, written: bool) -> None:
    """[MQTT-4.3.3-4]"""
    subscriber = reader(node, qos=2)
    writer(node).publish("t/a", b"0", qos=2)
    first = subscriber.expect(Kind.PUBLISH)
    node = MemoryNode(after=node)
    subscriber = reader(node, qos=2, new=False)
    again = subscriber.expect(Kind.PUBLISH)
    assert (again.packet_id, again.dup) == (first.packet_id, True)
    subscriber.send(wire.acknowledge(Kind.PUBREC, again.packet_id))
    subscriber.expect(Kind.PUBREL)
    node = MemoryNode(after=node)
    subscriber = reader(node, qos=2, new=False)
    subscriber.expect(Kind.PUBREL)
    subscriber.send(wire.acknowledge(Kind.PUBCOMP, again.packet_id))
    subscriber.expect_nothing()
    if written:
        node.pass_time(2)
    node = MemoryNode(after=node)
    subscriber = reader(node, qos=2, new=False)
    if not written:
        subscriber.expect(Kind.PUBREL)
    subscriber.expect_nothing()


@pytest.mark.parametrize("anybody", [False, True])
def test_qos2_is_taken_once_whenever_the_node_dies(node: MemoryNode, anybody: bool) -> None:
    """[MQTT-4.3.3-10], [MQTT-4.3.3-11]"""
    if anybody:
        reader(node, qos=2).close()
    publisher = writer(node)
    publish = wire.publish("t/a", b"0", qos=2, packet_id=7)
    publisher.send(publish)
    publisher.expect(Kind.PUBREC)
    node = MemoryNode(after=node)
    publisher = writer(node, new=False)
    publisher.send(wire.publish("t/a", b"0", qos=2, packet_id=7, dup=True))
    publisher.expect(Kind.PUBREC)
    publisher.send(wire.acknowledge(Kind.PUBREL, 7))
    publisher.expect(Kind.PUBCOMP)
    node = MemoryNode(after=node)
    publisher = writer(node, new=False)
    publisher.send(wire.publish("t/a", b"1", qos=2, packet_id=7))  # the id is free: another message
    publisher.expect(Kind.PUBREC)
    publisher.send(wire.acknowledge(Kind.PUBREL, 7))
    publisher.expect(Kind.PUBCOMP)
    if anybody:
        subscriber = reader(node, qos=2, new=False)
        assert subscriber.take_payloads(2) == [b"0", b"1"]
        subscriber.expect_nothing()


def test_a_slow_reader_is_behind_and_loses_nothing(node: MemoryNode) -> None:
    subscriber = node.client(5, "reader", props=[*EXPIRY, (Property.RECEIVE_MAXIMUM, 2)])
    subscriber.subscribe("t/#", qos=1)
    publisher = writer(node)
    for number in range(500):
        publisher.publish(f"t/{number % 7}", b"%d" % number, qos=1)
    got = [int(each) for each in subscriber.take_payloads(500)]
    assert sorted(got) == [*range(500)]
    for topic in range(7):
        assert all(one < two for one, two in pairwise([each for each in got if each % 7 == topic]))
    session = node.broker.sessions.by_client_id["reader"]
    assert session.live
    session.check_invariants()


def test_reading_what_is_not_in_memory(node: MemoryNode) -> None:
    reader(node).close()
    publisher = writer(node)
    for number in range(50):
        publisher.publish(f"t/{number}", b"%d" % number, qos=1)
    node.journal.unloaded = True
    subscriber = reader(node, new=False)
    assert sorted(int(each) for each in subscriber.take_payloads(50)) == [*range(50)]


def test_an_unsubscribed_filter_brings_nothing_after_a_crash(node: MemoryNode) -> None:
    subscriber = reader(node)
    subscriber.unsubscribe("t/#")
    writer(node).publish("t/a", b"0", qos=1)
    node = MemoryNode(after=node)
    reader(node, new=False).expect_nothing()
    assert node.broker.index.entry_count == 0


def test_a_new_filter_brings_nothing_that_is_older(node: MemoryNode) -> None:
    subscriber = reader(node, filter="other")
    other = reader(node, name="other")
    writer(node).publish("t/a", b"before", qos=1)
    subscriber.subscribe("t/a", qos=1)
    writer(node).publish("t/a", b"after", qos=1)
    node = MemoryNode(after=node)
    assert reader(node, new=False).take_payloads(1) == [b"after"]
    assert other.version == 5


def test_expiry_is_counted_while_the_node_is_down(node: MemoryNode) -> None:
    reader(node).close()
    node.monotonic += 3590
    node = MemoryNode(after=node)
    assert "reader" in node.broker.sessions.by_client_id
    node.pass_time(20)
    assert "reader" not in node.broker.sessions.by_client_id
    assert node.broker.index.entry_count == 0


def test_a_delayed_will_goes_out_once_after_a_crash(node: MemoryNode) -> None:
    """[MQTT-3.1.3-9]"""
    reader(node).close()
    will = Will("t/will", b"gone", qos=1, properties=[(Property.WILL_DELAY, 60)])
    node.client(5, "mortal", props=EXPIRY, will=will).close()
    node.pass_time(30)
    node = MemoryNode(after=node)
    node.pass_time(20)
    assert node.counters.wills_published == 0
    node.pass_time(20)
    assert node.counters.wills_published == 1
    node = MemoryNode(after=node)
    node.pass_time(60)
    subscriber = reader(node, new=False)
    assert subscriber.take_payloads(1) == [b"gone"]
    subscriber.expect_nothing()


@pytest.mark.parametrize("kept", [False, True])
def test_the_will_of_a_client_that_died_with_the_node(node: MemoryNode, kept: bool) -> None:
    reader(node).close()
    node.client(5, "mortal", props=EXPIRY if kept else [], will=Will("t/will", b"gone", qos=1))
    node = MemoryNode(after=node)
    node.pass_time(1)
    node = MemoryNode(after=node)
    node.pass_time(1)
    subscriber = reader(node, new=False)
    assert subscriber.take_payloads(1) == [b"gone"]
    subscriber.expect_nothing()


def test_a_clean_start_is_for_ever(node: MemoryNode) -> None:
    """[MQTT-3.1.2-4]"""
    reader(node).close()
    writer(node).publish("t/a", b"0", qos=1)
    node.client(5, "reader")  # begins anew, and is transient
    node = MemoryNode(after=node)
    client = node.client(5, "reader", clean=False, props=EXPIRY)
    assert not client.connack.session_present
    client.expect_nothing()


def test_retained_and_delayed_messages_survive(node: MemoryNode) -> None:
    publisher = writer(node)
    publisher.publish("r/a", b"kept", qos=1, retain=True)
    publisher.publish("$delayed/60/t/late", b"later", qos=1)
    reader(node).close()
    node = MemoryNode(after=node)
    node.pass_time(61)
    client = node.client(5, "c")
    client.subscribe("r/#", qos=1)
    assert client.take_payloads(1) == [b"kept"]
    assert reader(node, new=False).take_payloads(1) == [b"later"]


def test_a_shared_group_queues_while_all_members_are_away(node: MemoryNode) -> None:
    for name in ("one", "two"):
        reader(node, name=name, filter="$share/g/t/#").close()
    publisher = writer(node)
    for number in range(10):
        publisher.publish("t/a", b"%d" % number, qos=1)
    node = MemoryNode(after=node)
    one = reader(node, name="one", new=False)
    two = reader(node, name="two", new=False)
    got = []
    for _ in range(10):
        for client in (one, two):
            client.sync()
            while client._early:
                got.append(int(client.take().payload))
    assert sorted(got) == [*range(10)]
    for number in range(10, 20):
        publisher = node.client(5, "writer2")
        publisher.publish("t/a", b"%d" % number, qos=1)
    for client in (one, two):
        client.sync()
        got.extend(int(client.take().payload) for _ in range(len(client._early)))
    assert sorted(got) == [*range(20)]


def test_the_store_is_silent(node: MemoryNode) -> None:
    """MQTT 5 is told, MQTT 3 is closed without an acknowledgement; who needs no store goes on."""
    reader(node).close()
    new = writer(node)
    old = node.client(4, "old")
    for log in node.journal.logs:
        log.hold()
    new.send(wire.publish("t/a", b"0", qos=1, packet_id=1))
    old.send(wire.publish("t/a", b"0", version=4, qos=1, packet_id=1))
    node.pass_time(9)
    new.expect_nothing()
    old.publish("elsewhere", b"", qos=0)
    node.pass_time(2)
    assert new.expect(Kind.PUBACK).reason == 0x97
    old.expect_closed()


def test_a_connect_waits_for_the_store(node: MemoryNode) -> None:
    reader(node).close()
    node.sessions_table.hold()
    stream = MemoryStream(node, "")
    waiting = Client(("", 0), 5, stream)
    waiting.send(wire.connect("reader", clean=False, props=EXPIRY))
    node.pass_time(5)
    assert not stream.host.written
    node.pass_time(6)
    assert waiting.expect(Kind.CONNACK).reason == 0x88
    node.sessions_table.release()
    node.settle()
    reader(node, new=False)


def test_a_group_is_never_written_before_its_members(node: MemoryNode) -> None:
    """A strict member makes the group write its cursor at once; a lazy one has not written what it got by then."""
    reader(node, qos=1, name="lazy", filter="$share/g/t/#")
    reader(node, qos=2, name="strict", filter="$share/g/t/#")
    publisher = writer(node)
    for number in range(4):
        publisher.publish("t/a", b"%d" % number, qos=2)
    node = MemoryNode(after=node)
    clients = [reader(node, name=name, new=False) for name in ("lazy", "strict")]
    got = []
    for client in clients:
        client.sync()
        got.extend(int(client.take().payload) for _ in range(len(client._early)))
    assert sorted(got) == [0, 1, 2, 3]


def test_a_retained_message_that_only_the_journal_has_is_retained(node: MemoryNode) -> None:
    """At QoS 2 its publisher finds its packet id open, and the repeat is not looked at again."""
    reader(node, qos=2, filter="r/#").close()
    publisher = writer(node)
    publisher.publish("r/a", b"old", qos=1, retain=True)
    node.pass_time(2)
    node.values_table.hold()
    publisher.send(wire.publish("r/a", b"new", qos=2, packet_id=7, retain=True))
    publisher.expect_nothing()
    node = MemoryNode(after=node)
    publisher = writer(node, new=False)
    publisher.send(wire.publish("r/a", b"new", qos=2, packet_id=7, retain=True, dup=True))
    publisher.expect(Kind.PUBREC)
    node = MemoryNode(after=node)
    client = node.client(5, "c")
    client.subscribe("r/#", qos=1)
    assert client.take_payloads(1) == [b"new"]
    assert reader(node, new=False).take_payloads(2) == [b"old", b"new"]


def test_a_later_value_is_not_replaced_by_one_of_the_journal(node: MemoryNode) -> None:
    reader(node, qos=2, filter="r/#").close()
    writer(node).send(wire.publish("r/a", b"first", qos=2, packet_id=7, retain=True))  # never reads its PUBREC
    node.monotonic += 0.1
    node.broker.tick(node.now, node.monotonic)
    node.client(5, "other").publish("r/a", b"second", qos=1, retain=True)
    node = MemoryNode(after=node)
    client = node.client(5, "c")
    client.subscribe("r/#", qos=1)
    assert client.take_payloads(1) == [b"second"]


def test_an_id_is_not_open_before_its_value_is_stored(node: MemoryNode) -> None:
    """Nobody needs the message kept, so that it is in no journal."""
    publisher = writer(node)
    node.values_table.hold()
    publisher.send(wire.publish("r/a", b"new", qos=2, packet_id=7, retain=True))
    publisher.expect_nothing()
    node = MemoryNode(after=node)
    publisher = writer(node, new=False)
    publisher.send(wire.publish("r/a", b"new", qos=2, packet_id=7, retain=True, dup=True))
    publisher.expect(Kind.PUBREC)
    node = MemoryNode(after=node)
    client = node.client(5, "c")
    client.subscribe("r/#", qos=1)
    assert client.take_payloads(1) == [b"new"]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("anybody", [False, True])
def test_a_retained_will_is_never_the_later_value(node: MemoryNode, kept: bool, anybody: bool) -> None:
    """A client that says "online" when it is back must not be told "offline" by its own last will."""
    if anybody:
        reader(node, filter="state/#").close()
    properties = EXPIRY if kept else []
    offline = Will("state/device", b"offline", qos=1, retain=True)
    node.client(5, "device", props=properties, will=offline).close()
    node.values_table.hold()
    node.client(5, "device", props=properties, will=offline).close()
    back = MemoryStream(node, "")
    back.send(wire.connect("device", version=5, clean=True, props=properties))
    with pytest.raises(TimeoutError):
        back.receive(0.0)  # its will is on its way
    node.values_table.release()
    device = Client(("", 0), 5, back)
    assert device.expect(Kind.CONNACK).reason == 0
    device.publish("state/device", b"online", qos=1, retain=True)
    node = MemoryNode(after=node)
    node.pass_time(1)
    client = node.client(5, "c")
    client.subscribe("state/#", qos=1)
    assert client.take_payloads(1) == [b"online"]


@pytest.mark.parametrize("stored", [False, True])
def test_a_delayed_message_goes_out_once(node: MemoryNode, stored: bool) -> None:
    reader(node, qos=2).close()
    publisher = writer(node)
    publisher.publish("$delayed/60/t/late", b"later", qos=2, retain=True)
    node.values_table.hold()
    node.pass_time(61)
    node = MemoryNode(after=node, unanswered=9 if stored else 0)
    node.pass_time(61)
    subscriber = reader(node, qos=2, new=False)
    assert subscriber.take_payloads(1) == [b"later"]
    subscriber.expect_nothing()
    client = node.client(5, "c")
    client.subscribe("t/#", qos=1)
    assert client.take_payloads(1) == [b"later"]
    assert node.broker.delayed.count == 0


def test_retained_messages_come_whole_after_a_crash(node: MemoryNode) -> None:
    """The client has acknowledged some, some wait for its window, and it does not subscribe again."""
    publisher = writer(node)
    topics = [f"r/{number:03}" for number in range(250)]
    for topic in topics:
        publisher.publish(topic, topic.encode(), qos=1, retain=True)
    subscriber = node.client(5, "reader", props=[*EXPIRY, (Property.RECEIVE_MAXIMUM, 2)])
    subscriber.subscribe("r/#", qos=1)
    got = subscriber.take_payloads(30)
    node.pass_time(2)
    node = MemoryNode(after=node)
    subscriber = reader(node, new=False)
    while len(set(got)) < len(topics):
        node.pass_time(0.1)
        got += subscriber.take_payloads(1)
    subscriber.send(wire.disconnect())
    node.pass_time(2)
    node = MemoryNode(after=node)
    reader(node, new=False).expect_nothing()  # that was all, and the store knows


def test_what_the_configuration_subscribes_to_is_kept(node: MemoryNode) -> None:
    node.broker.auto_subscriptions = [SubscriptionRequest("t/%c", 1)]
    node.client(5, "reader", props=EXPIRY).close()
    node = MemoryNode(after=node)
    writer(node).publish("t/reader", b"0", qos=1)
    assert reader(node, new=False).take_payloads(1) == [b"0"]


def names_in_one_part(number: int) -> list[str]:
    part = part_of(session_key("reader"))
    names = (name for each in count() if part_of(session_key(name := f"reader-{each}")) == part)
    return ["reader", *islice(names, number - 1)]


def test_clients_of_one_part_come_back(node: MemoryNode) -> None:
    names = names_in_one_part(3)
    for name in names:
        reader(node, name=name).close()
    writer(node).publish("t/a", b"0", qos=1)
    node = MemoryNode(after=node)
    for name in names:
        assert reader(node, new=False, name=name).take_payloads(1) == [b"0"]


def test_a_part_is_taken_client_by_client_with_what_changes_meanwhile(node: MemoryNode) -> None:
    names = names_in_one_part(3)
    for name in names:
        reader(node, name=name).close()
    states = list(node.broker.restoring.encode_part(part_of(session_key(names[0]))))
    ops: list[Entry] = []
    other = MemoryNode()
    other.loop.close()
    broker = other.broker
    taking = broker.restoring.take_part(0, states, ops)
    next(taking)
    assert [*broker.sessions.by_client_id] == names[:1]
    ops += [(session_key(names[1]), session_ops.ended()), (session_key(names[0]), session_ops.will_dropped())]
    assert list(taking) == [None, None]
    assert sorted(broker.sessions.by_client_id) == sorted([names[0], names[2]])


class SmallTable(MemoryTable):
    """Has too much to write with a few changes already."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, waiting_bytes_max=1000)


class SmallNode(MemoryNode):
    table_class = SmallTable


@pytest.fixture
def small() -> Iterator[SmallNode]:
    node = SmallNode()
    yield node
    node.loop.close()


def test_a_kept_session_waits_while_its_table_has_too_much_to_write(small: SmallNode) -> None:
    subscriber = reader(small)
    transient = small.client(5, "transient")
    small.sessions_table.hold()
    requests = [wire.subscribe(number, [(f"t/{number}", 1)], version=5) for number in range(2, 300)]
    subscriber.send(*requests[:100])
    small.pass_time(0.1)
    assert small.sessions_table.full
    waiting = small.sessions_table.waiting_bytes
    subscriber.send(*requests[100:])
    assert small.sessions_table.waiting_bytes == waiting
    transient.publish("free", b"", qos=1)  # needs no table
    small.sessions_table.release()
    small.pass_time(0.1)
    assert [subscriber.expect(Kind.SUBACK).packet_id for _ in requests] == [*range(2, 300)]


def test_publishers_of_values_wait_while_their_table_has_too_much_to_write(small: SmallNode) -> None:
    publisher = small.client(5, "transient")
    small.values_table.hold()
    requests = [wire.publish(f"r/{number}", b"value" * 20, retain=True) for number in range(300)]
    publisher.send(*requests[:100])
    small.pass_time(0.1)
    assert small.values_table.full
    publisher.send(*requests[100:])
    assert small.broker.retained.count == 101
    small.pass_time(11)  # slowly, while the store is silent for so long
    assert small.broker.retained.count == 102
    small.values_table.release()
    small.pass_time(0.1)
    publisher.sync()
    assert small.broker.retained.count == 300


def test_a_connect_waits_while_the_table_has_too_much_to_write(small: SmallNode) -> None:
    subscriber = reader(small)
    small.sessions_table.hold()
    subscriber.send(*[wire.subscribe(number, [(f"t/{number}", 1)], version=5) for number in range(2, 100)])
    small.pass_time(0.1)
    waiting = small.sessions_table.waiting_bytes
    streams = [MemoryStream(small, "") for _ in range(2)]
    streams[0].send(wire.connect("first", version=5, props=EXPIRY))
    assert small.sessions_table.waiting_bytes == waiting
    small.pass_time(11)
    assert Client(("", 0), 5, streams[0]).expect(Kind.CONNACK).reason == 0x88
    streams[1].send(wire.connect("second", version=5, props=EXPIRY))
    small.sessions_table.release()
    small.pass_time(0.1)
    assert Client(("", 0), 5, streams[1]).expect(Kind.CONNACK).reason == 0


def test_a_table_that_another_node_has_takes_no_values(node: MemoryNode) -> None:
    publisher = writer(node)
    node.values_table.failed = StoreError("another node has it")
    publisher.send(wire.publish("r/a", b"value", qos=1, packet_id=1, retain=True))
    assert publisher.expect(Kind.PUBACK).reason == 0x97
    assert node.broker.retained.count == 0


def test_a_delayed_message_of_a_table_that_another_node_has_is_that_node_s(node: MemoryNode) -> None:
    publisher = writer(node)
    publisher.publish("$delayed/5/r/a", b"value", qos=1, retain=True)
    node.values_table.failed = StoreError("another node has it")
    node.pass_time(6)
    assert node.broker.retained.count == 0
    publisher.publish("elsewhere", b"x", qos=1)  # the node goes on

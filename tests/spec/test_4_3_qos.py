"""Sections 4.3 and 4.6: the delivery protocols and the order of messages."""

from __future__ import annotations

import time

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, PINGREQ, Kind, Property
from tests.spec.marks import both, every_qos, every_version, mqtt5, mqtt311


@every_version
@mqtt5("4.3.1-1", "3.3.1-2")
@mqtt311("4.3.1-1", "3.3.1-2")
def test_qos0_is_sent_once_and_needs_no_answer(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, b"x")
    got = subscriber.expect(Kind.PUBLISH)
    assert (got.qos, got.dup) == (0, False)
    subscriber.expect_nothing()


@every_version
@mqtt5("4.3.2-2", "4.3.2-3")
@mqtt311("4.3.2-1")
def test_qos1_outwards(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=1)
    client(version).publish(topic, b"x", qos=1)
    got = subscriber.expect(Kind.PUBLISH)
    assert (got.qos, got.dup, got.packet_id > 0) == (1, False, True)
    subscriber.send(wire.acknowledge(Kind.PUBACK, got.packet_id))
    subscriber.expect_nothing()


@every_version
@mqtt5("4.3.2-5", "4.3.2-4")
@mqtt311("4.3.2-2")
def test_after_puback_the_same_packet_id_is_a_new_message(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=1)
    for dup in (False, True, True):
        publisher.send(wire.publish(topic, b"x", version=version, qos=1, packet_id=1, dup=dup)).expect(Kind.PUBACK)
        assert not subscriber.take().dup
    subscriber.expect_nothing()


@every_version
@mqtt5("4.3.3-2", "4.3.3-3", "4.3.3-4", "4.3.3-5")
@mqtt311("4.3.3-1")
def test_qos2_outwards(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, b"x", qos=2)
    got = subscriber.expect(Kind.PUBLISH)
    assert (got.qos, got.dup, got.packet_id > 0) == (2, False, True)
    subscriber.send(wire.acknowledge(Kind.PUBREC, got.packet_id))
    assert subscriber.expect(Kind.PUBREL).packet_id == got.packet_id
    subscriber.send(wire.acknowledge(Kind.PUBCOMP, got.packet_id))
    subscriber.expect_nothing()


@every_version
@mqtt5("4.3.3-8", "4.3.3-10", "4.3.3-11", "4.3.3-12")
@mqtt311("4.3.3-2")
def test_qos2_inwards_is_exactly_once(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=2)
    message = wire.publish(topic, b"x", version=version, qos=2, packet_id=9)
    for _ in range(3):
        assert publisher.send(message).expect(Kind.PUBREC).packet_id == 9
    for _ in range(2):  # a repeated PUBREL has its PUBCOMP as well
        publisher.send(wire.acknowledge(Kind.PUBREL, 9))
        assert publisher.expect(Kind.PUBCOMP).packet_id == 9
    assert subscriber.take().payload == b"x"
    subscriber.expect_nothing()
    publisher.send(message).expect(Kind.PUBREC)  # after PUBCOMP the packet id is free again
    publisher.send(wire.acknowledge(Kind.PUBREL, 9)).expect(Kind.PUBCOMP)
    assert subscriber.take().payload == b"x"


@mqtt5("4.3.3-13", "4.3.3-7")
def test_an_expired_message_does_not_break_its_qos2_exchange(client: ClientMaker) -> None:
    topic = unique()
    subscriber, publisher = client(), client()
    subscriber.subscribe(topic, qos=2)
    expiry = [(Property.MESSAGE_EXPIRY, 1)]
    publisher.send(wire.publish(topic, b"x", qos=2, packet_id=3, props=expiry)).expect(Kind.PUBREC)
    sent = time.monotonic()
    while time.monotonic() < sent + 1.3:  # time itself is what this is about
        time.sleep(0.05)
    publisher.send(wire.acknowledge(Kind.PUBREL, 3))
    assert publisher.expect(Kind.PUBCOMP).packet_id == 3
    got = subscriber.send(PINGREQ).receive()
    if got.kind is Kind.PUBLISH:  # sent before it expired: the exchange goes on to its end
        subscriber.expect(Kind.PINGRESP)
        subscriber.send(wire.acknowledge(Kind.PUBREC, got.packet_id))
        assert subscriber.expect(Kind.PUBREL).packet_id == got.packet_id
        subscriber.send(wire.acknowledge(Kind.PUBCOMP, got.packet_id))
    subscriber.expect_nothing()


# -- between versions ---------------------------------------------------------------------------------------------


@every_qos
@pytest.mark.parametrize("receiving", [3, 4, 5])
@pytest.mark.parametrize("sending", [3, 4, 5])
@mqtt5("4.5.0-1", "3.3.2-3", "2.2.2-1")
@mqtt311("4.5.0-1", "3.3.2-3")
def test_messages_pass_between_versions(client: ClientMaker, sending: int, receiving: int, qos: int) -> None:
    """In one write, with payloads around the sizes where the length of the packet needs one byte more."""
    topic = unique()
    subscriber, publisher = client(receiving), client(sending)
    subscriber.subscribe(topic, qos=2)
    base = len(topic) + 2
    sizes = [0, 1, *range(122 - base, 130 - base), *range(16_378 - base, 16_386 - base)]
    payloads = [bytes([number]) * size for number, size in enumerate(sizes, 65)]
    publisher.send(
        *(
            wire.publish(topic, payload, version=sending, qos=qos, packet_id=number if qos else None)
            for number, payload in enumerate(payloads, 1)
        )
    )
    if qos == 2:
        publisher.send(*(wire.acknowledge(Kind.PUBREL, number) for number in range(1, len(sizes) + 1)))
    got = [subscriber.take() for _ in sizes]
    assert [one.payload for one in got] == payloads
    assert {(one.topic, one.qos, one.dup, one.retain) for one in got} == {(topic.encode(), qos, False, False)}


# -- many messages in one write -----------------------------------------------------------------------------------


def burst(topic: str, count: int, qos: int, version: int = 5) -> bytes:
    """That many PUBLISH packets, numbered from 1."""
    numbers = range(1, count + 1)
    return b"".join(
        wire.publish(topic, b"%d" % number, version=version, qos=qos, packet_id=number if qos else None)
        for number in numbers
    )


@pytest.mark.parametrize("qos", [0, 1], ids=["qos0", "qos1"])
@mqtt5("4.5.0-1", "4.6.0-5", "3.8.3-3", "3.3.4-3", "3.1.2-24", "3.1.2-26")
def test_a_burst_reaches_every_kind_of_subscriber(client: ClientMaker, qos: int) -> None:
    topic = unique()
    numbers = [b"%d" % number for number in range(1, 21)]
    publisher = client()
    publisher.subscribe(topic, qos=1, no_local=True)
    plain, old, identified = client(), client(4), client()
    small = client(props=[(Property.MAXIMUM_PACKET_SIZE, 10 + len(topic))])
    named = client(props=[(Property.TOPIC_ALIAS_MAXIMUM, 2)])
    member, absent = client(), client(**KEPT)
    for subscriber in (plain, old, small, named, absent):
        subscriber.subscribe(topic, qos=1)
    identified.subscribe(topic, qos=1, props=[(Property.SUBSCRIPTION_ID, 77)])
    member.subscribe(f"$share/g/{topic}", qos=1)
    absent.disconnect()
    publisher.send(burst(topic, 20, qos))
    if qos:
        assert [publisher.await_(Kind.PUBACK).packet_id for _ in numbers] == list(range(1, 21))
    publisher.expect_nothing()
    for subscriber in (plain, old, small, member):
        assert subscriber.take_payloads(20) == numbers
    got = [identified.take() for _ in numbers]
    assert [(one.payload, one.all(Property.SUBSCRIPTION_ID)) for one in got] == [(number, [77]) for number in numbers]
    aliased = [named.take() for _ in numbers]
    assert [one.payload for one in aliased] == numbers
    assert aliased[0].topic == topic.encode()
    back = client(5, absent.client_id, **KEPT)
    if qos:
        assert back.take_payloads(20) == numbers
    back.expect_nothing()


@both
@mqtt5("4.9.0-2", "4.6.0-5")
@mqtt311("4.6.0-6")
def test_a_burst_larger_than_the_window_keeps_its_order(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version, props=[(Property.RECEIVE_MAXIMUM, 3)]), client(version)
    subscriber.subscribe(topic, qos=2)
    publisher.send(burst(topic, 20, 1, version), wire.publish(topic, b"zero", version=version))
    numbers = [subscriber.take().payload for _ in range(21)]
    numbers.remove(b"zero")  # QoS 0 may overtake
    assert numbers == [b"%d" % number for number in range(1, 21)]


@both
@mqtt5("4.3.3-10", "4.3.3-8")
@mqtt311("4.3.3-2")
def test_repeats_within_a_burst_are_delivered_once(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=2)
    packets = [wire.publish(topic, b"%d" % one, version=version, qos=2, packet_id=one) for one in (1, 2, 1, 3, 2)]
    publisher.send(*packets)
    assert [publisher.expect(Kind.PUBREC).packet_id for _ in packets] == [1, 2, 1, 3, 2]
    publisher.send(*(wire.acknowledge(Kind.PUBREL, one) for one in (1, 2, 3)))
    assert [publisher.expect(Kind.PUBCOMP).packet_id for _ in range(3)] == [1, 2, 3]
    assert subscriber.take_payloads(3) == [b"1", b"2", b"3"]
    subscriber.expect_nothing()


# -- order -------------------------------------------------------------------------------------------------------


@every_version
@every_qos
@mqtt5("4.6.0-5", "4.6.0-6")
@mqtt311("4.6.0-5", "4.6.0-6")
def test_messages_of_a_topic_arrive_in_order(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    subscribers, publisher = [client(version), client(version)], client(version)
    for subscriber in subscribers:
        subscriber.subscribe(topic, qos=2)
    payloads = [b"%d" % number for number in range(20 if qos == 2 else 100)]
    publisher.send(
        *(
            wire.publish(topic, payload, version=version, qos=qos, packet_id=number if qos else None)
            for number, payload in enumerate(payloads, 1)
        )
    )
    if qos == 2:
        publisher.send(*(wire.acknowledge(Kind.PUBREL, number) for number in range(1, 21)))
    for subscriber in subscribers:
        assert subscriber.take_payloads(len(payloads)) == payloads


@both
@mqtt5("4.6.0-2", "4.6.0-3")
@mqtt311("4.6.0-2", "4.6.0-3")
def test_the_node_acknowledges_in_the_order_of_arrival(client: ClientMaker, version: int) -> None:
    publisher = client(version)
    order = [5, 3, 900, 1, 2, 65_535, 4]
    base = unique()
    for qos, kind in ((1, Kind.PUBACK), (2, Kind.PUBREC)):
        publisher.send(
            *(
                wire.publish(f"{base}/{packet_id % 3}", version=version, qos=qos, packet_id=packet_id)
                for packet_id in order
            )
        )
        assert [publisher.expect(kind).packet_id for _ in order] == order


@both
@mqtt5("4.6.0-4")
@mqtt311("4.6.0-4")
def test_pubrel_follows_the_order_of_pubrec(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=2)
    for _ in range(5):
        publisher.publish(topic, qos=2)
    sent = [subscriber.expect(Kind.PUBLISH).packet_id for _ in range(5)]
    order = [sent[place] for place in (3, 0, 4, 2, 1)]
    subscriber.send(*(wire.acknowledge(Kind.PUBREC, packet_id) for packet_id in order))
    assert [subscriber.expect(Kind.PUBREL).packet_id for _ in range(5)] == order


@both
@pytest.mark.parametrize("qos", [1, 2], ids=["qos1", "qos2"])
@mqtt5("4.6.0-1", "4.4.0-1", "4.6.0-5")
@mqtt311("4.6.0-1", "4.6.0-6")
def test_messages_sent_again_keep_their_order_before_newer_ones(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    lost, publisher = client(version, **KEPT), client(version)
    lost.subscribe(topic, qos=2)
    for number in range(5):
        publisher.publish(topic, b"%d" % number, qos=qos)
    for _ in range(5):
        lost.expect(Kind.PUBLISH)
    lost.drop()
    for number in range(5, 10):
        publisher.publish(topic, b"%d" % number, qos=qos)
    back = client(version, lost.client_id, **KEPT)
    assert back.take_payloads(10) == [b"%d" % number for number in range(10)]


@both
@mqtt5("2.2.1-4", "4.3.2-1")
@mqtt311("2.3.1-4", "4.3.2-1")
def test_packet_ids_in_use_are_skipped_when_the_numbers_wrap(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=1)
    publisher.publish(topic, b"held", qos=1)
    held = subscriber.expect(Kind.PUBLISH).packet_id
    used = {held}
    batch = 500
    for start in range(0, 66_000, batch):
        publisher.send(*(wire.publish(topic, version=version, qos=1, packet_id=number + 1) for number in range(batch)))
        for _ in range(batch):
            publisher.expect(Kind.PUBACK)
        got = [subscriber.take().packet_id for _ in range(batch)]
        assert held not in got, f"after {start} messages"
        used.update(got)
    assert 0 not in used

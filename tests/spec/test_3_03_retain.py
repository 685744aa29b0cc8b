"""Section 3.3.1.3: RETAIN, and the subscription options that deal with it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import Client, unique
from tests.harness.wire import KEPT, Kind, Property
from tests.spec.marks import both, every_qos, every_version, mqtt5, mqtt311


@pytest.fixture
def topic(client: ClientMaker) -> Iterator[str]:
    """A topic whose retained message is taken away after the test."""
    name = unique()
    yield name
    client().publish(name, retain=True)


def retained(client: ClientMaker, topic: str, version: int) -> Client:
    """A new subscriber of the topic."""
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    return subscriber


@every_version
@every_qos
@mqtt5("3.3.1-5", "3.3.1-9")
@mqtt311("3.3.1-5", "3.3.1-6", "3.3.1-8")
def test_a_retained_message_is_kept_with_its_qos(client: ClientMaker, version: int, qos: int, topic: str) -> None:
    publisher = client(version)
    publisher.publish(topic, b"old", qos=2, retain=True)
    publisher.publish(topic, b"new", qos=qos, retain=True)
    for _ in range(2):
        got = retained(client, topic, version).take()
        assert (got.payload, got.qos, got.retain, got.dup) == (b"new", qos, True, False)


@both
@mqtt311("3.3.1-7")
@mqtt5("3.3.1-5")
def test_a_retained_qos0_message_replaces_the_one_before(client: ClientMaker, version: int, topic: str) -> None:
    publisher = client(version)
    publisher.publish(topic, b"old", qos=1, retain=True)
    publisher.publish(topic, b"new", qos=0, retain=True)
    subscriber = retained(client, topic, version)
    assert subscriber.take().payload == b"new"
    subscriber.expect_nothing()


@every_version
@mqtt5("3.3.1-6", "3.3.1-7")
@mqtt311("3.3.1-10", "3.3.1-11")
def test_an_empty_payload_removes_the_retained_message(client: ClientMaker, version: int, topic: str) -> None:
    watcher, publisher = retained(client, topic, version), client(version)
    publisher.publish(topic, b"x", retain=True)
    publisher.publish(topic, b"", retain=True)
    got = [watcher.take(), watcher.take()]
    assert [one.payload for one in got] == [b"x", b""]  # it is delivered like any other
    assert not any(one.retain for one in got)
    retained(client, topic, version).expect_nothing()


@both
@mqtt5("3.3.1-8")
@mqtt311("3.3.1-12")
def test_a_message_without_retain_leaves_the_retained_one_alone(client: ClientMaker, version: int, topic: str) -> None:
    publisher = client(version)
    publisher.publish(topic, b"plain", qos=1)
    retained(client, topic, version).expect_nothing()
    publisher.publish(topic, b"kept", retain=True)
    publisher.publish(topic, b"plain", qos=1)
    publisher.publish(topic, b"", qos=1)
    assert retained(client, topic, version).take().payload == b"kept"


@both
@mqtt311("3.1.2-7")
@mqtt5("3.3.1-5")
def test_retained_messages_outlive_the_session_that_sent_them(client: ClientMaker, version: int, topic: str) -> None:
    publisher = client(version, clean=True)
    publisher.publish(topic, b"kept", qos=1, retain=True)
    publisher.disconnect()
    client(version, publisher.client_id, clean=True).disconnect()
    assert retained(client, topic, version).take().payload == b"kept"


@both
@mqtt5("3.3.1-9", "3.8.4-4")
@mqtt311("3.3.1-6", "3.8.4-3")
def test_subscribing_again_sends_the_retained_message_again(client: ClientMaker, version: int, topic: str) -> None:
    client(version).publish(topic, b"x", retain=True)
    subscriber = retained(client, topic, version)
    assert subscriber.take().retain
    subscriber.subscribe(topic, qos=1)
    assert subscriber.take().retain


@mqtt5("3.3.1-10")
def test_retain_handling_1_sends_to_new_subscriptions_only(client: ClientMaker, topic: str) -> None:
    client().publish(topic, b"x", retain=True)
    subscriber = client()
    subscriber.subscribe(topic, retain_handling=1)
    assert subscriber.take().payload == b"x"
    subscriber.subscribe(topic, retain_handling=1, qos=1)
    subscriber.expect_nothing()
    subscriber.unsubscribe(topic)
    subscriber.subscribe(topic, retain_handling=1)
    assert subscriber.take().payload == b"x"


@mqtt5("3.3.1-10")
def test_a_subscription_of_a_resumed_session_is_not_new(client: ClientMaker, topic: str) -> None:
    first = client(**KEPT)
    first.subscribe(topic, retain_handling=1)
    first.disconnect()
    client().publish(topic, b"x", retain=True)
    again = client(5, first.client_id, **KEPT)
    again.subscribe(topic, retain_handling=1)
    again.expect_nothing()
    again.disconnect()
    fresh = client(5, first.client_id, clean=True)
    fresh.subscribe(topic, retain_handling=1)
    assert fresh.take().payload == b"x"


@mqtt5("3.3.1-11")
def test_retain_handling_2_sends_nothing(client: ClientMaker, topic: str) -> None:
    client().publish(topic, b"x", retain=True)
    subscriber = client()
    subscriber.subscribe(topic, retain_handling=2)
    subscriber.expect_nothing()


@both
@mqtt5("3.3.1-12")
@mqtt311("3.3.1-9")
def test_retain_is_cleared_for_established_subscriptions(client: ClientMaker, version: int, topic: str) -> None:
    subscriber = retained(client, topic, version)
    client(version).publish(topic, b"x", retain=True)
    assert not subscriber.take().retain


@pytest.mark.parametrize("retain", [False, True])
@mqtt5("3.3.1-13")
def test_retain_as_published_keeps_the_flag(client: ClientMaker, topic: str, retain: bool) -> None:
    subscriber = client()
    subscriber.subscribe(topic, retain_as_published=True)
    client().publish(topic, b"x", retain=retain)
    assert subscriber.take().retain == retain


@both
@mqtt5("3.3.1-9")
@mqtt311("3.3.1-6")
def test_a_wildcard_subscription_gets_every_matching_retained_message(client: ClientMaker, version: int) -> None:
    base = unique()
    publisher = client(version)
    names = [f"{base}/{level}" for level in ("a", "b", "a/b", "")]
    for name in names:
        publisher.publish(name, name.encode(), retain=True)
    subscriber = client(version)
    subscriber.subscribe(f"{base}/#")
    assert sorted(subscriber.take().topic.decode() for _ in names) == sorted(names)
    subscriber.expect_nothing()
    single = client(version)
    single.subscribe(f"{base}/+")
    assert sorted(single.take().topic.decode() for _ in range(3)) == sorted(n for n in names if n != f"{base}/a/b")
    single.expect_nothing()
    for name in names:
        publisher.publish(name, retain=True)


@both
@mqtt5("3.3.1-9", "4.9.0-2", "4.5.0-1")
@mqtt311("3.3.1-6")
def test_many_retained_messages_arrive_once_each(client: ClientMaker, version: int) -> None:
    base = unique()
    publisher = client(version)
    names = [f"{base}/{number}" for number in range(350)]
    publisher.send(*(wire.publish(name, name.encode(), version=version, retain=True) for name in names)).sync()
    slow = client(version, props=[(Property.RECEIVE_MAXIMUM, 7)])
    publisher.publish(f"{base}/qos1", b"q", qos=1, retain=True)
    slow.subscribe(f"{base}/#", qos=1)
    got = [slow.take().topic.decode() for _ in range(351)]
    assert sorted(got) == sorted([*names, f"{base}/qos1"])
    slow.expect_nothing()
    publisher.send(*(wire.publish(name, version=version, retain=True) for name in [*names, f"{base}/qos1"])).sync()


@both
@mqtt5("3.3.1-9", "4.6.0-5", "3.8.4-4")
@mqtt311("3.3.1-6", "4.6.0-6", "3.8.4-3")
def test_a_new_subscriber_never_goes_back_in_time(client: ClientMaker, version: int, topic: str) -> None:
    """An older retained message never comes after a newer live one, and the last one always comes."""
    subscriber, publisher = client(version), client(version)
    for start in range(0, 400, 40):
        publisher.send(
            *(wire.publish(topic, b"%d" % number, version=version, retain=True) for number in range(start, start + 40))
        )
        subscriber.send(wire.subscribe(start + 1, [(topic, 0)], version=version))
    publisher.sync()
    numbers: list[int] = []
    while not numbers or numbers[-1] != 399:
        packet = subscriber.receive()
        if packet.kind is Kind.PUBLISH:
            numbers.append(int(packet.payload))
    assert numbers == sorted(numbers)


@mqtt5("3.3.2-5", "3.3.2-6")
def test_retained_messages_expire(client: ClientMaker) -> None:
    base = unique()
    publisher = client()
    for name, seconds in (("brief", 1), ("long", 100)):
        publisher.publish(f"{base}/{name}", b"x", retain=True, props=[(Property.MESSAGE_EXPIRY, seconds)])
    published = time.monotonic()
    while time.monotonic() < published + 1.6:  # time itself is what this is about
        time.sleep(0.05)
    subscriber = client()
    subscriber.subscribe(f"{base}/brief", f"{base}/+")
    got = subscriber.take()
    assert got.topic == f"{base}/long".encode()
    assert 97 <= got.number(Property.MESSAGE_EXPIRY) <= 99
    subscriber.expect_nothing()
    publisher.publish(f"{base}/long", retain=True)


@both
@mqtt5("3.8.4-8", "3.3.1-5")
@mqtt311("3.8.4-6", "3.3.1-5")
def test_retained_messages_keep_to_the_granted_qos(client: ClientMaker, version: int, topic: str) -> None:
    client(version).publish(topic, b"x", qos=2, retain=True)
    for granted in (0, 1, 2):
        subscriber = client(version)
        subscriber.subscribe(topic, qos=granted)
        assert subscriber.take().qos == granted


@mqtt5("3.3.1-9", "3.3.4-3")
def test_retained_messages_carry_the_subscription_identifier(client: ClientMaker, topic: str) -> None:
    client().publish(topic, b"x", retain=True)
    subscriber = client()
    subscriber.subscribe(topic, props=[(Property.SUBSCRIPTION_ID, 9)])
    assert subscriber.take().get(Property.SUBSCRIPTION_ID) == 9

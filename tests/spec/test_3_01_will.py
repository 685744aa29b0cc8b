"""Sections 3.1.2.5 to 3.1.2.7 and 3.1.3.2: the will."""

from __future__ import annotations

import time

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import Client, unique
from tests.harness.wire import KEPT, Property, Will
from tests.spec.marks import both, every_qos, every_version, mqtt5, mqtt311

PROTOCOL_ERROR, WITH_WILL = 0x82, 0x04


def watch(client: ClientMaker, topic: str, version: int = 5) -> Client:
    """A client that sees the will, with the QoS and the retain flag with which it was published."""
    watcher = client(version)
    watcher.subscribe(topic, qos=2)
    return watcher


@every_version
@every_qos
@mqtt5("3.1.2-7", "3.1.2-8", "3.1.2-9", "3.1.2-12")
@mqtt311("3.1.2-8", "3.1.2-9", "3.1.2-14")
def test_a_lost_connection_publishes_the_will(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    client(version, will=Will(topic, b"gone", qos)).drop()
    got = watcher.take()
    assert (got.topic, got.payload, got.qos) == (topic.encode(), b"gone", qos)


@both
@mqtt5("3.1.2-8")
@mqtt311("3.1.2-8")
def test_a_closed_connection_without_disconnect_publishes_the_will(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    client(version, will=Will(topic)).close()
    assert watcher.take().payload == b"will"


@both
@mqtt5("3.1.2-8", "4.13.1-1")
@mqtt311("3.1.2-8", "4.8.0-1")
def test_a_protocol_error_publishes_the_will(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    bad = client(version, will=Will(topic))
    bad.send(wire.connect("again", version=version)).expect_closed(PROTOCOL_ERROR)
    assert watcher.take().payload == b"will"


@every_version
@mqtt5("3.1.2-8", "3.1.4-3")
@mqtt311("3.1.2-8", "3.1.4-2")
def test_a_takeover_publishes_the_will_of_the_old_connection(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    old = client(version, will=Will(topic, b"old"))
    client(version, old.client_id)
    old.drain()
    assert watcher.take().payload == b"old"
    watcher.expect_nothing()


@every_version
@mqtt5("3.1.2-8", "3.1.2-10", "3.14.4-3")
@mqtt311("3.1.2-8", "3.1.2-10", "3.14.4-3")
def test_disconnect_deletes_the_will(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    client(version, will=Will(topic)).disconnect()
    watcher.expect_nothing()


@mqtt5("3.1.2-8")
def test_disconnect_with_will_publishes_it(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, topic)
    client(will=Will(topic)).disconnect(WITH_WILL)
    assert watcher.take().payload == b"will"


@both
@mqtt5("3.1.2-10")
@mqtt311("3.1.2-10")
def test_a_will_is_published_once(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    first = client(version, will=Will(topic), **KEPT)
    first.drop()
    assert watcher.take().payload == b"will"
    client(version, first.client_id, **KEPT).drop()  # the session is the same, without a will this time
    client(version, first.client_id, will=Will(topic, b"second"), **KEPT).drop()
    assert watcher.take().payload == b"second"


@both
@mqtt5("3.1.2-10")
@mqtt311("3.1.2-12")
def test_without_the_flag_there_is_no_will(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher = watch(client, f"{topic}/#", version)
    plain = client(version)
    client(version, plain.client_id, will=Will(f"{topic}/b")).drop()  # taking over ended the one without a will
    assert watcher.take().topic == f"{topic}/b".encode()
    watcher.expect_nothing()


@every_version
@pytest.mark.parametrize("retain", [False, True], ids=["not-retained", "retained"])
@mqtt5("3.1.2-14", "3.1.2-15")
@mqtt311("3.1.2-16", "3.1.2-17")
def test_the_will_is_retained_as_asked(client: ClientMaker, version: int, retain: bool) -> None:
    topic = unique()
    watcher = watch(client, topic, version)
    client(version, will=Will(topic, b"w", retain=retain)).drop()
    assert not watcher.take().retain
    late = watch(client, topic, version)
    if retain:
        got = late.take()
        assert (got.payload, got.retain) == (b"w", True)
        client(version).publish(topic, retain=True)
    else:
        late.expect_nothing()


@mqtt5("3.1.3-10", "3.1.2-9")
def test_the_will_has_its_properties_in_their_order(client: ClientMaker) -> None:
    topic = unique()
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("", "")]
    properties: wire.Properties = [
        (Property.USER_PROPERTY, pairs[0]),
        (Property.PAYLOAD_FORMAT, 1),
        (Property.USER_PROPERTY, pairs[1]),
        (Property.CONTENT_TYPE, "text/plain"),
        (Property.RESPONSE_TOPIC, "answers"),
        (Property.CORRELATION_DATA, b"\0\1"),
        (Property.MESSAGE_EXPIRY, 100),
        (Property.USER_PROPERTY, pairs[2]),
        (Property.USER_PROPERTY, pairs[3]),
        (Property.WILL_DELAY, 0),
    ]
    watcher = watch(client, topic)
    client(will=Will(topic, properties=properties)).drop()
    got = watcher.take()
    assert got.all(Property.USER_PROPERTY) == pairs
    assert got.get(Property.PAYLOAD_FORMAT) == 1
    assert got.get(Property.CONTENT_TYPE) == "text/plain"
    assert got.get(Property.RESPONSE_TOPIC) == "answers"
    assert got.get(Property.CORRELATION_DATA) == b"\0\1"
    assert 98 <= got.number(Property.MESSAGE_EXPIRY) <= 100


def delayed(seconds: int, topic: str, *, expiry: int = 30) -> dict[str, object]:
    return {
        "clean": False,
        "props": [(Property.SESSION_EXPIRY, expiry)],
        "will": Will(topic, properties=[(Property.WILL_DELAY, seconds)]),
    }


@mqtt5("3.1.2-8")
def test_the_will_waits_for_its_delay(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, topic)
    client(**delayed(1, topic)).drop()
    start = time.monotonic()
    watcher.take()
    assert time.monotonic() - start > 0.7


@mqtt5("3.1.2-8")
def test_the_will_goes_out_when_the_session_ends_before_its_delay(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, topic)
    client(**delayed(3600, topic, expiry=1)).drop()
    start = time.monotonic()
    watcher.take()
    assert time.monotonic() - start > 0.7


@mqtt5("3.1.2-8", "3.1.2-4")
def test_the_will_goes_out_when_a_clean_start_ends_the_session_before_its_delay(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, topic)
    old = client(**delayed(3600, topic))
    old.drop()
    client(5, old.client_id, clean=True)
    assert watcher.take().payload == b"will"


@mqtt5("3.1.3-9", "3.1.2-8")
def test_coming_back_within_the_delay_cancels_the_will(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, f"{topic}/#")
    lost = client(**delayed(1, f"{topic}/cancelled"))
    lost.drop()
    back = client(5, lost.client_id, clean=False, props=[(Property.SESSION_EXPIRY, 30)])
    assert back.connack.session_present
    client(**delayed(2, f"{topic}/later")).drop()
    assert watcher.take().topic == f"{topic}/later".encode()  # the cancelled one was due a second before
    watcher.expect_nothing()


@mqtt5("3.1.3-9")
def test_a_takeover_within_the_delay_publishes_no_will(client: ClientMaker) -> None:
    topic = unique()
    watcher = watch(client, topic)
    old = client(**delayed(3600, topic))
    client(5, old.client_id, clean=False, props=[(Property.SESSION_EXPIRY, 30)])
    old.drain()
    watcher.expect_nothing()


@pytest.mark.parametrize(
    "properties",
    [
        [(Property.WILL_DELAY, 1), (Property.WILL_DELAY, 1)],
        [(Property.PAYLOAD_FORMAT, 2)],
        [(Property.TOPIC_ALIAS, 1)],
        [(Property.SESSION_EXPIRY, 1)],
        [(Property.RESPONSE_TOPIC, "a/#")],
    ],
    ids=["twice", "payload-format-2", "topic-alias", "property-of-connect", "response-topic-with-wildcard"],
)
@mqtt5("3.1.4-1", "3.1.2-9", "3.3.2-14")
def test_wrong_will_properties_are_refused(raw: ClientMaker, properties: wire.Properties) -> None:
    bad = raw().send(wire.connect(unique(), will=Will("w", properties=properties)))
    bad.expect_refused(0x81, 0x82, 0x90)


@both
@pytest.mark.parametrize("topic", ["a/+", "#", ""])
@mqtt5("3.3.2-2", "4.7.0-1", "4.7.3-1", "3.1.4-1")
@mqtt311("4.7.1-1", "4.7.3-1", "3.1.4-1")
def test_a_will_topic_must_be_a_topic_name(raw: ClientMaker, version: int, topic: str) -> None:
    bad = raw(version).send(wire.connect(unique(), version=version, will=Will(topic)))
    bad.expect_refused(*([0x81, 0x82, 0x90] if version == 5 else []))

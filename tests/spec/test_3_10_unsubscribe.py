"""Sections 3.10 and 3.11: UNSUBSCRIBE and UNSUBACK."""

from __future__ import annotations

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, Kind, Property
from tests.spec.marks import acknowledged_qos, both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, NO_SUBSCRIPTION = 0x81, 0x82, 0x11


@both
@mqtt5("3.10.3-2", "4.13.1-1")
@mqtt311("3.10.3-2", "4.8.0-1")
def test_an_unsubscribe_without_filter_ends_the_connection(client: ClientMaker, version: int) -> None:
    client(version).send(wire.unsubscribe(1, [], version=version)).expect_closed(PROTOCOL_ERROR, MALFORMED)


@both
@mqtt5("3.10.3-1", "4.13.1-1")
@mqtt311("3.10.3-1")
def test_a_filter_that_ends_early_ends_the_connection(client: ClientMaker, version: int) -> None:
    whole = wire.unsubscribe(1, ["a/b"], version=version)
    client(version).send(wire.packet(Kind.UNSUBSCRIBE, 2, whole[2:-1])).expect_closed(MALFORMED)


@both
@mqtt5("3.10.4-1", "3.10.4-2")
@mqtt311("3.10.4-1", "3.10.4-2")
def test_the_filter_is_compared_character_by_character(client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(f"{base}/a")
    subscriber.unsubscribe(f"{base}/+", f"{base}/#", f"{base}/A", f"{base}/a/", f"/{base}/a")
    publisher.publish(f"{base}/a", b"still here")
    assert subscriber.take().payload == b"still here"
    subscriber.unsubscribe(f"{base}/a")
    publisher.publish(f"{base}/a", b"gone")
    subscriber.expect_nothing()


@both
@mqtt5("3.10.4-1", "3.10.4-2")
@mqtt311("3.10.4-1", "3.10.4-2")
def test_a_wildcard_subscription_ends_alone(client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(f"{base}/#", f"{base}/a")
    subscriber.unsubscribe(f"{base}/#")
    publisher.publish(f"{base}/b", b"no")
    publisher.publish(f"{base}/a", b"yes")
    assert subscriber.take().payload == b"yes"
    subscriber.expect_nothing()


@both
@acknowledged_qos
@mqtt5("3.10.4-3")
@mqtt311("3.10.4-3")
def test_a_delivery_that_has_begun_is_completed(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    subscriber = client(version, **KEPT)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, b"x", qos=qos)
    begun = subscriber.expect(Kind.PUBLISH)
    subscriber.unsubscribe(topic)
    subscriber.drop()
    back = client(version, subscriber.client_id, **KEPT)
    again = back.take()  # sent again, and the QoS 2 exchange goes on to its end
    assert (again.packet_id, again.payload, again.dup) == (begun.packet_id, b"x", True)


@both
@mqtt5("3.10.4-4", "3.10.4-5", "3.10.4-6", "3.11.3-1", "3.11.3-2")
@mqtt311("3.10.4-4", "3.10.4-5", "3.10.4-6")
def test_unsuback_answers_every_filter_in_order(client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(f"{base}/a", f"{base}/b", f"{base}/c")
    answer = subscriber.unsubscribe(f"{base}/a", f"{base}/never", f"{base}/c")
    assert answer.reasons == ([0, NO_SUBSCRIPTION, 0] if version == 5 else [])
    for name in "abc":
        publisher.publish(f"{base}/{name}", name.encode())
    assert subscriber.take().payload == b"b"
    subscriber.expect_nothing()


@mqtt5("3.11.2-1", "3.11.2-2")
def test_unsuback_stays_within_the_maximum_packet_size(client: ClientMaker) -> None:
    subscriber = client(props=[(Property.MAXIMUM_PACKET_SIZE, 20)])
    assert subscriber.unsubscribe(unique()).size <= 20


@both
@mqtt5("3.10.4-1")
@mqtt311("3.10.4-1")
def test_an_unsubscribed_session_stays_so(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version, **KEPT)
    subscriber.subscribe(topic, qos=1)
    subscriber.unsubscribe(topic)
    subscriber.disconnect()
    client(version).publish(topic, b"x", qos=1)
    client(version, subscriber.client_id, **KEPT).expect_nothing()

"""Sections 3.4 to 3.7: PUBACK, PUBREC, PUBREL, PUBCOMP."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import Client, unique
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, ID_NOT_FOUND = 0x81, 0x82, 0x92


def exchange(publisher: Client, subscriber: Client, topic: str) -> list[Packet]:
    """Every acknowledgement that the node sends: for QoS 1 and 2 inwards, for QoS 2 outwards, and for unknown ids."""
    got = []
    publisher.send(wire.publish(topic, b"1", version=publisher.version, qos=1, packet_id=1))
    got.append(publisher.expect(Kind.PUBACK))
    publisher.send(wire.publish(topic, b"2", version=publisher.version, qos=2, packet_id=2))
    got.append(publisher.expect(Kind.PUBREC))
    publisher.send(wire.acknowledge(Kind.PUBREL, 2))
    got.append(publisher.expect(Kind.PUBCOMP))
    subscriber.send(wire.acknowledge(Kind.PUBACK, subscriber.expect(Kind.PUBLISH).packet_id))
    subscriber.send(wire.acknowledge(Kind.PUBREC, subscriber.expect(Kind.PUBLISH).packet_id))
    got.append(subscriber.expect(Kind.PUBREL))
    subscriber.send(wire.acknowledge(Kind.PUBCOMP, got[-1].packet_id))
    subscriber.send(wire.acknowledge(Kind.PUBREL, 999))
    got.append(subscriber.expect(Kind.PUBCOMP))
    return got


@both
@mqtt5("3.4.2-1", "3.5.2-1", "3.6.2-1", "3.7.2-1")
@mqtt311("3.3.4-1")
def test_acknowledgements_have_reason_codes_of_their_own(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    got = exchange(client(version), subscriber, topic)  # the decoder knows which codes each packet has
    assert [one.reason for one in got[:4]] == [0, 0, 0, 0]
    assert got[4].reason == (ID_NOT_FOUND if version == 5 else 0)


@mqtt5("3.4.2-1", "3.5.2-1")
def test_a_message_for_nobody_is_acknowledged(client: ClientMaker) -> None:
    publisher = client()
    for qos in (1, 2):
        answer = publisher.publish(unique(), qos=qos)
        assert answer is not None
        assert answer.reason in (0x00, 0x10)


@mqtt5("3.4.2-2", "3.4.2-3", "3.5.2-2", "3.5.2-3", "3.6.2-2", "3.6.2-3", "3.7.2-2", "3.7.2-3")
def test_acknowledgements_stay_within_the_maximum_packet_size(client: ClientMaker) -> None:
    """Reason String and User Properties are left out where they would not fit: with 20 bytes no sentence does."""
    topic = unique()[-8:]
    small = [(Property.MAXIMUM_PACKET_SIZE, 20)]
    subscriber = client(props=small)
    subscriber.subscribe(topic, qos=2)
    for got in exchange(client(props=small), subscriber, topic):
        assert got.size <= 20


@pytest.mark.parametrize("form", ["short", "reason", "reason and length", "properties"])
@mqtt5("3.4.2-1", "3.5.2-1", "3.7.2-1", "4.3.2-3", "4.3.3-3", "4.3.3-5")
def test_every_form_of_a_clients_acknowledgement_is_taken(client: ClientMaker, form: str) -> None:
    topic = unique()
    subscriber = client(props=[(Property.RECEIVE_MAXIMUM, 1)])
    subscriber.subscribe(topic, qos=2)
    publisher = client()
    for qos in (1, 2, 1):
        publisher.publish(topic, b"x", qos=qos)

    def answer(kind: Kind, packet_id: int) -> None:
        explained: wire.Properties = [(Property.REASON_STRING, "so"), (Property.USER_PROPERTY, ("a", "b"))]
        arguments: dict[str, tuple[int | None, wire.Properties | None]] = {
            "short": (None, None),
            "reason": (0, None),
            "reason and length": (0, []),
            "properties": (0, explained),
        }
        subscriber.send(wire.acknowledge(kind, packet_id, *arguments[form]))

    answer(Kind.PUBACK, subscriber.expect(Kind.PUBLISH).packet_id)
    second = subscriber.expect(Kind.PUBLISH)
    answer(Kind.PUBREC, second.packet_id)
    subscriber.expect(Kind.PUBREL)
    answer(Kind.PUBCOMP, second.packet_id)
    assert subscriber.expect(Kind.PUBLISH).qos == 1  # each was understood, or the window of one would still be full


@pytest.mark.parametrize("kind", [Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP], ids=lambda kind: kind.name)
@both
@mqtt5("3.6.1-1", "4.13.1-1")
@mqtt311("4.8.0-1")
def test_an_acknowledgement_without_packet_id_ends_the_connection(
    client: ClientMaker, version: int, kind: Kind
) -> None:
    flags = 2 if kind is Kind.PUBREL else 0
    for body in (b"", b"\0"):
        client(version).send(wire.packet(kind, flags, body)).expect_closed(MALFORMED)


@pytest.mark.parametrize("kind", [Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP], ids=lambda kind: kind.name)
@mqtt5("3.4.2-1", "3.5.2-1", "3.6.2-1", "3.7.2-1", "4.13.1-1")
def test_a_reason_code_that_the_packet_does_not_have_ends_the_connection(client: ClientMaker, kind: Kind) -> None:
    client().send(wire.acknowledge(kind, 1, 0x42)).expect_closed(MALFORMED, PROTOCOL_ERROR)


@both
@mqtt5("3.6.2-1", "4.3.3-4")
@mqtt311("4.3.3-1")
def test_pubrec_for_an_unknown_packet_id(client: ClientMaker, version: int) -> None:
    subscriber = client(version).send(wire.acknowledge(Kind.PUBREC, 77))
    got = subscriber.expect(Kind.PUBREL)
    assert got.packet_id == 77
    assert got.reason == (ID_NOT_FOUND if version == 5 else 0)


@both
@mqtt5("4.3.2-3", "4.3.3-5", "4.4.0-1")
@mqtt311("4.3.2-1", "4.3.3-1")
def test_acknowledgements_of_unknown_packet_ids_are_ignored(client: ClientMaker, version: int) -> None:
    subscriber = client(version)
    subscriber.send(wire.acknowledge(Kind.PUBACK, 77), wire.acknowledge(Kind.PUBCOMP, 78))
    subscriber.expect_nothing()

"""Section 4.13 (4.8 of 3.1.1): handling errors. Whatever arrives ends in an answer or a clean close."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, PINGREQ, Kind, Property
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82

BREACHES: dict[str, tuple[Callable[[int], bytes], set[int]]] = {
    "qos3": (lambda version: wire.publish("a", version=version, qos=3, packet_id=1), {MALFORMED}),
    "reserved-flag": (lambda version: wire.packet(Kind.PINGREQ, 1), {MALFORMED}),
    "type-0": (lambda version: b"\0\0", {MALFORMED, PROTOCOL_ERROR}),
    "second-connect": (lambda version: wire.connect("x", version=version), {PROTOCOL_ERROR}),
    "no-filters": (lambda version: wire.subscribe(1, [], version=version), {PROTOCOL_ERROR, MALFORMED}),
    "connack-from-client": (lambda version: wire.packet(Kind.CONNACK, 0, b"\0\0\0"), {MALFORMED, PROTOCOL_ERROR}),
    "field-too-long": (lambda version: wire.packet(Kind.SUBSCRIBE, 2, b"\0\1\0\xff\xff"), {MALFORMED}),
}


@both
@pytest.mark.parametrize("breach", BREACHES)
@mqtt5("4.13.1-1", "4.13.2-1")
@mqtt311("4.8.0-1")
def test_a_breach_ends_the_connection_with_its_reason(client: ClientMaker, version: int, breach: str) -> None:
    make, reasons = BREACHES[breach]
    client(version).send(make(version)).expect_closed(*reasons)


TWICE: wire.Properties = [(Property.REASON_STRING, "a"), (Property.REASON_STRING, "b")]
AUTH_TWICE: wire.Properties = [(Property.AUTH_METHOD, "a"), (Property.AUTH_METHOD, "a")]
ONLY_IN_5: dict[str, tuple[bytes, set[int]]] = {
    "puback-property-twice": (wire.acknowledge(Kind.PUBACK, 1, 0, TWICE), {PROTOCOL_ERROR}),
    "pubrec-property-twice": (wire.acknowledge(Kind.PUBREC, 1, 0, TWICE), {PROTOCOL_ERROR}),
    "pubrel-property-twice": (wire.acknowledge(Kind.PUBREL, 1, 0, TWICE), {PROTOCOL_ERROR}),
    "pubcomp-property-twice": (wire.acknowledge(Kind.PUBCOMP, 1, 0, TWICE), {PROTOCOL_ERROR}),
    "disconnect-property-twice": (wire.disconnect(0, TWICE), {PROTOCOL_ERROR}),
    "auth-property-twice": (wire.auth(0x18, AUTH_TWICE), {PROTOCOL_ERROR}),
    "unsubscribe-with-identifier": (
        wire.unsubscribe(1, ["a"], props=[(Property.SUBSCRIPTION_ID, 1)]),
        {MALFORMED, PROTOCOL_ERROR},
    ),
    "puback-with-property-of-publish": (
        wire.acknowledge(Kind.PUBACK, 1, 0, [(Property.CONTENT_TYPE, "x")]),
        {MALFORMED, PROTOCOL_ERROR},
    ),
    "disconnect-with-server-reference": (
        wire.disconnect(0, [(Property.SERVER_REFERENCE, "elsewhere")]),
        {MALFORMED, PROTOCOL_ERROR},
    ),
    "properties-end-before-the-packet": (wire.packet(Kind.PUBACK, 0, b"\0\1\0\0x"), {MALFORMED}),
    "properties-end-after-the-packet": (wire.packet(Kind.PUBACK, 0, b"\0\1\0\5"), {MALFORMED}),
    "disconnect-with-too-much": (wire.packet(Kind.DISCONNECT, 0, b"\0\0x"), {MALFORMED}),
    "subscription-identifier-too-long": (
        wire.packet(Kind.SUBSCRIBE, 2, b"\0\1\6\x0b\xff\xff\xff\xff\x01\0\1a\0"),
        {MALFORMED},
    ),
}


@pytest.mark.parametrize("breach", ONLY_IN_5)
@mqtt5("4.13.1-1")
def test_a_breach_that_only_5_has(client: ClientMaker, breach: str) -> None:
    packet, reasons = ONLY_IN_5[breach]
    client().send(packet).expect_closed(*reasons)


@pytest.mark.parametrize(
    "packet",
    [
        wire.packet(Kind.PUBACK, 0, b"\0\1\0"),
        wire.packet(Kind.PUBREL, 2, b"\0\1\0"),
        wire.packet(Kind.DISCONNECT, 0, b"\0"),
        wire.packet(Kind.UNSUBSCRIBE, 2, b"\0\1\0\1a\0"),
        wire.packet(Kind.SUBSCRIBE, 2, b"\0\1\0\1a\0\0"),
    ],
    ids=["puback", "pubrel", "disconnect", "unsubscribe", "subscribe"],
)
@mqtt311("4.8.0-1")
def test_bytes_after_the_end_of_a_packet(client: ClientMaker, packet: bytes) -> None:
    client(4).send(packet).expect_closed()


@both
@pytest.mark.parametrize("breach", BREACHES)
@mqtt5("4.13.1-1")
@mqtt311("4.8.0-1")
def test_nothing_after_a_breach_is_handled(client: ClientMaker, version: int, breach: str) -> None:
    topic = unique()
    watcher, bad = client(version), client(version)
    watcher.subscribe(topic)
    before, after = (wire.publish(topic, payload, version=version) for payload in (b"before", b"after"))
    bad.send(before, BREACHES[breach][0](version), after)
    bad.drain()
    assert watcher.take().payload == b"before"  # what was right has been handled
    watcher.expect_nothing()


@both
@mqtt5("4.13.1-1")
@mqtt311("4.8.0-1")
def test_a_breach_leaves_the_session_as_it_was(client: ClientMaker, version: int) -> None:
    topic = unique()
    bad = client(version, **KEPT)
    bad.subscribe(topic, qos=1)
    bad.send(b"\x30\xff\xff\xff\xff\x01").expect_closed(MALFORMED)
    client(version).publish(topic, b"x", qos=1)
    assert client(version, bad.client_id, **KEPT).take().payload == b"x"


@both
@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
@mqtt5("4.2.0-1")
@mqtt311("7.1.1-1")
def test_packets_may_arrive_in_any_pieces(client: ClientMaker, version: int, size: int) -> None:
    topic = unique()
    subscriber, publisher = client(version), client(version)
    subscriber.subscribe(topic, qos=1)
    stream = b"".join(
        [
            wire.publish(topic, b"one", version=version),
            wire.publish(topic, b"two" * 60, version=version, qos=1, packet_id=1),
            PINGREQ,
            wire.publish(topic, b"three", version=version, qos=1, packet_id=2),
        ]
    )
    for start in range(0, len(stream), size):
        publisher.send(stream[start : start + size])
    assert subscriber.take_payloads(3) == [b"one", b"two" * 60, b"three"]
    assert [publisher.receive().kind for _ in range(3)] == [Kind.PUBACK, Kind.PINGRESP, Kind.PUBACK]

"""Chapter 1: how text and numbers are written."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import Kind, Property, Will
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED = 0x81

BAD_TEXT = {
    "surrogate": b"a\xed\xa0\x80",
    "lone-continuation": b"a\x80",
    "overlong": b"a\xc0\xaf",
    "cut-short": b"a\xe2\x82",
    "beyond-unicode": b"a\xf4\x90\x80\x80",
    "null": b"a\0b",
}
bad_text = pytest.mark.parametrize("bad", BAD_TEXT.values(), ids=BAD_TEXT.keys())


@both
@bad_text
@pytest.mark.parametrize("place", ["client id", "will topic", "user name"])
@mqtt5("1.5.4-1", "1.5.4-2", "3.1.3-4", "3.1.3-11", "3.1.3-12")
@mqtt311("1.5.3-1", "1.5.3-2", "3.1.3-4", "3.1.3-10", "3.1.3-11")
def test_ill_formed_text_in_connect_is_refused(raw: ClientMaker, version: int, place: str, bad: bytes) -> None:
    client = raw(version)
    if place == "client id":
        client.send(wire.connect(bad, version=version))
    elif place == "will topic":
        client.send(wire.connect(unique(), version=version, will=Will(bad)))
    else:
        client.send(wire.connect(unique(), version=version, username=bad))
    if version == 5:
        client.expect_refused(MALFORMED)
    else:
        client.expect_refused()


@both
@bad_text
@pytest.mark.parametrize("place", ["publish", "subscribe", "unsubscribe"])
@mqtt5("1.5.4-1", "1.5.4-2", "3.3.2-1", "3.8.3-1", "3.10.3-1", "4.7.3-2")
@mqtt311("1.5.3-1", "1.5.3-2", "3.3.2-1", "3.8.3-1", "3.10.3-1", "4.7.3-2")
def test_ill_formed_topic_ends_the_connection(client: ClientMaker, version: int, place: str, bad: bytes) -> None:
    packets = {
        "publish": wire.publish(bad, version=version),
        "subscribe": wire.subscribe(1, [(bad, 0)], version=version),
        "unsubscribe": wire.unsubscribe(1, [bad], version=version),
    }
    client(version).send(packets[place]).expect_closed(MALFORMED)


@bad_text
@pytest.mark.parametrize(
    "prop",
    [Property.CONTENT_TYPE, Property.RESPONSE_TOPIC, "property name", "property value"],
    ids=["content-type", "response-topic", "user-property-name", "user-property-value"],
)
@mqtt5("1.5.4-1", "1.5.4-2", "1.5.7-1", "3.3.2-13", "3.3.2-19")
def test_ill_formed_text_in_a_property_ends_the_connection(
    client: ClientMaker, prop: Property | str, bad: bytes
) -> None:
    if isinstance(prop, Property):
        props: wire.Properties = [(prop, bad)]
    else:
        pair = (bad, "x") if prop == "property name" else ("x", bad)
        props = [(Property.USER_PROPERTY, pair)]
    client().send(wire.publish(unique(), props=props)).expect_closed(MALFORMED)


@bad_text
@mqtt5("1.5.4-1", "1.5.4-2", "1.5.7-1")
def test_ill_formed_text_in_an_acknowledgement_ends_the_connection(client: ClientMaker, bad: bytes) -> None:
    for packet in (
        wire.acknowledge(Kind.PUBREL, 1, 0, [(Property.REASON_STRING, bad)]),
        wire.subscribe(1, [("a", 0)], props=[(Property.USER_PROPERTY, (bad, ""))]),
    ):
        client().send(packet).expect_closed(MALFORMED)


@both
@mqtt5("1.5.4-3", "4.7.3-4")
@mqtt311("1.5.3-3", "4.7.3-4")
def test_a_byte_order_mark_is_a_character_like_any_other(client: ClientMaker, version: int) -> None:
    marked = b"\xef\xbb\xbf" + unique().encode()
    subscriber, other, publisher = client(version), client(version), client(version)
    subscriber.subscribe(marked)
    other.subscribe(marked[3:])
    publisher.publish(marked, b"x")
    assert subscriber.take().topic == marked
    other.expect_nothing()


@both
@mqtt5("1.5.4-1")
@mqtt311("1.5.3-1")
def test_all_of_unicode_passes_unchanged(client: ClientMaker, version: int) -> None:
    topic = f"{unique()}/ÄÖ/語/\U0001f40b/\u00ad/e\u0301"
    subscriber = client(version)
    subscriber.subscribe(topic)
    client(version).publish(topic, b"x")
    assert subscriber.take().topic == topic.encode()


@both
@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_300, 16_383, 16_384, 70_000])
@mqtt5("1.5.5-1")
def test_lengths_around_the_steps_of_their_encoding(client: ClientMaker, version: int, size: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic)
    client(version).publish(topic, b"x" * size)
    assert subscriber.take().payload == b"x" * size  # the decoder insists on minimal lengths


@pytest.mark.parametrize(
    "packet",
    [
        b"\xc0\x80\x00",  # PINGREQ with a length of zero in two bytes
        b"\x30\x05\x00\x01a\x80\x00",  # PUBLISH with a Property Length of zero in two bytes
    ],
    ids=["remaining-length", "property-length"],
)
@mqtt5("1.5.5-1")
def test_a_length_that_is_longer_than_needed_is_malformed(client: ClientMaker, packet: bytes) -> None:
    client().send(packet).expect_closed(MALFORMED)


@both
@mqtt5("1.5.5-1", "4.13.1-1")
@mqtt311("4.8.0-1")
def test_a_length_of_five_bytes_is_malformed(client: ClientMaker, version: int) -> None:
    client(version).send(b"\x30\xff\xff\xff\xff\x01").expect_closed(MALFORMED)


@both
@mqtt5("1.5.5-1", "3.1.4-1")
@mqtt311("3.1.4-1")
def test_a_length_of_five_bytes_is_malformed_in_connect_too(raw: ClientMaker, version: int) -> None:
    raw(version).send(b"\x10\xff\xff\xff\xff\x01").expect_refused()

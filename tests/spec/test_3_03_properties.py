"""Section 3.3.2.3: the properties of a PUBLISH."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, Kind, Property
from tests.spec.marks import every_qos, mqtt5

MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID, RECEIVE_MAXIMUM, ALIAS_INVALID = 0x81, 0x82, 0x90, 0x93, 0x94


# -- properties pass unaltered -----------------------------------------------------------------------------------


@every_qos
@mqtt5("3.3.2-4", "3.3.2-15", "3.3.2-16", "3.3.2-17", "3.3.2-18", "3.3.2-20")
def test_properties_arrive_unaltered_and_in_order(client: ClientMaker, qos: int) -> None:
    topic = unique()
    pairs = [("b", "1"), ("a", "2"), ("b", "1"), ("", ""), ("ü", "\ufeff" * 50)]
    props: wire.Properties = [
        (Property.USER_PROPERTY, pairs[0]),
        (Property.CONTENT_TYPE, "text/plain; charset=utf-8"),
        (Property.USER_PROPERTY, pairs[1]),
        (Property.PAYLOAD_FORMAT, 1),
        (Property.RESPONSE_TOPIC, "answers/für/mich"),
        *((Property.USER_PROPERTY, pair) for pair in pairs[2:]),
        (Property.CORRELATION_DATA, bytes(range(256))),
    ]
    subscribers = [client(), client(), client()]
    for subscriber in subscribers:
        subscriber.subscribe(topic, qos=2)
    client().publish(topic, b"x", qos=qos, props=props)
    for subscriber in subscribers:
        got = subscriber.take()
        assert got.all(Property.USER_PROPERTY) == pairs
        assert got.get(Property.CONTENT_TYPE) == "text/plain; charset=utf-8"
        assert got.get(Property.PAYLOAD_FORMAT) == 1
        assert got.get(Property.RESPONSE_TOPIC) == "answers/für/mich"
        assert got.get(Property.CORRELATION_DATA) == bytes(range(256))


@pytest.mark.parametrize("declared", [0, 1])
@mqtt5("3.3.2-4")
def test_the_payload_format_indicator_arrives_as_sent(client: ClientMaker, declared: int) -> None:
    topic = unique()
    subscriber = client()
    subscriber.subscribe(topic)
    client().publish(topic, b"\x00", props=[(Property.PAYLOAD_FORMAT, declared)])
    assert subscriber.take().number(Property.PAYLOAD_FORMAT) == declared


@mqtt5("3.3.2-4", "3.3.2-15", "3.3.2-16", "3.3.2-17", "3.3.2-20")
def test_properties_survive_a_wait_in_a_session_and_the_retained_store(client: ClientMaker) -> None:
    topic = unique()
    props: wire.Properties = [
        (Property.PAYLOAD_FORMAT, 1),
        (Property.CONTENT_TYPE, "t"),
        (Property.RESPONSE_TOPIC, "r"),
        (Property.CORRELATION_DATA, b"c"),
        (Property.USER_PROPERTY, ("n", "1")),
        (Property.USER_PROPERTY, ("n", "2")),
    ]
    absent = client(**KEPT)
    absent.subscribe(topic, qos=1)
    absent.disconnect()
    publisher = client()
    publisher.publish(topic, b"x", qos=1, retain=True, props=props)
    late = client()
    late.subscribe(topic, qos=1)
    for receiver in (client(5, absent.client_id, **KEPT), late):
        assert sorted(receiver.take().properties, key=str) == sorted(props, key=str)
    publisher.publish(topic, retain=True)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200)
ANY_PROPERTIES = st.tuples(
    st.lists(st.tuples(st.just(Property.USER_PROPERTY), st.tuples(TEXTS, TEXTS)), max_size=20),
    st.lists(
        st.one_of(
            st.tuples(st.just(Property.PAYLOAD_FORMAT), st.just(0)),
            st.tuples(st.just(Property.CONTENT_TYPE), TEXTS),
            st.tuples(st.just(Property.RESPONSE_TOPIC), TEXTS.filter(lambda text: text and not set("+#") & set(text))),
            st.tuples(st.just(Property.CORRELATION_DATA), st.binary(max_size=300)),
        ),
        unique_by=lambda item: item[0],
    ),
).flatmap(lambda parts: st.permutations([*parts[0], *parts[1]]))


@mqtt5("3.3.2-4", "3.3.2-15", "3.3.2-16", "3.3.2-17", "3.3.2-18", "3.3.2-20")
def test_any_properties_arrive_unaltered(client: ClientMaker) -> None:
    topic = unique()
    publisher, subscriber = client(), client()
    subscriber.subscribe(topic, qos=1)

    @settings(max_examples=100, deadline=None, database=None)
    @given(props=ANY_PROPERTIES, qos=st.integers(0, 1), payload=st.binary(max_size=300))
    def check(props: list[tuple[Property, wire.Value]], qos: int, payload: bytes) -> None:
        publisher.publish(topic, payload, qos=qos, props=props)
        got = subscriber.take()
        assert got.payload == payload
        assert sorted(got.properties, key=str) == sorted(props, key=str)
        assert got.all(Property.USER_PROPERTY) == [value for name, value in props if name is Property.USER_PROPERTY]

    check()


def test_properties_are_left_out_for_older_clients(client: ClientMaker) -> None:
    topic = unique()
    old = client(4)
    old.subscribe(topic, qos=2)
    props: wire.Properties = [(Property.USER_PROPERTY, ("a", "b")), (Property.CONTENT_TYPE, "x")]
    client().publish(topic, b"payload", qos=2, props=props)
    assert old.take().payload == b"payload"


@pytest.mark.parametrize("topic", ["a/+", "#"])
@mqtt5("3.3.2-14")
def test_a_response_topic_with_wildcards_is_a_protocol_error(client: ClientMaker, topic: str) -> None:
    packet = wire.publish(unique(), props=[(Property.RESPONSE_TOPIC, topic)])
    client().send(packet).expect_closed(PROTOCOL_ERROR, MALFORMED, TOPIC_INVALID)


# -- message expiry ----------------------------------------------------------------------------------------------


@mqtt5("3.3.2-5", "3.3.2-6", "4.3.3-7")
def test_message_expiry_while_a_client_is_away(client: ClientMaker) -> None:
    topic = unique()
    away, started = client(**KEPT), client(**KEPT)
    away.subscribe(topic, qos=2)
    started.subscribe(topic, qos=2)
    away.disconnect()
    publisher = client()
    for seconds, qos in ((1, 1), (1, 2), (100, 1), (100, 2)):
        publisher.publish(topic, b"%d" % seconds, qos=qos, props=[(Property.MESSAGE_EXPIRY, seconds)])
    published = time.monotonic()
    sent = [started.expect(Kind.PUBLISH) for _ in range(4)]
    started.drop()
    while time.monotonic() < published + 1.6:  # time itself is what this is about
        time.sleep(0.05)
    back = client(5, away.client_id, **KEPT)
    got = [back.take(), back.take()]
    assert [one.payload for one in got] == [b"100", b"100"]
    assert all(97 <= one.number(Property.MESSAGE_EXPIRY) <= 99 for one in got)
    back.expect_nothing()
    # delivery to the other one had begun: what was sent at QoS 2 is sent again although it is too old by now
    again = client(5, started.client_id, **KEPT)
    resent = [again.expect(Kind.PUBLISH)]
    while resent[-1].packet_id != sent[-1].packet_id:
        resent.append(again.expect(Kind.PUBLISH))
    assert [one.packet_id for one in resent if one.qos == 2] == [one.packet_id for one in sent if one.qos == 2]


@mqtt5("3.3.2-6")
def test_a_message_that_did_not_wait_keeps_its_expiry(client: ClientMaker) -> None:
    topic = unique()
    subscriber = client()
    subscriber.subscribe(topic)
    client().publish(topic, props=[(Property.MESSAGE_EXPIRY, 1000)])
    assert 998 <= subscriber.take().number(Property.MESSAGE_EXPIRY) <= 1000


# -- topic alias -------------------------------------------------------------------------------------------------


@every_qos
@mqtt5("3.3.2-12")
def test_a_topic_alias_stands_for_its_topic_until_changed(client: ClientMaker, qos: int) -> None:
    base = unique()
    subscriber, publisher = client(), client()
    if not publisher.connack.number(Property.TOPIC_ALIAS_MAXIMUM):
        pytest.skip("this broker takes no topic aliases")
    subscriber.subscribe(f"{base}/#", qos=2)
    for topic in (f"{base}/a", "", "", f"{base}/b", ""):
        publisher.publish(topic, b"x", qos=qos, props=[(Property.TOPIC_ALIAS, 1)])
    got = [subscriber.take() for _ in range(5)]
    assert [one.topic.decode()[-1] for one in got] == list("aaabb")
    assert all(one.get(Property.TOPIC_ALIAS) is None for one in got)


@mqtt5("3.3.2-7")
def test_topic_aliases_end_with_their_connection(client: ClientMaker) -> None:
    first = client(**KEPT)
    first.publish("a", props=[(Property.TOPIC_ALIAS, 1)])
    first.disconnect()
    again = client(5, first.client_id, **KEPT)
    again.send(wire.publish("", b"x", props=[(Property.TOPIC_ALIAS, 1)]))
    again.expect_closed(PROTOCOL_ERROR, ALIAS_INVALID)


@mqtt5("3.3.2-7", "3.1.2-26")
def test_topic_aliases_of_the_node_end_with_their_connection(client: ClientMaker) -> None:
    topic = unique()
    fields = {"clean": False, "props": [(Property.SESSION_EXPIRY, 30), (Property.TOPIC_ALIAS_MAXIMUM, 5)]}
    first, publisher = client(**fields), client()
    first.subscribe(topic, qos=1)
    for _ in range(3):
        publisher.publish(topic, b"x", qos=1)
        first.take()
    publisher.publish(topic, b"held", qos=1)
    first.expect(Kind.PUBLISH)
    first.sync().drop()
    publisher.publish(topic, b"new", qos=1)
    second = client(5, first.client_id, **fields)
    assert second.take().topic == topic.encode()  # sent again, with its name
    later = second.take()
    assert later.payload == b"new"
    assert later.topic in {topic.encode(), b""}


@pytest.mark.parametrize("alias", [0, 7], ids=["zero", "never-set"])
@mqtt5("3.3.2-8", "4.13.1-1")
def test_a_topic_alias_without_meaning_ends_the_connection(client: ClientMaker, alias: int) -> None:
    topic = unique() if alias == 0 else ""
    packet = wire.publish(topic, b"x", props=[(Property.TOPIC_ALIAS, alias)])
    client().send(packet).expect_closed(PROTOCOL_ERROR, ALIAS_INVALID)

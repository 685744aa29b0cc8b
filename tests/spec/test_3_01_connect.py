"""Section 3.1: CONNECT itself. Wills, and what it asks for the whole connection, have files of their own."""

from __future__ import annotations

import string

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import PINGREQ, Kind, Property, Will
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
KEEP_ALIVE_TIMEOUT, TAKEN_OVER = 0x8D, 0x8E


# -- the first packet --------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kind", ["publish", "subscribe", "pingreq", "disconnect", "puback", "http"])
@mqtt5("3.1.0-1", "3.14.0-1")
@mqtt311("3.1.0-1", "3.2.0-1")
def test_another_first_packet_than_connect_ends_the_connection(raw: ClientMaker, version: int, kind: str) -> None:
    packets = {
        "publish": wire.publish("a", version=version),
        "subscribe": wire.subscribe(1, [("a", 0)], version=version),
        "pingreq": PINGREQ,
        "disconnect": wire.disconnect(),
        "puback": wire.acknowledge(Kind.PUBACK, 1),
        "http": b"GET / HTTP/1.1\r\nHost: brook\r\n\r\n",
    }
    raw(version).send(packets[kind]).expect_refused()  # nothing is sent, not even a DISCONNECT


@both
@mqtt5("3.1.0-2", "3.2.0-2")
@mqtt311("3.1.0-2")
def test_a_second_connect_ends_the_connection(client: ClientMaker, version: int) -> None:
    connected = client(version)
    connected.send(wire.connect(connected.client_id, version=version)).expect_closed(PROTOCOL_ERROR)


@both
@mqtt5("3.1.4-5", "3.2.0-1", "3.2.0-2")
@mqtt311("3.1.4-4", "3.2.0-1")
def test_what_follows_connect_at_once_is_handled_after_its_connack(raw: ClientMaker, version: int) -> None:
    topic = unique()
    eager = raw(version).send(
        wire.connect(unique(), version=version),
        wire.subscribe(1, [(topic, 0)], version=version),
        wire.publish(topic, b"x", version=version),
        PINGREQ,
    )
    assert eager.expect(Kind.CONNACK).reason == 0
    assert eager.expect(Kind.SUBACK).packet_id == 1
    assert eager.expect(Kind.PUBLISH).payload == b"x"
    eager.expect(Kind.PINGRESP)


@both
@mqtt5("3.1.4-5", "3.1.3-1")
@mqtt311("3.1.4-4", "3.1.3-1", "7.0.0-2", "7.1.1-1")
def test_a_connect_in_single_bytes_is_accepted(raw: ClientMaker, version: int) -> None:
    slow = raw(version)
    for byte in wire.connect(unique(), version=version, will=Will("w"), username="u", password=b"p"):
        slow.send(bytes([byte]))
    assert slow.expect(Kind.CONNACK).reason == 0


# -- protocol name and version -----------------------------------------------------------------------------------


def refuses_the_version(answer: bytes) -> bool:
    """To a version that it does not know the node may answer in the form of 5.0, in that of 3.1.1, or not at all."""
    return answer in {b"", b"\x20\x02\x00\x01"} or (answer[0], answer[2:4]) == (0x20, b"\x00\x84")


@both
@pytest.mark.parametrize("name", ["MQTX", "mqtt", "", "MQTTX", "MQIsdp"])
@mqtt5("3.1.2-1")
@mqtt311("3.1.2-1")
def test_another_protocol_name_is_refused(raw: ClientMaker, version: int, name: str) -> None:
    answer = raw(version).send(wire.connect(unique(), version=version, protocol=name)).read_to_end()
    assert refuses_the_version(answer)


@pytest.mark.parametrize("level", [0, 1, 2])
@mqtt311("3.1.2-2", "3.2.2-5")
def test_an_unsupported_old_version_is_refused_with_return_code_1(raw: ClientMaker, level: int) -> None:
    packet = bytearray(wire.connect(unique(), version=4))
    packet[8] = level
    raw(4).send(bytes(packet)).expect_refused(1)


@pytest.mark.parametrize("level", [6, 7, 127])
@mqtt5("3.1.2-2", "3.2.2-7")
def test_an_unsupported_new_version_is_refused(raw: ClientMaker, level: int) -> None:
    packet = bytearray(wire.connect(unique()))
    packet[8] = level
    assert refuses_the_version(raw(5).send(bytes(packet)).read_to_end())


def test_mqtt_3_1_is_spoken_too(client: ClientMaker) -> None:
    topic = unique()
    old = client(3)
    old.subscribe(topic, qos=2)
    client(5).publish(topic, b"x", qos=2, props=[(Property.USER_PROPERTY, ("a", "b"))])
    assert old.take().payload == b"x"


# -- connect flags -----------------------------------------------------------------------------------------------


@both
@mqtt5("3.1.2-3")
@mqtt311("3.1.2-3")
def test_the_reserved_connect_flag_is_refused(raw: ClientMaker, version: int) -> None:
    bad = raw(version).send(wire.connect(unique(), version=version, flags=0x03))
    bad.expect_refused(*([MALFORMED, PROTOCOL_ERROR] if version == 5 else []))


BAD_FLAGS = [
    pytest.param(0x0A, b"", id="will-qos-without-will"),
    pytest.param(0x22, b"", id="will-retain-without-will"),
    pytest.param(0x1E, wire.binary("w") + wire.binary("m"), id="will-qos-3"),
    pytest.param(0x06, b"", id="will-without-topic"),
    pytest.param(0x06, wire.binary("w"), id="will-without-message"),
    pytest.param(0x82, b"", id="user-name-flag-without-user-name"),
    pytest.param(0x02, wire.binary("u"), id="user-name-without-flag"),
    pytest.param(0xC2, wire.binary("u"), id="password-flag-without-password"),
    pytest.param(0x82, wire.binary("u") + wire.binary("p"), id="password-without-flag"),
    pytest.param(0x02, wire.binary("w") + wire.binary("m"), id="will-without-flag"),
]


@both
@pytest.mark.parametrize(("flags", "rest"), BAD_FLAGS)
@mqtt5("3.1.2-9", "3.1.2-11", "3.1.2-12", "3.1.2-13", "3.1.2-16", "3.1.2-17", "3.1.2-18", "3.1.2-19", "3.1.4-1")
@mqtt311("3.1.2-9", "3.1.2-11", "3.1.2-13", "3.1.2-14", "3.1.2-15", "3.1.2-18", "3.1.2-19", "3.1.2-20", "3.1.2-21")
@mqtt311("3.1.4-1")
def test_connect_flags_and_payload_must_agree(raw: ClientMaker, version: int, flags: int, rest: bytes) -> None:
    will_properties = b"\0" if version == 5 and flags & 0x04 else b""
    payload = wire.binary(unique()) + (will_properties + rest if rest or flags & 0x04 else b"")
    bad = raw(version).send(wire.connect("", version=version, flags=flags, payload=payload))
    bad.expect_refused(*([MALFORMED, PROTOCOL_ERROR] if version == 5 else []))


@mqtt311("3.1.2-22")
def test_a_password_without_user_name_is_refused_before_5(raw: ClientMaker) -> None:
    raw(4).send(wire.connect(unique(), version=4, password=b"p")).expect_refused()


@mqtt5("3.1.2-19")
def test_a_password_without_user_name_is_fine_in_5(client: ClientMaker) -> None:
    client(5, password=b"p").expect_nothing()


# -- payload -----------------------------------------------------------------------------------------------------


@both
@mqtt5("3.1.3-3", "3.1.4-1")
@mqtt311("3.1.3-3", "3.1.4-1")
def test_a_connect_without_client_id_field_is_refused(raw: ClientMaker, version: int) -> None:
    bad = raw(version).send(wire.connect("", version=version, payload=b""))
    bad.expect_refused(*([MALFORMED] if version == 5 else []))


@both
@pytest.mark.parametrize("size", [1, 2, 22, 23])
@mqtt5("3.1.3-5")
@mqtt311("3.1.3-5")
def test_client_ids_up_to_23_letters_and_digits_are_allowed(client: ClientMaker, version: int, size: int) -> None:
    alphabet = string.digits + string.ascii_lowercase + string.ascii_uppercase
    for start in range(0, len(alphabet), size) if size > 2 else range(0, 62, 20):
        client(version, (alphabet[start : start + size] + alphabet)[:size]).expect_nothing()


@mqtt5("3.1.3-6", "3.1.3-7", "3.2.2-16")
def test_an_empty_client_id_gets_a_new_one(client: ClientMaker) -> None:
    expiry = [(Property.SESSION_EXPIRY, 30)]
    first, second = client(5, "", props=expiry), client(5, "")
    names = [one.connack.get(Property.ASSIGNED_CLIENT_ID) for one in (first, second)]
    assert names[0]
    assert names[1]
    assert names[0] != names[1]
    first.disconnect()
    again = client(5, str(names[0]), clean=False)  # it is a client id like any other
    assert again.connack.session_present
    assert again.connack.get(Property.ASSIGNED_CLIENT_ID) is None


@mqtt311("3.1.3-6")
def test_an_empty_client_id_is_a_client_of_its_own_before_5(client: ClientMaker) -> None:
    first, second = client(4, ""), client(4, "")
    first.expect_nothing()  # not taken over by the second
    second.expect_nothing()


@mqtt311("3.1.3-8", "3.1.3-9", "3.2.2-4", "3.2.2-5")
def test_an_empty_client_id_without_clean_session_is_refused(raw: ClientMaker) -> None:
    raw(4).send(wire.connect("", version=4, clean=False)).expect_refused(2)


@both
@mqtt5("3.1.3-2", "3.1.2-6")
@mqtt311("3.1.3-2")
def test_sessions_are_kept_by_client_id(client: ClientMaker, version: int) -> None:
    props = [(Property.SESSION_EXPIRY, 30)]
    first = client(version, clean=False, props=props)
    second = client(version, clean=False, props=props)
    topic = unique()
    first.subscribe(topic, qos=1)
    first.disconnect()
    second.disconnect()
    client(version).publish(topic, b"x", qos=1)
    again = client(version, second.client_id, clean=False, props=props)
    assert again.connack.session_present
    again.expect_nothing()
    again = client(version, first.client_id, clean=False, props=props)
    assert again.connack.session_present
    assert again.take().payload == b"x"


@both
@pytest.mark.parametrize("cut", [1, 5, 9, 12])
@mqtt5("3.1.4-1", "3.2.2-6", "3.2.2-7")
@mqtt311("3.1.4-1")
def test_a_connect_that_ends_early_is_refused(raw: ClientMaker, version: int, cut: int) -> None:
    body = wire.connect("client", version=version)[2:]
    bad = raw(version).send(wire.packet(Kind.CONNECT, 0, body[:cut]))
    bad.expect_refused(MALFORMED, or_silence=True) if version == 5 else bad.expect_refused()


@pytest.mark.parametrize(
    ("props", "reasons"),
    [
        pytest.param([(Property.RECEIVE_MAXIMUM, 0)], [PROTOCOL_ERROR], id="receive-maximum-0"),
        pytest.param([(Property.MAXIMUM_PACKET_SIZE, 0)], [PROTOCOL_ERROR], id="maximum-packet-size-0"),
        pytest.param([(Property.REQUEST_PROBLEM_INFORMATION, 2)], [PROTOCOL_ERROR], id="problem-information-2"),
        pytest.param([(Property.REQUEST_RESPONSE_INFORMATION, 2)], [PROTOCOL_ERROR], id="response-information-2"),
        pytest.param([(Property.SESSION_EXPIRY, 1)] * 2, [PROTOCOL_ERROR], id="session-expiry-twice"),
        pytest.param([(Property.RECEIVE_MAXIMUM, 1)] * 2, [PROTOCOL_ERROR], id="receive-maximum-twice"),
        pytest.param([(Property.TOPIC_ALIAS_MAXIMUM, 1)] * 2, [PROTOCOL_ERROR], id="topic-alias-maximum-twice"),
        pytest.param([(Property.AUTH_DATA, b"x")], [PROTOCOL_ERROR], id="auth-data-without-method"),
        pytest.param([(Property.TOPIC_ALIAS, 1)], [MALFORMED, PROTOCOL_ERROR], id="property-of-publish"),
        pytest.param([(Property.WILL_DELAY, 1)], [MALFORMED, PROTOCOL_ERROR], id="property-of-will"),
    ],
)
@mqtt5("3.1.4-1", "4.13.1-1", "4.13.2-1")
def test_wrong_connect_properties_are_refused(raw: ClientMaker, props: wire.Properties, reasons: list[int]) -> None:
    raw().send(wire.connect(unique(), props=props)).expect_refused(*reasons)


@both
@mqtt5("3.1.4-6")
@mqtt311("3.1.4-5")
def test_nothing_after_a_refused_connect_is_handled(raw: ClientMaker, client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic)
    bad = raw(version).send(
        wire.connect(unique(), version=version, flags=0x03), wire.publish(topic, b"x", version=version, retain=True)
    )
    bad.expect_refused(MALFORMED, PROTOCOL_ERROR, or_silence=True)
    subscriber.expect_nothing()


# -- takeover ----------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("clean", [True, False])
@mqtt5("3.1.4-3", "3.14.4-1", "3.14.4-2")
@mqtt311("3.1.4-2")
def test_a_client_id_has_one_connection_the_newest(client: ClientMaker, version: int, clean: bool) -> None:
    old = client(version, clean=clean)
    new = client(version, old.client_id, clean=clean)
    old.expect_closed(TAKEN_OVER)
    new.expect_nothing()


@mqtt5("3.1.4-3")
@mqtt311("3.1.4-2")
def test_a_client_id_is_taken_over_across_versions(client: ClientMaker) -> None:
    old = client(4)
    newer = client(5, old.client_id)
    old.expect_closed()
    newest = client(4, old.client_id)
    newer.expect_closed(TAKEN_OVER)
    newest.expect_nothing()

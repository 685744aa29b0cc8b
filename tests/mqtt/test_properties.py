"""Sets of properties: the table, both directions, and what is passed on with a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.packet_types import CONNACK, CONNECT, PACKET_NAMES, PINGREQ, PINGRESP, PUBLISH, SUBSCRIBE, WILL
from brookmq.mqtt.primitives import Reader
from brookmq.mqtt.properties import Properties, decode_properties, encode_properties, forwardable
from brookmq.mqtt.property_table import FLAG, PROPERTIES, STRING_PAIR, UINT16, UINT32, VARINT
from brookmq.mqtt.reasons import MALFORMED_PACKET, PROTOCOL_ERROR, TOPIC_ALIAS_INVALID
from tests.catalogue import BROKEN, Entry, text, user
from tests.mqtt.strategies import properties

SAMPLES = {FLAG: b"\x01", UINT16: b"\x00\x01", UINT32: b"\x00\x00\x00\x01", VARINT: b"\x01", STRING_PAIR: text("a") * 2}


def sample(identifier: int) -> bytes:
    """One occurrence of the property with a value that is allowed."""
    return bytes((identifier,)) + SAMPLES.get(PROPERTIES[identifier].type, text("a"))


def decode(data: bytes, packet_type: int) -> Properties:
    return decode_properties(data, 0, len(data), packet_type)


def refusal(data: bytes, packet_type: int) -> int:
    with pytest.raises(PacketError) as caught:
        decode(data, packet_type)
    return caught.value.reason


def without_length(encoded: bytes) -> bytes:
    source = Reader(encoded, 0, len(encoded))
    assert source.properties_end() == len(encoded)
    return source.rest()


@pytest.mark.parametrize("packet_type", range(16), ids=lambda number: PACKET_NAMES[number] if number else "WILL")
def test_the_table_decides_where_a_property_may_stand_and_how_often(packet_type: int) -> None:
    for identifier in range(0x100):
        row = PROPERTIES.get(identifier)
        if row is None:
            assert refusal(bytes((identifier, 0, 0)), packet_type) == MALFORMED_PACKET
        elif packet_type not in row.packets:
            assert refusal(sample(identifier), packet_type) == MALFORMED_PACKET  # [section 2.2.2.2]
        else:
            assert set(decode(sample(identifier), packet_type).present()) == {row.name}
            if packet_type in row.repeats:
                assert len(getattr(decode(sample(identifier) * 3, packet_type), row.name)) == 3
            else:
                assert refusal(sample(identifier) * 2, packet_type) == PROTOCOL_ERROR


def test_only_two_properties_repeat() -> None:
    assert {row.name for row in PROPERTIES.values() if row.repeats} == {"user_properties", "subscription_identifiers"}
    assert not [row for row in PROPERTIES.values() if row.packets & {PINGREQ, PINGRESP}]
    assert refusal(sample(0x0B) * 2, SUBSCRIBE) == PROTOCOL_ERROR


def test_every_property_has_an_attribute() -> None:
    assert set(Properties.__slots__) == {row.name for row in PROPERTIES.values()}
    empty = Properties()
    assert empty.present() == {}
    assert encode_properties(empty) == b"\x00"  # [MQTT-2.2.2-1]


WITH_PROPERTIES = sorted(set(range(16)) - {PINGREQ, PINGRESP})


@given(st.sampled_from(WITH_PROPERTIES).flatmap(lambda number: st.tuples(st.just(number), properties(number))))
def test_encode_then_decode(made: tuple[int, Properties]) -> None:
    packet_type, original = made
    assert decode(without_length(encode_properties(original)), packet_type) == original


@pytest.mark.parametrize(
    ("identifier", "value", "packet_type", "reason"),
    [
        (0x21, b"\x00\x00", CONNECT, PROTOCOL_ERROR),
        (0x27, b"\x00\x00\x00\x00", CONNECT, PROTOCOL_ERROR),
        (0x0B, b"\x00", SUBSCRIBE, PROTOCOL_ERROR),
        (0x23, b"\x00\x00", PUBLISH, TOPIC_ALIAS_INVALID),  # [MQTT-3.3.2-8]
        (0x17, b"\x02", CONNECT, PROTOCOL_ERROR),
        (0x19, b"\x02", CONNECT, PROTOCOL_ERROR),
        (0x01, b"\x02", WILL, PROTOCOL_ERROR),
        (0x24, b"\x02", CONNACK, PROTOCOL_ERROR),
        (0x25, b"\xff", CONNACK, PROTOCOL_ERROR),
        (0x28, b"\x02", CONNACK, PROTOCOL_ERROR),
        (0x29, b"\x02", CONNACK, PROTOCOL_ERROR),
        (0x2A, b"\x02", CONNACK, PROTOCOL_ERROR),
        (0x08, text("a/+"), PUBLISH, PROTOCOL_ERROR),  # [MQTT-3.3.2-14]
    ],
)
def test_values_out_of_their_range(identifier: int, value: bytes, packet_type: int, reason: int) -> None:
    assert refusal(bytes((identifier,)) + value, packet_type) == reason


def test_numbers_that_may_be_zero() -> None:
    decoded = decode(b"\x11\x00\x00\x00\x00\x22\x00\x00\x17\x00", CONNECT)
    assert decoded.session_expiry_interval == 0
    assert decoded.topic_alias_maximum == 0
    assert decoded.request_problem_information == 0


def test_user_properties_keep_their_order_and_repeated_names() -> None:  # [MQTT-3.3.2-18]
    pairs = (("b", "1"), ("a", "2"), ("b", "1"), ("", ""))
    assert decode(b"".join(user(*pair) for pair in pairs), PUBLISH).user_properties == pairs


def test_a_set_lies_between_start_and_end_of_a_larger_buffer() -> None:
    data = b"\xff\xff" + sample(0x21) + b"\xff"
    assert decode_properties(data, 2, 5, CONNECT).receive_maximum == 1
    with pytest.raises(PacketError, match="receive_maximum: 1 of 2 bytes"):
        decode_properties(data, 2, 4, CONNECT)


def test_sets_are_equal_by_value_and_readable() -> None:
    one, other = Properties(), Properties()
    one.reason_string = other.reason_string = "why"
    assert one == other
    other.user_properties = (("a", "b"),)
    assert one != other
    assert one != "why"
    assert repr(other) == "Properties(reason_string='why', user_properties=(('a', 'b'),))"
    with pytest.raises(TypeError):
        hash(one)


def test_what_is_passed_on_is_the_same_bytes_in_the_same_order() -> None:
    kept = [
        user("z", "1"),
        b"\x09" + text(b"\x00"),
        b"\x03" + text("t"),
        user("a", "2"),
        b"\x01\x01",
        b"\x08" + text("r"),
    ]
    data = b"".join(kept)
    assert forwardable(data, 0, len(data)) == (data, None, None, 1, False)
    expiry, alias, identifier = b"\x02\x00\x00\x01\x00", b"\x23\x00\x07", b"\x0b\x05"
    mixed = (
        b"??" + expiry + kept[0] + kept[1] + alias + kept[2] + kept[3] + identifier + b"".join(kept[4:]) + identifier
    )
    assert forwardable(mixed + b"??", 2, len(mixed)) == (data, 256, 7, 1, True)


def test_nothing_to_pass_on() -> None:
    assert forwardable(b"", 0, 0) == (b"", None, None, 0, False)
    assert forwardable(b"\x02\x00\x00\x00\x00", 0, 5) == (b"", 0, None, 0, False)


@given(properties(PUBLISH))
def test_passing_on_agrees_with_decoding(original: Properties) -> None:
    data = without_length(encode_properties(original))
    kept, expiry, alias, payload_format, identified = forwardable(data, 0, len(data))
    assert expiry == original.message_expiry_interval
    assert alias == original.topic_alias
    assert payload_format == (original.payload_format_indicator or 0)
    assert identified == bool(original.subscription_identifiers)
    assert kept == original.forwardable()
    rest = decode(kept, PUBLISH)
    for name in ("payload_format_indicator", "content_type", "response_topic", "correlation_data", "user_properties"):
        assert getattr(rest, name) == getattr(original, name)
    assert set(rest.present()) <= set(original.present())


def both_verdicts(data: bytes, start: int, end: int) -> list[tuple[int, str]]:
    """What decoding and passing on say to the same set: reason code and message, or nothing."""
    verdicts = []
    for read in (lambda: decode_properties(data, start, end, PUBLISH), lambda: forwardable(data, start, end)):
        try:
            read()
        except PacketError as error:
            verdicts.append((error.reason, str(error)))
        else:
            verdicts.append((0, ""))
    return verdicts


BROKEN_IN_PUBLISH = [entry for entry in BROKEN if entry.version == 5 and entry.data[0] == 0x30 and entry.body[3:]]


@pytest.mark.parametrize("entry", BROKEN_IN_PUBLISH, ids=lambda entry: entry.name)
def test_passing_on_refuses_what_decoding_refuses(entry: Entry) -> None:
    body = entry.body
    source = Reader(body, 0, len(body))
    source.binary("topic name")
    end = source.properties_end()
    decoding, passing_on = both_verdicts(body, source.position, end)
    assert decoding == passing_on
    assert decoding[0] in {0, entry.reason}  # 0: what is wrong with this packet is its topic name


@given(st.binary(max_size=60))
def test_passing_on_agrees_with_decoding_on_arbitrary_bytes(data: bytes) -> None:
    decoding, passing_on = both_verdicts(data, 0, len(data))
    assert decoding == passing_on


def test_wills_and_messages_of_the_node_pass_on_the_same_way() -> None:
    made = Properties()
    made.content_type = "text"
    made.user_properties = (("a", "b"),)
    made.message_expiry_interval = 5
    made.will_delay_interval = 6
    assert made.forwardable() == b"\x03" + text("text") + user("a", "b")

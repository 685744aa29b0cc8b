"""The data types of section 1.5, at their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import CallerError, PeerError
from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.primitives import Reader, check_text, put_binary, put_string, put_uint16, put_uint32, varint
from brookmq.mqtt.reasons import MALFORMED_PACKET


def reader(data: bytes) -> Reader:
    return Reader(data, 0, len(data))


# [section 1.5.5] the bounds of each size
@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\x01"),
        (2_097_151, b"\xff\xff\x7f"),
        (2_097_152, b"\x80\x80\x80\x01"),
        (268_435_455, b"\xff\xff\xff\x7f"),
    ],
)
def test_variable_byte_integers_at_their_bounds(value: int, encoded: bytes) -> None:
    assert varint(value) == encoded
    assert reader(encoded).varint("field") == value


@given(st.integers(0, 268_435_455))
def test_a_variable_byte_integer_round_trips(value: int) -> None:
    assert reader(varint(value)).varint("field") == value


@pytest.mark.parametrize("value", [-1, 268_435_456])
def test_what_does_not_fit_a_variable_byte_integer_is_our_bug(value: int) -> None:
    with pytest.raises(CallerError):
        varint(value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "missing"),
        (b"\x80", "missing"),
        (b"\x80\x00", "longer than needed"),  # [MQTT-1.5.5-1]
        (b"\xff\x80\x80\x00", "longer than needed"),
        (b"\x80\x80\x80\x80", "more than four bytes"),
        (b"\xff\xff\xff\xff\x01", "more than four bytes"),
    ],
)
def test_bad_variable_byte_integers(data: bytes, message: str) -> None:
    with pytest.raises(PacketError, match=message) as caught:
        reader(data).varint("field")
    assert caught.value.reason == MALFORMED_PACKET
    assert str(caught.value).startswith("field: ")


def test_integers_are_big_endian() -> None:
    source = reader(b"\x01\x02\x03\xff\xff\xff\xff")
    assert source.uint8("a") == 1
    assert source.uint16("b") == 0x0203
    assert source.uint32("c") == 0xFFFF_FFFF
    source.finish()


@pytest.mark.parametrize("value", [-1, 0x1_0000])
def test_what_does_not_fit_two_bytes_is_our_bug(value: int) -> None:
    with pytest.raises(CallerError):
        put_uint16(bytearray(), value)


@pytest.mark.parametrize("value", [-1, 0x1_0000_0000])
def test_what_does_not_fit_four_bytes_is_our_bug(value: int) -> None:
    with pytest.raises(CallerError):
        put_uint32(bytearray(), value)


def test_strings_have_at_most_65535_bytes() -> None:  # [section 1.5.4]
    out = bytearray()
    put_string(out, "é" * 32_767 + "x")
    assert reader(bytes(out)).string("field") == "é" * 32_767 + "x"
    with pytest.raises(CallerError):
        put_string(bytearray(), "é" * 32_768)
    with pytest.raises(CallerError):
        put_binary(bytearray(), bytes(65_536))


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=100))
def test_a_string_round_trips(text: str) -> None:
    out = bytearray()
    put_string(out, text)
    source = reader(bytes(out))
    assert source.string("field") == text
    source.finish()


@given(st.binary(max_size=100))
def test_strings_and_topics_agree_on_what_is_text(data: bytes) -> None:
    """What `Reader.string` refuses, `check_text` refuses for fields that stay bytes."""
    out = bytearray()
    put_binary(out, data)
    verdicts = []
    for check in (lambda: reader(bytes(out)).string("f"), lambda: check_text(data, "f")):
        try:
            check()
        except PacketError as error:
            verdicts.append(error.reason)
        else:
            verdicts.append(0)
    expected = 0
    try:
        expected = MALFORMED_PACKET if "\0" in data.decode() else 0
    except UnicodeDecodeError:
        expected = MALFORMED_PACKET
    assert verdicts == [expected, expected]


def test_a_reader_stays_within_its_end() -> None:
    data = b"\x00\x05hello and more"
    assert Reader(data, 0, 7).string("field") == "hello"
    with pytest.raises(PacketError, match="field: 4 of 5 bytes"):
        Reader(data, 0, 6).string("field")
    with pytest.raises(PacketError, match="field: 1 of 2 bytes"):
        Reader(data, 0, 1).uint16("field")
    with pytest.raises(PacketError, match="2 bytes too many"):
        Reader(data, 5, 7).finish()


@pytest.mark.parametrize(("position", "end"), [(-1, 2), (0, 4), (3, 2), (4, 4)])
def test_a_reader_of_bytes_that_are_not_there_is_our_bug(position: int, end: int) -> None:
    with pytest.raises(CallerError):
        Reader(b"abc", position, end)


def test_a_set_of_properties_stays_within_the_packet() -> None:
    assert reader(b"\x02ab").properties_end() == 3
    with pytest.raises(PacketError, match="properties: 2 of 3 bytes"):
        reader(b"\x03ab").properties_end()
    with pytest.raises(PacketError, match="properties: 1 of 2 bytes"):
        Reader(b"\x02ab", 0, 2).properties_end()


def test_the_rest_is_taken_once() -> None:
    source = Reader(b"abcdef", 2, 5)
    assert source.rest() == b"cde"
    assert source.rest() == b""
    source.finish()


def test_a_packet_error_is_the_peers_fault() -> None:
    assert issubclass(PacketError, PeerError)

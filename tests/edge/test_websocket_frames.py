"""Frames without a socket, against the frames that the `websockets` library makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode
from websockets.streams import StreamReader

from brookmq.edge.websocket_frames import (
    CLOSE_NORMAL,
    CLOSE_PROTOCOL_ERROR,
    CLOSE_UNSUPPORTED_DATA,
    FrameDecoder,
    binary_header,
    close_frame,
    pong_frame,
)


def frame(opcode: int, data: bytes = b"", *, fin: bool = True, mask: bool = True) -> bytes:
    return bytes(Frame(Opcode(opcode), data, fin).serialize(mask=mask))


def binary(data: bytes, *, fin: bool = True) -> bytes:
    return frame(Opcode.BINARY, data, fin=fin)


def feed_in_pieces(decoder: FrameDecoder, data: bytes, size: int) -> bytes:
    return b"".join(decoder.feed(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 200_000])
@pytest.mark.parametrize("piece", [1, 3, 7, 1000, 1 << 20])
def test_payload_of_any_size_in_any_pieces(size: int, piece: int) -> None:
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    if size > 1000 and piece < 1000:
        piece = 997  # as odd, and quicker
    assert feed_in_pieces(FrameDecoder(), binary(payload), piece) == payload


def test_payload_is_handed_on_before_its_frame_ends() -> None:
    decoder = FrameDecoder()
    data = binary(b"x" * 1000)
    assert decoder.feed(data[:108]) == b"x" * 100


def test_all_frames_of_a_read_are_one_piece() -> None:
    assert FrameDecoder().feed(binary(b"one") + binary(b"") + binary(b"two")) == b"onetwo"


def test_fragments_with_control_frames_between() -> None:
    decoder = FrameDecoder()
    data = binary(b"a", fin=False) + frame(Opcode.PING, b"?") + frame(Opcode.CONT, b"b", fin=False)
    assert decoder.feed(data + frame(Opcode.PONG) + frame(Opcode.CONT, b"c") + binary(b"d")) == b"abcd"
    assert decoder.ping == b"?"
    assert decoder.closing is None


def test_the_latest_ping_is_the_one_to_answer() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(frame(Opcode.PING, b"1") + frame(Opcode.PING, b"2")) == b""
    assert decoder.ping == b"2"


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (frame(Opcode.TEXT, b"text"), CLOSE_UNSUPPORTED_DATA),
        (frame(Opcode.BINARY, b"x", mask=False), CLOSE_PROTOCOL_ERROR),
        (b"\xc2\x81\0\0\0\0x", CLOSE_PROTOCOL_ERROR),
        (frame(Opcode.CONT, b"x"), CLOSE_PROTOCOL_ERROR),
        (binary(b"x", fin=False) + binary(b"y"), CLOSE_PROTOCOL_ERROR),
        (b"\x83\x80\0\0\0\0", CLOSE_PROTOCOL_ERROR),
        (b"\x8b\x80\0\0\0\0", CLOSE_PROTOCOL_ERROR),
        (b"\x09\x80\0\0\0\0", CLOSE_PROTOCOL_ERROR),
        (b"\x89\xfe\x00\x7e", CLOSE_PROTOCOL_ERROR),
        (b"\x82\xff" + b"\xff" * 12, CLOSE_PROTOCOL_ERROR),
        (frame(Opcode.CLOSE, b"\x03"), CLOSE_PROTOCOL_ERROR),
        (frame(Opcode.CLOSE, b"\x03\xed"), CLOSE_PROTOCOL_ERROR),
        (frame(Opcode.CLOSE, b"\x03\xe8\xff"), CLOSE_PROTOCOL_ERROR),
    ],
    ids=[  # the frames carry random masks, and xdist wants the same names in every process
        "text",
        "unmasked",
        "reserved bit",
        "continuation of nothing",
        "message within a message",
        "reserved data opcode",
        "reserved control opcode",
        "control frame in parts",
        "control frame too long",
        "length with the top bit",
        "close with half a code",
        "close with a code that is never sent",
        "close with a reason that is not UTF-8",
    ],
)
def test_what_breaks_the_protocol_ends_it_after_what_came_before(bad: bytes, code: int) -> None:
    decoder = FrameDecoder()
    received = decoder.feed(binary(b"good") + bad + binary(b"never"))
    assert received.startswith(b"good")
    assert b"never" not in received
    assert decoder.closing == code
    assert decoder.problem
    assert decoder.feed(binary(b"never")) == b""


@pytest.mark.parametrize(
    ("payload", "code"), [(b"", CLOSE_NORMAL), (b"\x03\xe9", 1001), (Close(4000, "own").serialize(), 4000)]
)
def test_a_close_frame_is_answered_with_its_code(payload: bytes, code: int) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(binary(b"last") + frame(Opcode.CLOSE, payload) + binary(b"never")) == b"last"
    assert (decoder.closing, decoder.problem) == (code, "")


def parsed(data: bytes) -> Frame:
    """What the library makes of a frame of ours."""
    reader = StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    parsing = Frame.parse(reader.read_exact, mask=False)
    while True:
        try:
            next(parsing)
        except StopIteration as done:
            assert not reader.buffer
            found = done.value
            assert isinstance(found, Frame)
            return found


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_frames_of_the_server(size: int) -> None:
    made = parsed(binary_header(size) + b"x" * size)
    assert (made.opcode, bytes(made.data), made.fin) == (Opcode.BINARY, b"x" * size, True)


def test_control_frames_of_the_server() -> None:
    assert parsed(pong_frame(b"payload")) == Frame(Opcode.PONG, b"payload")
    assert Close.parse(parsed(close_frame(1002, "why")).data) == Close(1002, "why")
    assert len(parsed(close_frame(1002, "é" * 100)).data) == 124  # cut between two characters


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_any_frames_in_any_pieces(payloads: list[bytes], sizes: list[int]) -> None:
    decoder, data, received, at, turn = FrameDecoder(), b"".join(map(binary, payloads)), b"", 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        received += decoder.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert received == b"".join(payloads)


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_keep_a_bounded_state(pieces: list[bytes]) -> None:
    decoder = FrameDecoder()
    for piece in pieces:
        assert len(decoder.feed(piece)) <= len(piece) + 131
        assert len(decoder._header) <= 131

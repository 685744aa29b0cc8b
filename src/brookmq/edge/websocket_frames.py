"""WebSocket frames as MQTT needs them (RFC 6455, section 5): a client's frames in, a stream of bytes out.

MQTT packets need not be aligned with frames [MQTT-6.0.0-2], so a frame's end means nothing here and payload is handed
on as it arrives: a frame of any size costs no buffer of that size, and all the frames of one read become one piece of
bytes. That is why the frames are read here and not by the library that does the opening handshake: it gathers whole
frames, at several copies each. What is buffered is at most one unfinished header or control frame.
"""

from __future__ import annotations

import struct

from websockets.exceptions import ProtocolError
from websockets.frames import Close

try:
    from websockets.speedups import apply_mask
except ImportError:  # installed without its compiled part
    from websockets.utils import apply_mask

CLOSE_NORMAL = 1000
CLOSE_PROTOCOL_ERROR = 1002
CLOSE_UNSUPPORTED_DATA = 1003
_CLOSE_NO_STATUS = 1005  # a Close frame without a code; never sent

CONTROL_PAYLOAD_MAX = 125  # section 5.5
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_FIN = 0x80
_RESERVED_BITS = 0x70
_MASKED = 0x80
_LENGTH_16, _LENGTH_64 = 126, 127
_INCOMPLETE, _ENDED = -1, -2  # in place of where a frame ends: more bytes are needed; there are no more frames

_SMALL_HEADERS = tuple(bytes((_FIN | _BINARY, size)) for size in range(_LENGTH_16))


class FrameDecoder:
    """One direction of one connection: the frames that the client sends.

    After each ``feed`` the caller looks at ``ping`` (answer it, set it to None) and ``closing`` (answer with a Close
    frame of that code and end the connection; nothing that follows is read).
    """

    __slots__ = ("_header", "_in_message", "_key", "_remaining", "closing", "ping", "problem")

    def __init__(self) -> None:
        self._header = b""  # the beginning of a header or control frame that is not complete
        self._remaining = 0  # bytes of the current data frame still to come
        self._key = b""  # its masking key, turned so that it fits the next byte
        self._in_message = False  # a fragmented message is open: the next data frame continues it
        self.ping: bytes | None = None  # of several pings the latest is answered, which is enough (section 5.5.3)
        self.closing: int | None = None  # the code to close with; set once
        self.problem = ""  # what the peer did wrong, when it did

    def feed(self, data: bytes) -> bytes:
        """The payload of the data frames in ``data``."""
        if self.closing is not None:
            return b""
        if self._header:
            data = self._header + data
            self._header = b""
        parts: list[bytes] = []
        position = 0
        size = len(data)
        view = memoryview(data)
        while position < size:
            if self._remaining:
                taken = min(self._remaining, size - position)
                parts.append(apply_mask(view[position : position + taken], self._key))
                self._remaining -= taken
                position += taken
                if self._remaining and (turn := taken & 3):
                    self._key = self._key[turn:] + self._key[:turn]
                continue
            end = self._read_header(data, position, size)
            if end == _INCOMPLETE:
                self._header = data[position:]
                break
            if end == _ENDED:
                break
            position = end
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read_header(self, data: bytes, position: int, size: int) -> int:
        """Where the header (of a control frame: the whole frame) at ``position`` ends, _INCOMPLETE or _ENDED."""
        if size - position < 2:
            return _INCOMPLETE
        first, length = data[position], data[position + 1] & 0x7F
        if first & _RESERVED_BITS:
            return self._fail("a reserved bit is set, but no extension was agreed")
        if not data[position + 1] & _MASKED:
            return self._fail("a frame of the client is not masked")
        if first & 0x08:
            return self._read_control(data, position, size, first, length)
        opcode = first & 0x0F
        if opcode == _TEXT:
            # [MQTT-6.0.0-1] MQTT is sent in binary frames; any other data frame ends the connection.
            return self._fail("MQTT goes in binary frames, this one is text", CLOSE_UNSUPPORTED_DATA)
        if opcode != (_CONTINUATION if self._in_message else _BINARY):
            return self._fail("a data frame has an opcode that is out of place")
        key_at = position + 2
        if length == _LENGTH_16:
            key_at += 2
        elif length == _LENGTH_64:
            key_at += 8
        if size < key_at + 4:
            return _INCOMPLETE
        if length >= _LENGTH_16:
            length = int.from_bytes(data[position + 2 : key_at], "big")
            if length >> 63:
                return self._fail("a frame has a length with the highest bit set")
        self._in_message = not first & _FIN
        self._remaining = length
        self._key = data[key_at : key_at + 4]
        return key_at + 4

    def _read_control(self, data: bytes, position: int, size: int, first: int, length: int) -> int:
        """Section 5.5: short, never fragmented, allowed between the frames of a message."""
        if not first & _FIN or length > CONTROL_PAYLOAD_MAX:
            return self._fail("a control frame is fragmented or too long")
        opcode = first & 0x0F
        if opcode > _PONG:
            return self._fail("a control frame has an unknown opcode")
        payload_at = position + 6
        end = payload_at + length
        if size < end:
            return _INCOMPLETE
        payload = apply_mask(data[payload_at:end], data[position + 2 : payload_at])
        if opcode == _PING:
            self.ping = payload
        elif opcode == _CLOSE:
            return self._read_close(payload)
        return end

    def _read_close(self, payload: bytes) -> int:
        try:
            code = Close.parse(payload).code
        except (ProtocolError, UnicodeDecodeError):
            return self._fail("a close frame is malformed")
        self.closing = CLOSE_NORMAL if code == _CLOSE_NO_STATUS else int(code)
        return _ENDED

    def _fail(self, problem: str, code: int = CLOSE_PROTOCOL_ERROR) -> int:
        self.closing = code
        self.problem = problem
        return _ENDED


def binary_header(size: int) -> bytes:
    """The header of a server's binary frame with ``size`` bytes of payload [MQTT-6.0.0-1]."""
    if size < _LENGTH_16:
        return _SMALL_HEADERS[size]
    if size < 65_536:
        return struct.pack("!BBH", _FIN | _BINARY, _LENGTH_16, size)
    return struct.pack("!BBQ", _FIN | _BINARY, _LENGTH_64, size)


def pong_frame(payload: bytes) -> bytes:
    """The answer to a ping, with its payload."""
    return bytes((_FIN | _PONG, len(payload))) + payload


def close_frame(code: int, reason: str = "") -> bytes:
    """A Close frame; the reason is cut to what a control frame holds."""
    text = reason.encode()[: CONTROL_PAYLOAD_MAX - 2].decode("utf-8", "ignore").encode()
    return struct.pack("!BBH", _FIN | _CLOSE, 2 + len(text), code) + text

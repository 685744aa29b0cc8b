"""A WebSocket connection written by hand (RFC 6455), for the tests of chapter 6."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time

from tests.harness.raw import DEADLINE, Address, Stream

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


class RefusedError(AssertionError):
    """The node did not switch to WebSocket; the message is its HTTP answer."""


class WebSocketStream(Stream):
    """A stream whose bytes travel in masked binary frames; `frames` has the opcodes of what the node sent."""

    def __init__(self, address: Address, subprotocols: str | None = "mqtt", path: str = "/mqtt") -> None:
        super().__init__(address)
        self.frames: list[int] = []
        self._input = bytearray()
        key = base64.b64encode(secrets.token_bytes(16))
        offer = f"Sec-WebSocket-Protocol: {subprotocols}\r\n" if subprotocols is not None else ""
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key.decode()}\r\n"
            f"Sec-WebSocket-Version: 13\r\n{offer}\r\n".encode()
        )
        self.headers = self._read_answer()
        accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest()).decode()
        assert self.headers.get("sec-websocket-accept") == accept
        self.subprotocol = self.headers.get("sec-websocket-protocol")

    def _read_answer(self) -> dict[str, str]:
        while b"\r\n\r\n" not in self._input:
            data = super().receive(DEADLINE)
            if not data:
                raise RefusedError(f"closed after {bytes(self._input)!r}")
            self._input += data
        head, _, rest = bytes(self._input).partition(b"\r\n\r\n")
        self._input = bytearray(rest)
        status, *lines = head.decode("latin-1").split("\r\n")
        if " 101 " not in status + " ":
            raise RefusedError(status)
        return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def frame(self, opcode: int, data: bytes = b"", *, final: bool = True) -> None:
        """Send one masked frame."""
        size = len(data)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65_536:
            length = b"\xfe" + size.to_bytes(2, "big")
        else:
            length = b"\xff" + size.to_bytes(8, "big")
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.sendall(bytes([opcode | (0x80 if final else 0)]) + length + mask + masked)

    def send(self, data: bytes) -> None:
        self.frame(BINARY, data)

    def receive(self, timeout: float) -> bytes:
        until = time.monotonic() + timeout
        while True:
            frame = self._take_frame()
            if frame is not None:
                opcode, payload = frame
                self.frames.append(opcode)
                if opcode == CLOSE:
                    return b""
                if payload and opcode in {CONTINUATION, TEXT, BINARY}:
                    return payload
                continue
            data = super().receive(max(until - time.monotonic(), 0.001))
            if not data:
                return b""
            self._input += data

    def _take_frame(self) -> tuple[int, bytes] | None:
        got = self._input
        if len(got) < 2:
            return None
        assert not got[1] & 0x80, "a server's frames are not masked"
        size, at = got[1] & 0x7F, 2
        if size >= 126:
            at = 4 if size == 126 else 10
            size = int.from_bytes(got[2:at], "big")
        if len(got) < at + size or len(got) < at:
            return None
        opcode, payload = got[0] & 0x0F, bytes(got[at : at + size])
        del got[: at + size]
        return opcode, payload

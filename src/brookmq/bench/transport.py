"""Where the load goes: makes sockets that the engine can drive, for TCP, TLS, WebSocket and secure WebSocket.

Plain TCP is the fast way and the one for throughput figures. The others exist to load the listeners of a broker; the
tool itself costs more there, and its busy figure shows it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

OPEN_TIMEOUT_S: Final = 10.0
_WEBSOCKET_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FRAME_BYTES_MAX: Final = 65535
_HEADER_BYTES_MAX: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """A broker's listener."""

    host: str = "127.0.0.1"
    port: int = 1883
    tls: bool = False
    websocket: bool = False
    path: str = "/mqtt"
    ca_file: str | None = None
    """Checked against this authority; None: not checked, which is enough for a load."""

    def connector(self) -> Callable[[], socket.socket | Layer]:
        """A function that begins a new connection."""
        family, kind, protocol, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
        if not (self.tls or self.websocket):
            return lambda: _plain(family, kind, protocol, address, blocking=False)
        context = self._context() if self.tls else None

        def connect() -> socket.socket | Layer:
            sock: socket.socket | _TlsSocket = _plain(family, kind, protocol, address, blocking=True)
            if isinstance(sock, socket.socket) and context is not None:
                sock = _TlsSocket(context.wrap_socket(sock, server_hostname=self.host))
            try:
                made = _WebSocket(sock, self.host, self.path) if self.websocket else sock
            except OSError:
                sock.close()
                raise
            made.setblocking(False)
            return made

        return connect

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.ca_file is None:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def __str__(self) -> str:
        scheme = ("wss" if self.tls else "ws") if self.websocket else ("mqtts" if self.tls else "mqtt")
        return f"{scheme}://{self.host}:{self.port}"


def _plain(family: int, kind: int, protocol: int, address: Any, *, blocking: bool) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if blocking:
            sock.settimeout(OPEN_TIMEOUT_S)
        else:
            sock.setblocking(False)
        with suppress(BlockingIOError):  # in progress: the first write waits for it
            sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


class Layer(ABC):
    """A protocol between the tool and a socket, used as a socket is; ``inner`` is what lies below."""

    def __init__(self, inner: socket.socket | Layer) -> None:
        self.inner = inner

    @abstractmethod
    def send(self, content: bytes | bytearray | memoryview, /) -> int:
        """Take as much as possible; BlockingIOError when that is nothing."""

    @abstractmethod
    def recv_into(self, buffer: memoryview | bytearray, /) -> int:
        """Fill the buffer; BlockingIOError when there is nothing yet, 0 at the end of the stream."""

    def unsent(self) -> bool:
        """Whether bytes that ``send`` took have not gone to the kernel; the next ``send``, even of nothing, tries."""
        return False

    def fileno(self) -> int:
        return self.inner.fileno()

    def setblocking(self, flag: bool) -> None:
        self.inner.setblocking(flag)

    def close(self) -> None:
        self.inner.close()


class _TlsSocket(Layer):
    """An SSL socket that says "not now" as plain sockets do, and holds nothing back from a reader."""

    inner: ssl.SSLSocket

    def __init__(self, inner: ssl.SSLSocket) -> None:
        super().__init__(inner)

    def send(self, content: bytes | bytearray | memoryview) -> int:
        try:
            return self.inner.send(content)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            raise BlockingIOError from error

    def sendall(self, content: bytes) -> None:
        self.inner.sendall(content)

    def recv(self, size: int) -> bytes:
        return self.inner.recv(size)

    def recv_into(self, buffer: memoryview | bytearray) -> int:
        # Records that OpenSSL has decrypted already do not make the descriptor readable: take them all.
        total = 0
        while total < len(buffer):
            try:
                length = self.inner.recv_into(memoryview(buffer)[total:])
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                if total:
                    break
                raise BlockingIOError from error
            total += length
            if not length or not self.inner.pending():
                break
        return total


class _WebSocket(Layer):
    """MQTT bytes in binary frames; the opening handshake happens when it is made."""

    def __init__(self, inner: socket.socket | _TlsSocket, host: str, path: str) -> None:
        super().__init__(inner)
        self._input = bytearray()
        self._output = bytearray()
        self._frame_left = 0
        self._control_left = 0
        key = base64.b64encode(os.urandom(16))
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key.decode()}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
        )
        inner.sendall(request.encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            part = inner.recv(4096)
            if not part or len(answer) > _HEADER_BYTES_MAX:
                raise ConnectionRefusedError("no answer to the WebSocket handshake")
            answer += part
        head, _, rest = answer.partition(b"\r\n\r\n")
        accept = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID, usedforsecurity=False).digest())
        if b" 101 " not in head.split(b"\r\n")[0] or accept not in head:
            raise ConnectionRefusedError("the WebSocket handshake was refused")
        self._input += rest

    def unsent(self) -> bool:
        return bool(self._output)

    def send(self, content: bytes | bytearray | memoryview) -> int:
        """Takes the content whole as one frame; an earlier frame that is still stuck has to go first."""
        if self._output:
            del self._output[: self.inner.send(self._output)]
            if self._output:
                raise BlockingIOError
        if not content:
            return 0
        content = content[:_FRAME_BYTES_MAX]
        size = len(content)
        # A client must mask; the key 0 is a key like any other and leaves the bytes as they are.
        head = bytes((0x82, 128 | size)) if size < 126 else bytes((0x82, 128 | 126)) + size.to_bytes(2)
        self._output += head + bytes(4) + content
        with suppress(BlockingIOError):  # the frame is ours now, and goes out before the next
            del self._output[: self.inner.send(self._output)]
        return size

    def recv_into(self, buffer: memoryview | bytearray) -> int:
        part = bytearray(max(len(buffer) - len(self._input), 0))
        length = self.inner.recv_into(part)
        if not length:
            return 0
        self._input += part[:length]
        taken = self._unframe(buffer)
        if not taken:
            raise BlockingIOError
        return taken

    def _unframe(self, buffer: memoryview | bytearray) -> int:
        written = 0
        while self._input:
            if not self._frame_left and not self._control_left and not self._header():
                break
            if self._control_left:
                skipped = min(self._control_left, len(self._input))
                self._control_left -= skipped
                del self._input[:skipped]
                continue
            size = min(self._frame_left, len(self._input), len(buffer) - written)
            if not size and self._frame_left:
                break
            buffer[written : written + size] = self._input[:size]
            del self._input[:size]
            written += size
            self._frame_left -= size
        return written

    def _header(self) -> bool:
        """Take a frame's header off the input; False while it is not there whole."""
        if len(self._input) < 2:
            return False
        size, length = self._input[1] & 127, 2
        if size >= 126:
            length = 4 if size == 126 else 10
            if len(self._input) < length:
                return False
            size = int.from_bytes(self._input[2:length])
        if self._input[0] & 8:
            self._control_left = size
        else:
            self._frame_left = size
        del self._input[:length]
        return True

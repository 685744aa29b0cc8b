"""A broker of a few lines in a thread, to test the load tool with: forwards to exact filters, may lose on purpose."""

from __future__ import annotations

import selectors
import socket
import threading
from types import TracebackType
from typing import Self

CONNECT, PUBLISH, PUBREL, PUBREC, SUBSCRIBE, PINGREQ = 1, 3, 6, 5, 8, 12


class TinyBroker:
    """``lose_every``: of how many messages one is acknowledged but not forwarded; 0 for none.

    ``resets``: so many connections are closed instead of answered.
    """

    def __init__(self, lose_every: int = 0, connect_code: int = 0, resets: int = 0) -> None:
        self._resets = resets
        self._lose_every = lose_every
        self._connect_code = connect_code
        self._messages = 0
        self._next_id = 0
        self._filters: dict[bytes, list[socket.socket]] = {}
        self._input: dict[socket.socket, bytearray] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wake, self._woken = socket.socketpair()
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wake.close()
        self._thread.join()
        for sock in (self._listener, self._woken, *self._input):
            sock.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if sock is self._woken:
                        return
                    if sock is self._listener:
                        client, _ = sock.accept()
                        self._input[client] = bytearray()
                        selector.register(client, selectors.EVENT_READ)
                    elif not self._read(sock):
                        selector.unregister(sock)
                        del self._input[sock]
                        sock.close()

    def _read(self, sock: socket.socket) -> bool:
        try:
            content = sock.recv(65536)
        except ConnectionResetError:
            return False
        if self._resets and content:
            self._resets -= 1
            return False
        buffer = self._input[sock]
        buffer += content
        while len(buffer) >= 2 and len(buffer) >= 2 + buffer[1]:
            packet = bytes(buffer[: 2 + buffer[1]])
            del buffer[: len(packet)]
            self._packet(sock, packet)
        return bool(content)

    def _packet(self, sock: socket.socket, packet: bytes) -> None:
        kind = packet[0] >> 4
        if kind == CONNECT:
            sock.sendall(bytes((0x20, 2, 0, self._connect_code)))
        elif kind == SUBSCRIBE:
            length = int.from_bytes(packet[4:6])
            self._filters.setdefault(packet[6 : 6 + length], []).append(sock)
            sock.sendall(bytes((0x90, 3)) + packet[2:4] + packet[-1:])
        elif kind == PUBLISH:
            self._publish(sock, packet)
        elif kind == PUBREC:
            sock.sendall(b"\x62\x02" + packet[2:4])
        elif kind == PUBREL:
            sock.sendall(b"\x70\x02" + packet[2:4])
        elif kind == PINGREQ:
            sock.sendall(b"\xd0\0")

    def _publish(self, sock: socket.socket, packet: bytes) -> None:
        end = 4 + int.from_bytes(packet[2:4])
        qos = packet[0] >> 1 & 3
        if qos:
            sock.sendall(bytes((0x40 if qos == 1 else 0x50, 2)) + packet[end : end + 2])
        self._messages += 1
        if self._lose_every and self._messages % self._lose_every == 0:
            return
        for receiver in self._filters.get(packet[4:end], []):
            self._next_id = self._next_id % 65535 + 1
            copy = packet[:end] + self._next_id.to_bytes(2) + packet[end + 2 :] if qos else packet
            receiver.sendall(copy)

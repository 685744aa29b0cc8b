"""A synchronous MQTT client on a plain socket, for tests that must say exactly what is on the wire.

Every wait has a deadline. "Nothing came" is proved by a PINGREQ and its PINGRESP, never by waiting: the node answers a
connection's packets in order, so what it had to send before the PINGRESP is there before the PINGRESP.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from tests.harness import wire
from tests.harness.received import Packet, decode
from tests.harness.wire import PINGREQ, Kind, Properties, Text

# seconds; a loaded machine answers in milliseconds, so this is only reached by a failure
DEADLINE = float(os.environ.get("BROOKMQ_TEST_DEADLINE", "60"))
LENIENT = bool(os.environ.get("BROOKMQ_TEST_LENIENT"))  # another broker may close without a reason where 5.0 allows it

Address = tuple[str, int]

_counter = itertools.count(1)
_run = secrets.token_hex(3)


def unique(prefix: str = "t") -> str:
    """A name that no other test uses: the node is shared, its sessions and retained messages outlive a test."""
    return f"{prefix}{_run}{next(_counter)}"


class ClosedError(AssertionError):
    """The node closed the connection while a packet was expected."""


class SilenceError(AssertionError):
    """The deadline passed while a packet or the end of the connection was expected."""


class UnexpectedError(AssertionError):
    """The node sent another packet than the expected one."""


class Stream:
    """A TCP connection: bytes out, bytes in. `tests.harness.websocket` has the other one."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, timeout: float) -> bytes:
        """Some bytes; none at the end of the connection; TimeoutError when nothing comes."""
        self.socket.settimeout(timeout)
        return self.socket.recv(65_536)

    def close(self) -> None:
        self.socket.close()


class Client:
    """One connection to a node, speaking protocol `version` (3, 4 or 5)."""

    def __init__(self, address: Address, version: int = 5, stream: Stream | None = None) -> None:
        self.version = version
        self.stream = stream or Stream(address)
        self.client_id = ""
        self.connack = Packet(Kind.CONNACK, 0, 0)
        self._buffer = bytearray()
        self._early: deque[Packet] = deque()  # PUBLISH packets that came while a helper waited for an acknowledgement
        self._ended = False
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- bytes and packets ---------------------------------------------------------------------------------------

    def send(self, *packets: bytes) -> Self:
        """Send these bytes in one write. A connection that the node has closed shows itself at the next read."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.stream.send(b"".join(packets))
        return self

    def receive(self, timeout: float = DEADLINE) -> Packet:
        """The next packet."""
        if self._early:
            return self._early.popleft()
        return self._read(timeout)

    def expect(self, kind: Kind, timeout: float = DEADLINE) -> Packet:
        """The next packet, which must be of this type."""
        got = self.receive(timeout)
        if got.kind is not kind:
            raise UnexpectedError(f"expected {kind.name}, got {got}")
        return got

    def await_(self, kind: Kind, packet_id: int | None = None) -> Packet:
        """The next packet of this type; PUBLISH packets that come before it are kept for `expect`."""
        while True:
            got = self._read(DEADLINE)
            if got.kind is kind and packet_id in (None, got.packet_id):
                return got
            if got.kind is not Kind.PUBLISH:
                raise UnexpectedError(f"expected {kind.name} {packet_id or ''}, got {got}")
            self._early.append(got)

    def expect_nothing(self) -> None:
        """Nothing was on its way to this client: the answer to a PINGREQ is the next packet."""
        self.send(PINGREQ)
        self.expect(Kind.PINGRESP)

    def sync(self) -> Self:
        """Wait until the node has handled all that was sent so far."""
        self.send(PINGREQ)
        self.await_(Kind.PINGRESP)
        return self

    def expect_closed(self, *reasons: int, timeout: float = DEADLINE) -> None:
        """The node ends the connection; on MQTT 5, if `reasons` are given, with a DISCONNECT of one of them before."""
        try:
            got = self.receive(timeout)
        except ClosedError:
            if reasons and self.version == 5 and not LENIENT:
                raise
            return
        if got.kind is not Kind.DISCONNECT:
            raise UnexpectedError(f"expected the end of the connection, got {got}")
        if reasons and got.reason not in reasons and not LENIENT:
            raise UnexpectedError(f"expected DISCONNECT with {[hex(r) for r in reasons]}, got {got.reason:#x}: {got}")
        self._expect_end(timeout)

    def expect_refused(self, *reasons: int, or_silence: bool = False, timeout: float = DEADLINE) -> Packet | None:
        """The answer to a bad CONNECT: a CONNACK with one of `reasons` (none given: no CONNACK), then the end.

        With `or_silence` the end alone will do.
        """
        try:
            got = self.expect(Kind.CONNACK, timeout)
        except ClosedError:
            if reasons and not or_silence and not LENIENT:
                raise
            return None
        if not LENIENT and got.reason not in reasons:
            raise UnexpectedError(f"expected CONNACK with {[hex(r) for r in reasons]}, got {got.reason:#x}: {got}")
        assert got.reason, "the CONNECT was accepted"
        assert not got.session_present  # [MQTT-3.2.2-6], [MQTT-3.2.2-4] of 3.1.1
        self._expect_end(timeout)
        return got

    def read_to_end(self, timeout: float = DEADLINE) -> bytes:
        """All bytes until the node closes, not decoded: for answers whose version is in doubt."""
        until = time.monotonic() + timeout
        while not self._ended:
            try:
                data = self.stream.receive(max(until - time.monotonic(), 0.001))
            except TimeoutError:
                raise SilenceError(f"not closed within {timeout} s; bytes: {self._buffer.hex() or 'none'}") from None
            except ConnectionResetError:
                data = b""
            self._ended = not data
            self._buffer += data
        return bytes(self._buffer)

    def _expect_end(self, timeout: float) -> None:
        try:
            got = self._read(timeout)
        except ClosedError:
            return
        raise UnexpectedError(f"expected the end of the connection, got {got}")

    def _read(self, timeout: float) -> Packet:
        until = time.monotonic() + timeout
        while True:
            taken = self._take()
            if taken is not None:
                return taken
            if self._ended:
                raise ClosedError(f"the node closed the connection; unread bytes: {self._buffer.hex() or 'none'}")
            try:
                data = self.stream.receive(max(until - time.monotonic(), 0.001))
            except TimeoutError:
                raise SilenceError(
                    f"nothing within {timeout} s; unread bytes: {self._buffer.hex() or 'none'}"
                ) from None
            except ConnectionResetError:
                data = b""
            self._ended = not data
            self._buffer += data

    def _take(self) -> Packet | None:
        length = shift = 0
        for at in range(1, min(5, len(self._buffer))):
            length |= (self._buffer[at] & 0x7F) << shift
            shift += 7
            if self._buffer[at] < 0x80:
                assert self._buffer[at] or at == 1, (
                    "a Remaining Length that is longer than it must be"
                )  # [MQTT-1.5.5-1]
                end = at + 1 + length
                if len(self._buffer) < end:
                    return None
                first, body = self._buffer[0], bytes(self._buffer[at + 1 : end])
                del self._buffer[:end]
                return decode(first, body, self.version)
        return None

    # -- whole exchanges -----------------------------------------------------------------------------------------

    def connect(self, client_id: Text | None = None, **fields: Any) -> Self:
        """CONNECT (see `wire.connect` for `fields`) and its successful CONNACK, kept as `self.connack`."""
        name = unique() if client_id is None else client_id
        self.client_id = name.decode() if isinstance(name, bytes) else name
        self.send(wire.connect(name, version=self.version, **fields))
        self.connack = self.expect(Kind.CONNACK)
        assert self.connack.reason == 0, self.connack
        return self

    def next_id(self) -> int:
        """A packet id that this connection has not used yet."""
        return next(self._ids)

    def subscribe(
        self, *filters: Text | tuple[Text, int], qos: int = 0, props: Properties = (), **options: Any
    ) -> Packet:
        """SUBSCRIBE and its SUBACK; a filter alone has `qos` and `options`."""
        pairs = [
            name if isinstance(name, tuple) else (name, wire.options(qos, **options) if self.version == 5 else qos)
            for name in filters
        ]
        packet_id = self.next_id()
        self.send(wire.subscribe(packet_id, pairs, version=self.version, props=props))
        return self.await_(Kind.SUBACK, packet_id)

    def unsubscribe(self, *filters: Text, props: Properties = ()) -> Packet:
        """UNSUBSCRIBE and its UNSUBACK."""
        packet_id = self.next_id()
        self.send(wire.unsubscribe(packet_id, filters, version=self.version, props=props))
        return self.await_(Kind.UNSUBACK, packet_id)

    def publish(
        self, topic: Text, payload: bytes = b"", *, qos: int = 0, retain: bool = False, props: Properties = ()
    ) -> Packet | None:
        """PUBLISH until the node has it: a PINGRESP, a PUBACK or a PUBCOMP later. Gives the PUBACK or PUBREC."""
        packet_id = self.next_id() if qos else None
        self.send(
            wire.publish(topic, payload, version=self.version, qos=qos, packet_id=packet_id, retain=retain, props=props)
        )
        if packet_id is None:
            self.sync()
            return None
        if qos == 1:
            return self.await_(Kind.PUBACK, packet_id)
        received = self.await_(Kind.PUBREC, packet_id)
        if received.reason < 0x80:
            self.send(wire.acknowledge(Kind.PUBREL, packet_id))
            self.await_(Kind.PUBCOMP, packet_id)
        return received

    def take(self) -> Packet:
        """The next PUBLISH, acknowledged to the end."""
        got = self.expect(Kind.PUBLISH)
        if got.qos == 1:
            self.send(wire.acknowledge(Kind.PUBACK, got.packet_id))
        elif got.qos == 2:
            self.send(wire.acknowledge(Kind.PUBREC, got.packet_id))
            self.await_(Kind.PUBREL, got.packet_id)
            self.send(wire.acknowledge(Kind.PUBCOMP, got.packet_id))
        return got

    def take_payloads(self, count: int) -> list[bytes]:
        """The payloads of the next `count` messages, each acknowledged."""
        return [self.take().payload for _ in range(count)]

    def disconnect(self, reason: int | None = None, props: Properties | None = None) -> None:
        """DISCONNECT, and wait until the node has closed its side."""
        self.send(wire.disconnect(reason, props))
        self.drain()
        self.close()

    def drain(self) -> Iterable[Packet]:
        """Read until the node closes; gives what came."""
        seen = list(self._early)
        self._early.clear()
        with contextlib.suppress(ClosedError):
            while True:
                seen.append(self._read(DEADLINE))
        return seen

    def drop(self) -> None:
        """End the connection as a failing network does: a reset, without DISCONNECT."""
        linger = struct.pack("ii", 1, 0)
        self.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.stream.close()

    def close(self) -> None:
        """Close the socket."""
        self.stream.close()

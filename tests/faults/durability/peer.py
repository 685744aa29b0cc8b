"""A client under exact control: it decides about every packet, and writes down what it did and saw.

The client of a run outlives its connections: it has a session, and takes it up again when it or the node has dropped
the connection. What packets mean is in ``Peer``'s subclasses; here is how to connect, to be cut off and to leave.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Callable
from typing import Protocol, cast

from tests.faults.durability.content import payload_of
from tests.faults.durability.history import Closed, Connected, Connecting, History, Message
from tests.harness import wire
from tests.harness.received import Packet, decode
from tests.harness.wire import Kind, Properties, Property, Will

ANSWER_SECONDS_MAX = 15.0  # for a CONNACK: a node without its store makes a CONNECT wait for 10 s
AGAIN_SECONDS = 0.02  # between two attempts to connect
LEAVE_SECONDS_MAX = 15.0  # from DISCONNECT to the end of the connection
FOR_EVER = 0xFFFFFFFF  # Session Expiry Interval


class Ground(Protocol):
    """Where the clients of a run live."""

    history: History

    async def address(self) -> tuple[tuple[str, int], int]:
        """Where the node is and which of its lives this is; waits while it is down."""

    def next_connection(self) -> int:
        """A number for a connection."""


class Wire(asyncio.Protocol):
    """One connection; cuts what arrives into packets. After ``reset`` nothing is heard of it any more."""

    def __init__(self, version: int, on_packet: Callable[[Packet], None], on_end: Callable[[], None]) -> None:
        self._version = version
        self._on_packet = on_packet
        self._on_end = on_end
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._silent = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while not self._silent and (packet := self._take()) is not None:
            self._on_packet(packet)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._silent:
            self._on_end()

    def send(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def reset(self) -> None:
        """As a failing network does."""
        assert self._transport is not None
        self._silent = True
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()

    def _take(self) -> Packet | None:
        buffer = self._buffer
        length = shift = 0
        for at in range(1, min(5, len(buffer))):
            length |= (buffer[at] & 0x7F) << shift
            shift += 7
            if buffer[at] < 0x80:
                end = at + 1 + length
                if len(buffer) < end:
                    return None
                first, body = buffer[0], bytes(buffer[at + 1 : end])
                del buffer[:end]
                return decode(first, body, self._version)
        return None


class Peer:
    """One client. Subclasses say what they do in ``live`` and with packets in ``take``."""

    def __init__(self, ground: Ground, name: str, version: int, seed: str, *, kept: bool = True) -> None:
        self.ground = ground
        self.history = ground.history
        self.name = name
        self.version = version
        self.kept = kept
        self.chance = random.Random(f"{seed}/{name}")
        self.connection = 0
        self.finish = asyncio.Event()  # the run comes to its end: who is a subscriber stays connected
        self.present = False  # what the last CONNACK said
        self.refusals = 0  # CONNECTs, and what a subclass counts, that the node answered with a reason to fail
        self._wire: Wire | None = None
        self._accepted = asyncio.Event()
        self._over = asyncio.Event()
        self.leaving = False  # the DISCONNECT is out: what comes now is read and not answered

    @property
    def connected(self) -> bool:
        return self._wire is not None and self._accepted.is_set() and not self._over.is_set()

    @property
    def finishing(self) -> bool:
        return self.finish.is_set()

    # what a subclass has to say

    async def run(self) -> None:
        """What it does, until cancelled."""

    def began(self) -> None:
        """The CONNACK is there."""

    def ended(self) -> None:
        """The connection is over."""

    def take(self, packet: Packet) -> None:
        """A packet came."""

    # connections

    async def connect(self, *, clean: bool = False, will: Message | None = None, receive_max: int = 0) -> bool:
        """One attempt; whether the node accepted."""
        address, life = await self.ground.address()
        wire_ = Wire(self.version, self._packet, self._ended)
        self._accepted, self._over = asyncio.Event(), asyncio.Event()
        self.leaving, self._wire = False, None
        try:
            await asyncio.get_running_loop().create_connection(lambda: wire_, *address)
        except OSError:
            await asyncio.sleep(AGAIN_SECONDS)
            return False
        self._wire, self.connection = wire_, self.ground.next_connection()
        self.history.add(Connecting(self.name, self.connection, life, clean, self.kept, will))
        self.send(self._connect_packet(clean=clean, will=will, receive_max=receive_max))
        await self._first(self._accepted, self._over, seconds=ANSWER_SECONDS_MAX)
        if self._accepted.is_set():
            return True
        self.drop()
        await asyncio.sleep(AGAIN_SECONDS)
        return False

    def send(self, data: bytes) -> None:
        if self._wire is not None and not self._over.is_set():
            self._wire.send(data)

    def drop(self) -> None:
        """Cut the connection."""
        if self._wire is not None and not self._over.is_set():
            self.leaving = False
            self._wire.reset()
            self._ended()

    async def leave(self) -> None:
        """DISCONNECT, and read on until the node closes: an early end of ours could destroy what we have sent."""
        if self._over.is_set():
            return
        self.leaving = True
        self.send(wire.disconnect())
        if not await self._first(self._over, seconds=LEAVE_SECONDS_MAX):
            self.drop()

    async def stay(self, seconds: float) -> None:
        """Until the time is over, the connection is, or the run comes to its end."""
        await self._first(self._over, self.finish, seconds=seconds)

    async def stay_away(self, seconds: float) -> None:
        """Until the time is over or the run comes to its end."""
        await self._first(self.finish, seconds=seconds)

    async def stay_on(self) -> None:
        """Until the connection is over."""
        await self._over.wait()

    async def _first(self, *events: asyncio.Event, seconds: float) -> bool:
        """Whether one of them came in time."""
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        done, rest = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in rest:
            each.cancel()
        return bool(done)

    def _connect_packet(self, *, clean: bool, will: Message | None, receive_max: int) -> bytes:
        properties: list[tuple[int, wire.Value]] = []
        if self.version == 5 and self.kept:
            properties.append((Property.SESSION_EXPIRY, FOR_EVER))
        if self.version == 5 and receive_max:
            properties.append((Property.RECEIVE_MAXIMUM, receive_max))
        given: Properties = properties
        last_will = None if will is None else Will(will.topic, payload_of(will), qos=2)
        clean_flag = clean or not self.kept
        return wire.connect(self.name, version=self.version, clean=clean_flag, will=last_will, props=given)

    def _packet(self, packet: Packet) -> None:
        if packet.kind is Kind.CONNACK:
            if packet.reason == 0:
                self.present = packet.session_present
                self.history.add(Connected(self.name, self.connection, packet.session_present))
                self._accepted.set()
                self.began()
            else:
                self.refusals += 1
        else:
            self.take(packet)

    def _ended(self) -> None:
        self._over.set()
        self.history.add(Closed(self.name, self.connection, orderly=self.leaving))
        self.ended()

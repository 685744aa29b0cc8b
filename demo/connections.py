"""The devices' MQTT connections: one TCP connection for each, MQTT 5, QoS 1.

One event loop carries them all. A thousand clients of a library would cost more than the broker and the pipeline
together; what a device needs of MQTT is little.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from brookmq.mqtt.codec import decode, encode
from brookmq.mqtt.packets import (
    PUBACK,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
)
from demo.fleet import DOOR, GREETING, HOT_CELSIUS, TEMPERATURE, Device, Measuring, payload

VERSION: Final = 5
KEEP_ALIVE_S: Final = 600
PACKET_ID_MAX: Final = 65_535
CONNECTING_MAX: Final = 100  # at a time: as many as a listener takes without a second thought
ANSWER_S: Final = 30.0
MOST_DUE: Final = 200  # messages between two looks at the sockets


class LostConnectionError(Exception):
    """The node ended a connection, or did not answer."""


class Connection(asyncio.Protocol):
    """One client. ``received`` gets the messages that come for it."""

    def __init__(self, client_id: str, received: Callable[[Publish], None] | None = None) -> None:
        self.client_id = client_id
        self.acknowledged = 0
        self.failure: str | None = None
        self._received = received
        self._transport: asyncio.Transport | None = None
        self._answers: asyncio.Queue[Packet] = asyncio.Queue(8)
        self._buffer = bytearray()
        self._leaving = False
        self._closed = asyncio.Event()

    async def open(self, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(loop.create_connection(lambda: self, host, port), ANSWER_S)
        answer = await self._ask(Connect(VERSION, self.client_id, keep_alive=KEEP_ALIVE_S))
        if not isinstance(answer, Connack) or answer.reason:
            raise LostConnectionError(f"the node refused {self.client_id}: {answer}")

    async def subscribe(self, topic_filter: str) -> None:
        answer = await self._ask(Subscribe(1, [SubscriptionRequest(topic_filter, 1)]))
        if not isinstance(answer, Suback) or answer.reasons[0] > 1:
            raise LostConnectionError(f"the node refused the subscription to {topic_filter}: {answer}")

    def publish(self, topic: str, content: bytes, number: int, *, retain: bool = False) -> None:
        packet_id = (number - 1) % PACKET_ID_MAX + 1
        self._send(Publish(topic.encode(), content, 1, retain, packet_id=packet_id))

    async def close(self) -> None:
        self._leaving = True
        if self._transport is None:
            return
        if not self._transport.is_closing():
            self._send(Disconnect())
            self._transport.close()
        await self._closed.wait()  # soon: what the node does not take any more is dropped

    async def _ask(self, packet: Packet) -> Packet:
        self._send(packet)
        try:
            return await asyncio.wait_for(self._answers.get(), ANSWER_S)
        except TimeoutError:
            raise LostConnectionError(self.failure or f"no answer to {self.client_id} in {ANSWER_S:g} s") from None

    def _send(self, packet: Packet) -> None:
        if self._transport is not None:
            self._transport.write(encode(packet, VERSION))

    # Of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        if not self._leaving:
            self.failure = self.failure or f"{self.client_id} was disconnected: {exc or 'closed by the node'}"
            if not self._answers.full():
                self._answers.put_nowait(Disconnect())  # for whoever waits

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (place := _first_packet(self._buffer)) is not None:
            start, end = place
            packet = decode(self._buffer[0], bytes(self._buffer[start:end]), VERSION)
            del self._buffer[:end]
            self._take(packet)

    def _take(self, packet: Packet) -> None:
        if isinstance(packet, Ack):
            self.acknowledged += 1
        elif isinstance(packet, Publish):
            if packet.qos:
                self._send(Ack(PUBACK, packet.packet_id))
            if self._received is not None:
                self._received(packet)
        elif isinstance(packet, Disconnect):
            self.failure = f"{self.client_id} was disconnected with reason 0x{packet.reason:02X}"
        elif not self._answers.full():
            self._answers.put_nowait(packet)


def _first_packet(buffer: bytearray) -> tuple[int, int] | None:
    """Where the first packet's body begins and ends; None while it is not all there."""
    length = 0
    for at in range(1, min(5, len(buffer))):
        length |= (buffer[at] & 0x7F) << 7 * (at - 1)
        if buffer[at] < 0x80:
            end = at + 1 + length
            return (at + 1, end) if end <= len(buffer) else None
    return None


class Fleet:
    """All devices. ``sent_at`` has the monotonic time of every reading, by device; the first one has number 1."""

    def __init__(self, members: Sequence[Device], measuring: Measuring) -> None:
        self._members = list(members)
        self._measuring = measuring
        self._connections = [Connection(device.client_id) for device in self._members]
        self.sent_at: dict[str, list[float]] = {device.client_id: [] for device in self._members}
        self.connected = 0
        self.hot = 0  # readings that should raise an alarm

    @property
    def sent(self) -> int:
        return sum(map(len, self.sent_at.values()))

    @property
    def acknowledged(self) -> int:
        return sum(connection.acknowledged for connection in self._connections)

    async def connect(self, host: str, port: int) -> None:
        free = asyncio.Semaphore(CONNECTING_MAX)

        async def one(connection: Connection) -> None:
            async with free:
                await connection.open(host, port)
            self.connected += 1

        async with asyncio.TaskGroup() as tasks:
            for connection in self._connections:
                tasks.create_task(one(connection))

    async def greet(self) -> None:
        """The first reading of each device."""
        now = time.monotonic()
        await self._speak(now, now)

    async def speak(self, until: float) -> None:
        """Publishes until a monotonic time: each device when it is its time, and all of them at least once."""
        await self._speak(time.monotonic(), until)

    async def _speak(self, began: float, until: float) -> None:
        due = [(began + self._measuring.first_pause_s(device), at) for at, device in enumerate(self._members)]
        heapq.heapify(due)
        while due:
            now = time.monotonic()
            for _ in range(MOST_DUE):
                if not due or due[0][0] > now:
                    break
                _, at = heapq.heappop(due)
                self._say(at, now - began, now)
                following = now + self._measuring.pause_s(self._members[at])
                if following < until:
                    heapq.heappush(due, (following, at))
            self._check()
            if due:
                await asyncio.sleep(max(0.0, min(due[0][0] - time.monotonic(), 0.5)))

    def _say(self, at: int, moment_s: float, now: float) -> None:
        device = self._members[at]
        times = self.sent_at[device.client_id]
        times.append(now)
        value = self._measuring.value(device, moment_s)
        self.hot += device.kind == TEMPERATURE and value > HOT_CELSIUS
        content = payload(device, len(times), value)
        self._connections[at].publish(device.topic, content, len(times), retain=device.kind == DOOR)

    def _check(self) -> None:
        for connection in self._connections:
            if connection.failure is not None:
                raise LostConnectionError(connection.failure)

    async def settle(self) -> None:
        """Until the node has acknowledged everything."""
        deadline = time.monotonic() + ANSWER_S
        while self.acknowledged < self.sent:
            self._check()
            if time.monotonic() > deadline:
                raise LostConnectionError(f"{self.sent - self.acknowledged} messages are not acknowledged")
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self._connections))


class AlarmDesk:
    """A subscriber to what a rule publishes, which knows how long each alarm took from the device on."""

    def __init__(self, fleet: Fleet, topic_filter: str) -> None:
        self._fleet = fleet
        self._filter = topic_filter
        self._connection = Connection("alarm-desk", self._received)
        self.count = 0
        self.delays_s: list[float] = []  # without greetings: they meet a pipeline that has just been started

    async def open(self, host: str, port: int) -> None:
        await self._connection.open(host, port)
        await self._connection.subscribe(self._filter)

    def _received(self, message: Publish) -> None:
        alarm: dict[str, Any] = json.loads(message.payload)
        device, number = str(alarm["client_id"]), int(alarm["n"])
        self.count += 1
        if number > GREETING:
            self.delays_s.append(time.monotonic() - self._fleet.sent_at[device][number - 1])

    def tick(self) -> None:
        """A message behind all others, by which windows know that they are over."""
        self._connection.publish("campus/clock", b"{}", 1)

    async def close(self) -> None:
        await self._connection.close()

"""One peer with its connection: what a socket would do around a channel, and a strict reader of all that comes out.

The reader is the one of the specification suite, not BrookMQ's own codec: a mistake of the encoder does not hide behind
the same mistake in the decoder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tests.harness.received import Packet, decode
from tests.harness.wire import Kind, Property, acknowledge

from brookmq.broker.channel import Channel
from brookmq.broker.channel_state import CLOSED
from brookmq.broker.outlet import Outlet

if TYPE_CHECKING:
    from fuzz.world import World

read = lru_cache(maxsize=4096)(decode)  # most answers are the same again and again, and nobody changes a packet

CLOSE_SECONDS_MAX = 5.0  # as at the edge: then a peer that does not read the last bytes is cut off


class Finding(AssertionError):  # noqa: N818 - it is a result, not a condition to handle
    """The broker did something that it must not do, whatever came in."""


def require(condition: object, why: str, *about: object) -> None:
    """Raise a finding with `why`; a function, since these checks must not vanish under -O. ``about`` is made text only
    then."""
    if not condition:
        raise Finding(": ".join((why, *map(repr, about))))


class Peer:
    """Host and transport of one channel. ``stalled``: the peer does not read, the transport takes one more write and
    then asks for no more, as asyncio's do with a write limit of 0."""

    def __init__(self, world: World, mount: str) -> None:
        self.world = world
        made = world.broker.settings
        self.outlet = Outlet(world.broker.turn, self, made.output_bytes_max, made.patience)
        self.channel = Channel(world.broker, self, self.outlet, "fuzz", "127.0.0.1:1")
        self.channel.mount_template = mount
        self.channel.last_seen = world.monotonic
        self.channel.silence_max = made.connect_timeout
        self.stalled = False
        self.unread = 0  # bytes written since the peer does not read
        self.paused = False
        self.closing_at = 0.0  # monotonic seconds, 0 = not closing
        self.lost = False
        self.inbox: deque[bytes] = deque()  # what the kernel keeps while nobody reads
        self.due: deque[bytes] = deque()  # acknowledgements that a client which keeps the rules would send
        self.aliases: dict[int, bytes] = {}
        self.received_count = 0
        self.last: Packet | None = None
        self.over = False  # a refusal or a DISCONNECT came: nothing may follow

    # -- towards the broker

    def arrive(self, data: bytes) -> None:
        if not data or self.lost or self.closing_at:
            return
        if self.paused:
            self.inbox.append(data)
        else:
            self.channel.receive(data, self.world.monotonic)

    def acknowledge(self, count: int) -> None:
        """Several in one piece: they make a run."""
        self.arrive(b"".join(self.due.popleft() for _ in range(min(count, len(self.due)))))

    def stall(self) -> None:
        self.stalled = True

    def read_on(self) -> None:
        self.stalled = False
        self.unread = 0
        if self.closing_at:
            self.lose()
        elif not self.lost:
            self.outlet.unblock()

    def lose(self) -> None:
        if not self.lost:
            self.lost = True
            self.inbox.clear()
            self.channel.lost()

    def look_at_time(self, monotonic: float) -> None:
        """What the edge's watch does."""
        if self.closing_at and monotonic - self.closing_at >= CLOSE_SECONDS_MAX:
            self.lose()
        elif not self.closing_at and self.channel.state != CLOSED and self.channel.overdue(monotonic):
            self.channel.timed_out()

    # -- the channel's host

    def close(self) -> None:
        if self.closing_at or self.lost:
            return
        self.closing_at = self.world.monotonic
        self.outlet.finish()
        self.inbox.clear()
        if not self.stalled:
            self.world.soon.append(self.lose)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        if self.inbox:
            self.world.soon.append(self._read_inbox)

    def _read_inbox(self) -> None:
        while self.inbox and not self.paused:
            self.arrive(self.inbox.popleft())

    def watch(self, seconds: float) -> None:
        require(seconds > 0, "watched for no time at all")

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        self.world.wait(awaitable, done)

    # -- the outlet's transport

    def write(self, data: bytes) -> None:
        require(data, "an empty write")
        require(not self.lost, "a write to a connection that is lost")
        at = 0
        while at < len(data):
            at = self._take_packet(data, at)
        if self.stalled:
            self.unread += len(data)
            self.outlet.block()

    def get_write_buffer_size(self) -> int:
        return self.unread

    def _take_packet(self, data: bytes, start: int) -> int:
        size = shift = 0
        at = start + 1
        while True:
            require(at < len(data) and shift < 28, "the length of a packet is cut short or too long")
            size |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        require(at + size <= len(data), "a packet is cut short")
        require(at - start == 2 or size >= 1 << shift - 7, "a length that is longer than it must be")
        packet = read(data[start], data[at : at + size], self.channel.version)
        require(packet.size <= self.channel.peer_packet_size_max or self.channel.version < 5, "too large", packet)
        self._check(packet)
        self.received_count += 1
        self.last = packet
        return at + size

    def _check(self, packet: Packet) -> None:
        require(not self.over, "a packet after the last", packet)
        if self.received_count == 0:
            require(packet.kind in {Kind.CONNACK, Kind.AUTH}, "not the first packet of a server", packet)
        else:
            opened = self.last is not None and self.last.kind is Kind.AUTH
            require(packet.kind is not Kind.CONNACK or opened, "a second CONNACK", packet)
        if packet.kind is Kind.DISCONNECT or (packet.kind is Kind.CONNACK and packet.reason):
            self.over = True
        elif packet.kind is Kind.PUBREL:
            self.due.append(acknowledge(Kind.PUBCOMP, packet.packet_id))
        elif packet.kind is Kind.PUBLISH:
            self._check_alias(packet)
            if packet.qos:
                kind = Kind.PUBACK if packet.qos == 1 else Kind.PUBREC
                self.due.append(acknowledge(kind, packet.packet_id))

    def _check_alias(self, packet: Packet) -> None:
        alias = packet.number(Property.TOPIC_ALIAS)
        if alias:
            require(alias <= self.world.broker.settings.topic_alias_out_max, "alias over the maximum", packet)
            require(packet.topic or alias in self.aliases, "an alias that was never set", packet)
            if packet.topic:
                self.aliases[alias] = packet.topic
        else:
            require(packet.topic, "no topic", packet)

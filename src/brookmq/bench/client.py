"""One simulated MQTT client, and the flow of messages that bounds what its kind may have under way.

There is no event loop of asyncio below this: a load generator must decide itself what goes into one ``send`` call (the
number of packets per write is a parameter of the load), and may not spend more on a message than the broker does. The
engine calls ``receive`` and ``flush`` when the kernel says so, and ``Flow.step`` when messages may have become due.
"""

from __future__ import annotations

import select
import socket
from typing import TYPE_CHECKING, Final

from brookmq.bench.packets import receive_maximum
from brookmq.bench.transport import Layer

if TYPE_CHECKING:
    from brookmq.bench.frames import Inbox, PublishBlock

WAITING: Final = 0
CONNECTING: Final = 1
SUBSCRIBING: Final = 2
READY: Final = 3
CLOSED: Final = 4

UNLIMITED: Final = 1 << 60
STEPS_PER_TURN: Final = 64
"""Writes of one flow before the engine looks at the sockets again; more would let the answers pile up."""


class Client:
    """A connection in the making or made, with its role: it publishes from ``block``, it counts what it receives."""

    __slots__ = (
        "_filters_asked", "_layered", "_views", "allowance", "block", "budget", "due_at", "epoll", "failure",
        "in_flight_max", "inbox", "opening", "packets_per_write", "pending", "publishing", "qos", "receiving", "sent",
        "sock", "started_at", "state", "subscriptions", "was_ready",
    )  # fmt: skip

    def __init__(self, opening: bytes, inbox: Inbox, subscriptions: list[bytes], filter_count: int) -> None:
        self.opening = opening
        self.inbox = inbox
        self.subscriptions = subscriptions
        self._filters_asked = filter_count
        self.sock: socket.socket | Layer | None = None
        self._layered = False
        self.epoll: select.epoll | None = None
        self.state = WAITING
        self.was_ready = False
        self.pending = bytearray()
        self.failure = ""
        self.started_at = 0
        self.block: PublishBlock | None = None
        self._views: list[memoryview] = []
        self.publishing: Flow | None = None
        self.receiving: Flow | None = None
        self.qos = 0
        self.in_flight_max = 0
        self.packets_per_write = 1
        self.sent = 0
        self.allowance = 0
        self.budget = UNLIMITED
        self.due_at = 0

    def publish_from(
        self, block: PublishBlock, flow: Flow, qos: int, in_flight_max: int, packets_per_write: int
    ) -> None:
        """Make this client a publisher. ``allowance`` says how many messages it may send: none as yet."""
        self.block = block
        view = memoryview(block.data)
        self._views = [view[: count * block.packet_length] for count in range(block.capacity + 1)]
        self.publishing = flow
        flow.publishers.append(self)
        self.qos = qos
        self.in_flight_max = in_flight_max
        self.packets_per_write = packets_per_write

    def start(self, sock: socket.socket | Layer, epoll: select.epoll, now: int) -> None:
        """Begin with a socket that is connected or about to be."""
        self.sock = sock
        self._layered = isinstance(sock, Layer)
        self.epoll = epoll
        epoll.register(sock.fileno(), select.EPOLLIN)
        self.state = CONNECTING
        self.started_at = now
        self.write(self.opening)

    def write(self, content: bytes | memoryview) -> None:
        """Send now; what the kernel does not take waits in ``pending`` until ``flush``."""
        if self.pending or self.sock is None:
            self.pending += content
            return
        taken = self._send(content)
        if (taken < len(content) or self._is_stuck()) and self.state != CLOSED:
            self.pending += content[taken:]
            self._watch(select.EPOLLIN | select.EPOLLOUT)

    def flush(self) -> None:
        """The kernel has room again."""
        del self.pending[: self._send(self.pending)]
        if not self.pending and not self._is_stuck():
            self._watch(select.EPOLLIN)

    def _is_stuck(self) -> bool:
        """Whether a layer above the socket has taken bytes that the kernel has not."""
        return self._layered and isinstance(self.sock, Layer) and self.sock.unsent()

    def _send(self, content: bytes | bytearray | memoryview) -> int:
        if self.sock is None:
            return 0
        try:
            return self.sock.send(content)
        except BlockingIOError:
            return 0
        except OSError as error:
            self.fail(error)
            return 0

    def _watch(self, events: int) -> None:
        if self.epoll is not None and self.sock is not None:
            self.epoll.modify(self.sock.fileno(), events)

    def receive(self, buffer: bytearray, view: memoryview, now: int) -> bool:
        """Take what has come; False when the connection has ended."""
        start = self.inbox.restore(buffer)
        if self.sock is None:
            return False
        try:
            length = self.sock.recv_into(view[start:] if start else view)
        except BlockingIOError:
            return True
        except OSError as error:
            self.fail(error)
            return False
        if length == 0:
            self.fail(ConnectionResetError("closed by the broker"))
            return False
        before = self.inbox.received
        try:
            answers = self.inbox.feed(buffer, start + length, now)
        except ValueError as error:
            self.fail(ConnectionAbortedError(f"the broker sent {error}"))
            return False
        if answers is not None:
            self.write(answers)
        if self.receiving is not None:
            self.receiving.received += self.inbox.received - before
        return True

    def proceed(self) -> bool:
        """The next step of the opening; True when this made the client ready."""
        if self.state == CONNECTING and self.inbox.connack is not None:
            self._connected(self.inbox.connack)
        if self.state == SUBSCRIBING and self.inbox.granted + self.inbox.denied >= self._filters_asked:
            if self.inbox.denied:
                self.failure = self.failure or "the broker denied a subscription"
            self.state = READY
            self.was_ready = True
            return True
        return False

    def _connected(self, connack: bytes) -> None:
        if len(connack) < 2 or connack[1]:
            self.fail(ConnectionRefusedError(f"CONNACK with code 0x{connack[1] if len(connack) > 1 else 0:02X}"))
            return
        self.in_flight_max = min(self.in_flight_max, receive_maximum(connack, self.inbox.version))
        self.state = SUBSCRIBING
        for packet in self.subscriptions:
            self.write(packet)

    def fail(self, error: OSError) -> None:
        """The connection is over; the engine takes it off its list."""
        if self.state != CLOSED:
            self.failure = self.failure or str(error)
            self.state = CLOSED

    def allow(self, count: int, now: int) -> None:
        """``count`` more messages are due. Latency counts from here, also when the broker makes them wait."""
        if self.allowance <= 0:
            self.due_at = now
        count = min(count, self.budget)
        self.allowance += count
        self.budget -= count

    def publish_some(self, room: int, stamp: int) -> int:
        """One write of as many messages as are due, in the window and in the flow's room; how many."""
        count = self.packets_per_write
        if self.state != READY or self.block is None or len(self.pending) > 0:
            return 0
        if self.allowance < count:
            count = self.allowance
        if self.qos > 0:
            free = self.in_flight_max - (self.sent - self.inbox.acknowledged)
            if free < count:
                count = free
            if room < count:
                count = room
        elif room < count:
            return 0  # QoS 0 goes in whole writes: their size is what is being measured
        if count <= 0:
            return 0
        self.block.fill(count, self.due_at or stamp)
        self.write(self._views[count])
        self.sent += count
        self.allowance -= count
        return count


class Flow:
    """Publishers and the subscribers who count what comes of it.

    A message has ``copies`` receivers; 0 means that nobody counts. At most ``limit`` messages are under way: without
    that, QoS 0 at full speed would measure how much a broker buffers or throws away.
    """

    __slots__ = ("_cursor", "copies", "limit", "publishers", "received", "sent")

    def __init__(self, copies: int, limit: int) -> None:
        self.publishers: list[Client] = []
        self.copies = copies
        self.limit = limit
        self.sent = 0
        self.received = 0
        self._cursor = 0

    def room(self) -> int:
        if self.copies == 0:
            return UNLIMITED
        return self.limit - (self.sent - self.received // self.copies)

    def outstanding(self) -> int:
        """Copies that are still to come."""
        return self.sent * self.copies - self.received

    def step(self, now: int) -> bool:
        """Give every publisher its turn until nobody may send; True when it stopped early and wants another step."""
        count = len(self.publishers)
        idle = 0
        steps = 0
        room = self.room()
        while idle < count:
            if steps >= STEPS_PER_TURN and steps >= count:
                return True
            client = self.publishers[self._cursor]
            self._cursor += 1
            if self._cursor == count:
                self._cursor = 0
            steps += 1
            published = client.publish_some(room, now)
            if published:
                idle = 0
                room -= published
                self.sent += published
            else:
                idle += 1
        return False

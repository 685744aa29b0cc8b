"""Runs the clients of a load: opens them, gives publishers their turns, hands out what the sockets bring.

One thread, one epoll, one receive buffer for all. A run goes on until a time or until a condition holds, so that a
caller can draw its progress between slices.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from brookmq.bench.client import CLOSED, READY, Client, Flow
from brookmq.bench.packets import PINGREQ
from brookmq.bench.transport import Layer
from brookmq.bench.wire import Latencies

READABLE: Final = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR
EVENTS_PER_TURN: Final = 512
OPENS_PER_TURN: Final = 512
RECEIVE_BYTES: Final = 256 * 1024
NAP_S: Final = 0.05
"""The longest wait for a socket: how late an engine with nothing to do notices that its time is over."""
PING_SLICES: Final = 20
"""Keep alive goes out in slices of all connections, not as one burst that would be a load of its own."""
NANOSECONDS: Final = 1_000_000_000


class Engine:
    """All clients of this process."""

    def __init__(self, connector: Callable[[], socket.socket | Layer], receive_bytes: int = RECEIVE_BYTES) -> None:
        self.connector = connector
        self.epoll = select.epoll()
        self.buffer = bytearray(receive_bytes)
        self.view = memoryview(self.buffer)
        self.clients: dict[int, Client] = {}
        self.flows: list[Flow] = []
        self.waking: list[Flow] = []
        self.events_per_turn = EVENTS_PER_TURN
        self.opens_per_turn = OPENS_PER_TURN
        self.waiting: deque[Client] = deque()
        self.opening = 0
        self.opening_max = 64
        self.opened = 0
        self.failed = 0
        self.dropped = 0
        self.first_failure = ""
        self.connect_latencies = Latencies()
        self.connect_interval_ns = 0
        self.next_connect_at = 0
        self.paced: list[Client] = []
        self.pace_ns = 0.0
        self.pace_count = 1
        self.pace_next = 0.0
        self.pace_cursor = 0
        self.ping_interval_ns = 0
        self.ping_next_at = 0
        self.ping_queue: list[Client] = []
        self.on_ready: Callable[[Client], None] | None = None
        self.on_dropped: Callable[[Client], None] | None = None

    def open(self, clients: Iterable[Client], rate_per_s: float = 0.0) -> None:
        """Queue clients for connecting; ``run`` makes the connections, a bounded number at a time."""
        self.waiting.extend(clients)
        self.connect_interval_ns = int(NANOSECONDS / rate_per_s) if rate_per_s else 0

    def pace(self, clients: list[Client], rate_per_s: float, count: int) -> None:
        """From now on ``count`` messages are due every so often, from one client after the other."""
        self.paced = clients
        self.pace_count = count
        self.pace_ns = NANOSECONDS * count / rate_per_s
        self.pace_next = float(time.monotonic_ns())

    def unleash(self, allowance: int) -> None:
        """Every publisher may send ``allowance`` messages as fast as its window and its flow allow."""
        for flow in self.flows:
            for client in flow.publishers:
                client.allowance = allowance
                client.due_at = 0
        self.waking = list(self.flows)

    def hold_back(self) -> None:
        """No further messages; what is under way still comes in."""
        self.paced = []
        for flow in self.flows:
            for client in flow.publishers:
                client.allowance = 0

    def keep_alive(self, interval_s: float) -> None:
        self.ping_interval_ns = int(interval_s * NANOSECONDS / PING_SLICES)
        self.ping_next_at = time.monotonic_ns() + self.ping_interval_ns

    def run(self, until: int, done: Callable[[], bool] | None = None) -> bool:
        """Turn until the monotonic time ``until`` (ns) or until ``done``; whether it ended by ``done``."""
        now = time.monotonic_ns()
        while now < until:
            if done is not None and done():
                return True
            self.turn(now, until)
            now = time.monotonic_ns()
        return done is not None and done()

    def turn(self, now: int, until: int) -> None:
        if self.waiting:
            self._open_some(now)
        if self.paced:
            self._make_due(now)
        if self.ping_interval_ns and now >= self.ping_next_at:
            self._ping_some(now)
        waking = self.waking
        if waking:
            self.waking = [flow for flow in waking if flow.step(now)]
        for fd, events in self._wait(now, until):
            self._handle(fd, events, time.monotonic_ns())

    def _wait(self, now: int, until: int) -> list[tuple[int, int]]:
        if self.waking:
            return self.epoll.poll(0, self.events_per_turn)
        pause = min((until - now) / NANOSECONDS, NAP_S)
        if self.waiting and self.opening < self.opening_max:
            pause = min(pause, max(self.next_connect_at - now, 0) / NANOSECONDS)
        if self.paced:
            # epoll counts in milliseconds, which is no good for 10,000 messages/s; select counts in microseconds.
            pause = min(pause, max((self.pace_next - now) / NANOSECONDS, 0.0))
            select.select((self.epoll,), (), (), pause)
            pause = 0.0
        return self.epoll.poll(pause, self.events_per_turn)

    def _handle(self, fd: int, events: int, now: int) -> None:
        client = self.clients.get(fd)
        if client is None:
            return
        if events & select.EPOLLOUT:
            client.flush()
        if events & READABLE and client.receive(self.buffer, self.view, now):
            if client.state < READY:
                self._proceed(client, now)
            flow = client.receiving
            if flow is not None and flow not in self.waking:
                self.waking.append(flow)
        flow = client.publishing
        if flow is not None and flow not in self.waking:
            self.waking.append(flow)
        if client.state == CLOSED and client.sock is not None:
            self._drop(client)

    def _open_some(self, now: int) -> None:
        left = self.opens_per_turn
        while self.waiting and self.opening < self.opening_max and now >= self.next_connect_at and left > 0:
            left -= 1
            client = self.waiting.popleft()
            self.opening += 1
            try:
                sock = self.connector()
            except OSError as error:
                client.fail(error)
                self._drop(client)
                continue
            self.clients[sock.fileno()] = client
            client.start(sock, self.epoll, now)
            if client.state == CLOSED:
                self._drop(client)
            if self.connect_interval_ns:
                self.next_connect_at = max(self.next_connect_at, now - NANOSECONDS // 10) + self.connect_interval_ns

    def _proceed(self, client: Client, now: int) -> None:
        was_connected = client.inbox.connack is not None
        if client.proceed():
            self.opening -= 1
            self.opened += 1
            if client.failure:
                self.first_failure = self.first_failure or client.failure
            if self.on_ready is not None:
                self.on_ready(client)
        if was_connected and client.started_at:
            self.connect_latencies.record(now - client.started_at, 1)
            client.started_at = 0

    def _drop(self, client: Client) -> None:
        """The connection ended without our doing."""
        self.first_failure = self.first_failure or client.failure
        if not client.was_ready:
            self.failed += 1
            self.opening -= 1
        else:
            self.dropped += 1
        self.forget(client)
        if self.on_dropped is not None:
            self.on_dropped(client)

    def forget(self, client: Client) -> None:
        """Close a client's socket."""
        client.state = CLOSED
        if client.sock is not None:
            self.clients.pop(client.sock.fileno(), None)
            client.sock.close()  # closing takes it out of the epoll set
            client.sock = None

    def _make_due(self, now: int) -> None:
        while self.pace_next <= now:
            client = self.paced[self.pace_cursor]
            self.pace_cursor = (self.pace_cursor + 1) % len(self.paced)
            client.allow(self.pace_count, now)
            flow = client.publishing
            if flow is not None:
                flow.step(now)
            self.pace_next += self.pace_ns

    def _ping_some(self, now: int) -> None:
        if not self.ping_queue:
            self.ping_queue = list(self.clients.values())
        size = -(-len(self.clients) // PING_SLICES)
        for client in self.ping_queue[:size]:
            if client.state == READY:
                client.write(PINGREQ)
        del self.ping_queue[:size]
        self.ping_next_at = now + self.ping_interval_ns

    def close(self) -> None:
        for client in list(self.clients.values()):
            self.forget(client)
        self.epoll.close()

"""A publisher that is faster than its subscriber is slowed down: nothing is lost, and nothing piles up."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

import pytest

from tests.faults.watching import MIB, Watched, wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.raw import Client
from tests.harness.wire import PINGREQ, Kind, Properties, Property

PAYLOAD = 1_000
ROUNDS = 5  # in each of them the publisher fills everything until its socket is blocked
ROUND = 400  # messages that the subscriber takes then: less than what waits for it
FINISH_SECONDS = 60.0
BLOCKED_SECONDS = 0.2  # a socket that takes nothing for as long counts as blocked
USER_PROPERTY: Properties = [(Property.USER_PROPERTY, ("taken", "one by one"))]


class Flood:
    """Sends numbered messages as fast as the socket takes them, without ever waiting."""

    def __init__(self, publisher: Client, qos: int, props: Properties) -> None:
        self.socket = publisher.stream.socket
        self.socket.setblocking(False)
        self.qos = qos
        self.props = props
        self.number = 0
        self.rest = b""  # of what the socket has not taken yet

    def push(self) -> None:
        """Send until the socket is full."""
        with contextlib.suppress(BlockingIOError):
            while True:
                if not self.rest:
                    self.rest = b"".join(self._next() for _ in range(100))
                self.rest = self.rest[self.socket.send(self.rest) :]

    def finish(self) -> None:
        """Send the rest, while somebody else takes what is in the way."""
        self.socket.settimeout(FINISH_SECONDS)
        self.socket.sendall(self.rest)

    def _next(self) -> bytes:
        payload = self.number.to_bytes(4, "big") + bytes(PAYLOAD)
        packet_id = self.number % 60_000 + 1 if self.qos else None
        self.number += 1
        return wire.publish("t", payload, qos=self.qos, packet_id=packet_id, props=self.props)


@pytest.mark.parametrize("props", [(), USER_PROPERTY], ids=["runs", "one by one"])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_slow_subscriber_slows_its_publisher_and_loses_nothing(
    make_node: NodeMaker, client: ClientMaker, qos: int, props: Properties
) -> None:
    node = make_node('[edge]\npatience = "30s"')  # a loaded machine may leave the subscriber waiting
    subscriber, publisher = client(to=node), client(to=node)
    elsewhere, listener = client(to=node), client(to=node)
    subscriber.subscribe("t", qos=qos)
    listener.subscribe("other")
    # a window that the kernel does not widen: the publisher's own buffers fill soon
    publisher.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 << 10)
    flood = Flood(publisher, qos, props)
    with Watched(node) as watched:
        before = watched.rss()
        taken = 0
        for _ in range(ROUNDS):
            while select.select([], [flood.socket], [], BLOCKED_SECONDS)[1]:
                flood.push()
                discard_acknowledgements(publisher)
            taken = take(subscriber, taken, ROUND)
            elsewhere.publish("other", b"unaffected")  # to another topic, in the time of one exchange
            assert listener.take().payload == b"unaffected"
        assert watched.counter("publishers_paused") > 0
        assert watched.rss() - before < 16 * MIB  # an outlet, a queue, and what the allocator keeps
        finishing = threading.Thread(target=flood.finish)
        finishing.start()
        take(subscriber, taken, flood.number - taken)
        finishing.join()
        for name in ("dropped_output_full", "dropped_queue_full", "subscribers_lagging"):
            assert watched.counter(name) == 0, name


def take(subscriber: Client, first: int, count: int) -> int:
    """The next messages, without a gap; gives the number of the one after them."""
    for number in range(first, first + count):
        assert int.from_bytes(subscriber.take().payload[:4], "big") == number
    return first + count


def discard_acknowledgements(publisher: Client) -> None:
    with contextlib.suppress(BlockingIOError):
        while publisher.stream.socket.recv(65_536):
            pass


@pytest.mark.parametrize(
    "block",
    [
        PINGREQ * 10_000,
        b"".join(wire.publish("nobody", qos=1, packet_id=number) for number in range(1, 5_001)),
        b"".join(wire.publish("nobody", qos=1, packet_id=n, props=USER_PROPERTY) for n in range(1, 5_001)),
        b"".join(wire.subscribe(number, [("a/b", 0)]) for number in range(1, 2_001)),
    ],
    ids=["PINGREQ", "PUBLISH", "PUBLISH one by one", "SUBSCRIBE"],
)
def test_a_client_that_does_not_read_its_answers_is_not_read_from(
    make_node: NodeMaker, client: ClientMaker, block: bytes
) -> None:
    node = make_node()
    flooding = client(to=node)
    sending = flooding.stream.socket
    sending.setblocking(False)
    with Watched(node) as watched:
        before = watched.rss()
        sent = 0
        while select.select([], [sending], [], 1.0)[1]:
            with contextlib.suppress(BlockingIOError):
                sent += sending.send(block[sent % len(block) :])  # on from where the socket stopped
            assert sent < 256 * MIB, "the node reads on without end"
        assert watched.rss() - before < 32 * MIB  # what was read in one turn, as objects, and what the allocator keeps
        assert client(to=node).sync()  # others go on
        flooding.drop()
        wait_until(lambda: watched.gauge("transports") == 1, "the flooding one is gone")


def test_answers_that_are_read_again_let_the_client_go_on(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node()
    pinging = client(to=node)
    sending = pinging.stream.socket
    sending.setblocking(False)
    count = 0
    while select.select([], [sending], [], 0.5)[1]:
        with contextlib.suppress(BlockingIOError):
            count += sending.send(PINGREQ * 1_000)
    if count % 2:  # half a PINGREQ
        sending.setblocking(True)
        count += sending.send(PINGREQ[1:])
    answers = 0
    sending.setblocking(True)
    while answers < count:
        data = pinging.stream.receive(5.0)
        assert data == b"\xd0\x00" * (len(data) // 2) + b"\xd0" * (len(data) % 2) or data[:1] == b"\x00"
        answers += len(data)
    assert answers == count
    pinging.sync()


def test_a_flooding_client_ends_by_its_keep_alive(make_node: NodeMaker, client: ClientMaker) -> None:
    """It does not read, so it is not read from; if that lasts, it is as good as gone."""
    node = make_node()
    flooding = client(to=node, keep_alive=1)
    sending = flooding.stream.socket
    sending.settimeout(10.0)
    with Watched(node) as watched, contextlib.suppress(ConnectionError):
        while not watched.counter("keep_alive_timeouts"):
            sending.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                sending.sendall(PINGREQ * 100_000)
        wait_until(lambda: watched.gauge("transports") == 0, "the flooding one was cut off")


def test_one_burst_beyond_the_queue_is_not_lost(make_node: NodeMaker, client: ClientMaker) -> None:
    """A publisher may have a whole Receive Maximum under way; a subscriber that takes one at a time gets all of it."""
    node = make_node()
    subscriber = client(to=node, props=[(Property.RECEIVE_MAXIMUM, 1)])
    subscriber.subscribe("t", qos=1)
    publisher = client(to=node)
    count = publisher.connack.number(Property.RECEIVE_MAXIMUM, 65_535)
    assert count > 1_000  # session.queue_count_max
    publisher.send(*(wire.publish("t", n.to_bytes(4, "big"), qos=1, packet_id=n) for n in range(1, count + 1)))
    for number in range(1, count + 1):
        assert int.from_bytes(subscriber.take().payload, "big") == number
    for number in range(1, count + 1):
        assert publisher.expect(Kind.PUBACK).packet_id == number

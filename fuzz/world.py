"""Runs a program against a broker in memory and checks after each step what must hold whatever a peer sends.

When the program begins, the first place has a client in the middle of its life: a session with subscriptions and a
will, messages in flight both ways in every state. The second place has a client that publishes to it, the third and
fourth are connections that have sent nothing yet; one more session is away with messages waiting. There are retained
messages.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any

from tests.broker.memory_journal import MemoryJournal
from tests.harness import wire
from tests.harness.wire import Property

from brookmq.broker.channel_state import CONNECTED
from brookmq.store.memory_table import MemoryTable
from fuzz import configuration as options
from fuzz.checks import check, check_codec, check_end
from fuzz.peer import Peer, require
from fuzz.program import PLACES, SAME_TURN, Kind, Operation, framed, parse, repeated

START = 1_800_000_000.0  # unix seconds
ROUNDS_MAX = 10_000  # of the loop in one step: more is a loop without end
PATIENCE_STEPS_MAX = 4 * PLACES  # each client may have to be waited for, once to begin with and once to the end
MAIN, OTHER = "client-1", "other"  # the first is the client identifier of the catalogue's packets
PINGREQ = b"\xc0\x00"


class World:
    def __init__(self, configuration: bytes) -> None:
        self.monotonic = 1_000.0
        self.soon: deque[Callable[[], None]] = deque()
        self.waiting: deque[tuple[Any, Callable[[Any], None]]] = deque()
        self.broker = options.broker(configuration, self.soon.append, self.wait, lambda: self.now)
        self.mount = "mnt/${client_id}/" if configuration[1] & options.MOUNTED else ""
        self.peers: list[Peer] = []  # all that were ever opened and are not lost
        self.broker.tick(self.now, self.monotonic)
        self._open_store()
        self.places = [self.open() for _ in range(PLACES)]
        self._set_up(configuration)

    def _open_store(self) -> None:
        """One in memory that answers in the next turn."""
        journal = MemoryJournal(self.soon.append, lambda: self.monotonic)
        journal.on_stored = self.broker.journaling.stored
        tables = [MemoryTable(self.soon.append, lambda: self.monotonic) for _ in range(2)]
        self.broker.attach(journal, *tables, self.now)
        self.settle()
        self.broker.tick(self.now, self.monotonic)

    @property
    def now(self) -> float:
        return START + self.monotonic

    # -- what happens

    def open(self) -> Peer:
        peer = Peer(self, self.mount)
        self.peers = [known for known in self.peers if not known.lost]
        self.peers.append(peer)
        return peer

    def step(self, operation: Operation) -> None:
        place = operation.place % PLACES
        peer, data = self.places[place], operation.data
        kind = operation.kind
        if kind == Kind.BYTES:
            peer.arrive(data)
        elif kind == Kind.PIECES:
            size = max(1, data[0]) if data else 1
            for at in range(1, len(data), size):
                peer.arrive(data[at : at + size])
        elif kind == Kind.FRAME:
            peer.arrive(framed(data))
            if data:
                check_codec(data, peer.channel.version or 5)
        elif kind == Kind.REPEAT:
            peer.arrive(repeated(data))
        elif kind == Kind.OPEN:
            peer.lose()
            self.places[place] = self.open()
        elif kind == Kind.DROP:
            peer.lose()
        elif kind == Kind.TIME:
            self.pass_time(int.from_bytes(data[:2], "big") / 10)
        elif kind == Kind.BLOCK:
            peer.stall()
        elif kind == Kind.UNBLOCK:
            peer.read_on()
        elif kind == Kind.ACKNOWLEDGE:
            peer.acknowledge(data[0] if data else 1)
        elif kind == Kind.ANSWER:
            self.answer()
        elif not peer.lost:
            peer.channel.end(data[0] | 0x80 if data and data[0] | 0x80 in (0x8B, 0x98, 0x9C, 0x9D) else 0x98)
        if not operation.place & SAME_TURN:
            self.settle()

    def settle(self) -> None:
        """Turns of the loop until nothing is left to do."""
        for _ in range(ROUNDS_MAX):
            if not self.soon:
                return
            self.soon.popleft()()
        raise AssertionError("the loop never comes to rest")

    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.broker.tick(self.now, self.monotonic)
        for peer in [*self.peers]:
            peer.look_at_time(self.monotonic)
        self.answer()

    def wait(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        self.waiting.append((awaitable, done))

    def answer(self) -> None:
        """Everything that waits for a plugin now is answered; what that leads to may wait again."""
        for _ in range(len(self.waiting)):
            awaitable, done = self.waiting.popleft()
            try:
                awaitable.send(None)
            except StopIteration as stop:
                done(stop.value)

    def rest(self) -> None:
        """Peers read and plugins answer until nothing moves any more."""
        for _ in range(ROUNDS_MAX):
            self.settle()
            if not self.waiting:
                return
            self.answer()
        raise AssertionError("plugins are asked without end")

    def finish(self) -> None:
        """Everybody reads again: then nobody is stuck, and in the end nothing is left behind."""
        for peer in self.peers:
            peer.read_on()
        self.rest()
        for _ in range(PATIENCE_STEPS_MAX):  # who waits for another that does not acknowledge waits no longer than this
            if not any(peer.channel.suspended for peer in self.peers):
                break
            self.pass_time(self.broker.settings.patience)
            self.rest()
        for peer in [*self.peers]:
            channel = peer.channel
            require(not channel.suspended or channel.state != CONNECTED, "stuck", peer.last)
            require(not peer.inbox, "bytes that nobody reads")
            if channel.state == CONNECTED and channel.partial is None:
                peer.arrive(PINGREQ)
                self.rest()
                require(peer.last is not None and peer.last.kind == wire.Kind.PINGRESP, "no PINGRESP", peer.last)
        for peer in [*self.peers]:
            peer.lose()
        self.rest()
        for _ in range(3):
            self.pass_time(self.broker.settings.expiry_max + 1)
            self.rest()
        check_end(self)

    # -- how it begins

    def _set_up(self, configuration: bytes) -> None:
        main, other, away = self.places[0], self.places[1], self.open()
        narrow = bool(configuration[1] & options.NARROW)
        for peer, data in (
            *((main, part) for part in main_packets(configuration[2], narrow)),
            *((other, part) for part in other_packets(narrow)),
            *((away, part) for part in AWAY),
        ):
            peer.arrive(data)
            self.rest()
        away.lose()
        other.arrive(wire.publish("away/1", b"waits", version=4, qos=1, packet_id=90))
        other.arrive(traffic(narrow))
        self.rest()
        if main.due:  # one of the QoS 2 messages is between PUBREC and PUBCOMP
            main.due.rotate(1)
            main.acknowledge(1)
        self.rest()
        if configuration[1] & options.REDIRECTS:
            self.broker.settings.server_reference = "other.example:1883"
            self.broker.accepting = False


@lru_cache(maxsize=64)
def main_packets(third: int, narrow: bool) -> tuple[bytes, ...]:
    version = options.VERSIONS[third & 3]
    props: list[tuple[int, wire.Value]] = []
    if not third & options.TRANSIENT:
        props.append((Property.SESSION_EXPIRY, 300))
    if third & options.SMALL_WINDOW:
        props.append((Property.RECEIVE_MAXIMUM, 3))
    if third & options.SMALL_PACKETS:
        props.append((Property.MAXIMUM_PACKET_SIZE, 24))
    if third & options.ALIASES:
        props.append((Property.TOPIC_ALIAS_MAXIMUM, 2))
    if third & options.NO_PROBLEM_INFORMATION:
        props.append((Property.REQUEST_PROBLEM_INFORMATION, 0))
    answers = []
    if third & options.METHOD and version == 5:
        props.append((Property.AUTH_METHOD, options.METHOD_NAME))
        answers.append(wire.auth(0x18, [(Property.AUTH_METHOD, options.METHOD_NAME), (Property.AUTH_DATA, b"yes")]))
    qos = 1 if narrow else 2
    will = wire.Will("f/will", b"gone", qos=qos, retain=not narrow, properties=[(Property.WILL_DELAY, 2)])
    filters = [("f/exact", qos), ("$share/g/s/a" if not narrow else "s/a", 1), ("$exclusive/f/own", 1), ("a/b", 1)]
    if not narrow:
        filters += [("f/#", 2), ("w/+", 0)]
    clean = bool(third & options.TRANSIENT)
    packets = [wire.connect(MAIN, version=version, clean=clean, keep_alive=30, will=will, username="u", props=props)]
    packets += answers
    packets.append(wire.subscribe(1, filters, version=version))
    if version == 5 and not narrow:
        identified = [("f/+", wire.options(1, no_local=True, retain_as_published=True, retain_handling=1))]
        packets.append(wire.subscribe(2, identified, props=[(Property.SUBSCRIPTION_ID, 7)]))
    if not narrow:
        packets.append(wire.publish("f/in", b"open", version=version, qos=2, packet_id=10))
    return tuple(packets)


@lru_cache(maxsize=2)
def other_packets(narrow: bool) -> tuple[bytes, ...]:
    subscriptions = [("a/b", 1), ("w", 0)] if narrow else [("#", 1), ("$share/g/s/a", 2)]
    return (
        wire.connect(OTHER, version=4, clean=True),
        wire.subscribe(1, subscriptions, version=4),
        b"" if narrow else wire.publish("f/kept", b"kept", version=4, retain=True),
        b"" if narrow else wire.publish("r/kept", b"kept", version=4, retain=True),
    )


AWAY = (
    wire.connect("away", version=3, clean=False),
    wire.subscribe(1, [("away/1", 1), ("f/exact", 1)], version=3),
)


@lru_cache(maxsize=2)
def traffic(narrow: bool) -> bytes:
    """Messages for the main client at each QoS: some fit its window, some wait."""
    qos = 1 if narrow else 2
    packets = [wire.publish("f/exact", b"one", version=4, qos=1, packet_id=number) for number in (1, 2)]
    packets += [wire.publish("f/exact", b"two", version=4, qos=qos, packet_id=number) for number in (3, 4, 5)]
    packets += [wire.publish("s/a", b"shared", version=4, qos=1, packet_id=6), wire.publish("f/x", b"zero", version=4)]
    packets += [wire.acknowledge(wire.Kind.PUBREL, number) for number in (3, 4, 5)] if qos == 2 else []
    return b"".join(packets)


def run(data: bytes) -> World:
    """Run a program to its end; raises where the broker does something that it must not do."""
    log = logging.getLogger("brookmq")
    level = log.level
    log.setLevel(logging.CRITICAL)  # failing plugins and refused wills are normal here
    try:
        program = parse(data)
        world = World(program.configuration)
        check(world)
        for operation in program.operations:
            world.step(operation)
            check(world)
        world.finish()
    finally:
        log.setLevel(level)
    return world

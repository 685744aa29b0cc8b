"""An outlet told stories: a peer that reads, stops and reads on; publishers that wait; time that passes.

What holds at every step is checked after every step, above all that bytes come out in their order and complete, and
that whoever waits is called exactly once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from brookmq.base.counters import Counters
from brookmq.broker.outlet import LAGGING, OPEN, PACE_MIN, PRESSED, Outlet, Turn

LIMIT = 1000
PATIENCE = 1.0


class Socket:
    """A transport with a write limit of 0: when the peer does not read, it keeps one write and asks for no more."""

    outlet: Outlet

    def __init__(self) -> None:
        self.read = bytearray()
        self.kept = bytearray()
        self.stalled = False

    def write(self, data: bytes) -> None:
        assert data
        if self.stalled:
            self.kept += data
            self.outlet.block()
        else:
            self.read += data

    def get_write_buffer_size(self) -> int:
        return len(self.kept)

    def read_on(self) -> None:
        self.stalled = False
        self.read += self.kept
        self.kept.clear()
        if self.outlet.blocked:
            self.outlet.unblock()


class Stage:
    """An outlet with its turn and its socket, and a clock that stands still."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.counters = Counters()
        self.turn = Turn(self.soon.append, self.counters)
        self.socket = Socket()
        self.outlet = Outlet(self.turn, self.socket, LIMIT, patience)
        self.socket.outlet = self.outlet
        self.now = 100.0
        self.tick(0.0)

    def settle(self) -> None:
        while self.soon:
            self.soon.popleft()()

    def tick(self, seconds: float) -> None:
        self.now += seconds
        self.turn.now = self.now
        for outlet in [*self.turn.pressed]:
            outlet.tick(self.now)
        self.settle()

    def fill(self, size: int) -> None:
        self.socket.stalled = True
        self.outlet.put(b"first")
        self.settle()  # the transport takes it and says that it has enough
        self.outlet.put(bytes(size))
        self.settle()


class OutletMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.outlet = self.stage.outlet
        self.put_bytes = bytearray()
        self.waiting = 0
        self.called = 0
        self.drained = 0
        self.outlet.when_drained = self.count_drained

    def count_drained(self) -> None:
        assert not self.outlet.blocked
        assert self.outlet.state == OPEN
        self.drained += 1

    def count_called(self) -> None:
        self.called += 1

    @rule(size=st.sampled_from([1, 4, 100, 400, 501, 1001]), times=st.integers(1, 5))
    def put(self, size: int, times: int) -> None:
        for _ in range(times):
            data = (len(self.put_bytes) % 251).to_bytes(1, "big") * size
            self.put_bytes += data
            self.outlet.put(data)

    @rule(size=st.sampled_from([1, 300, 900]))
    def send_what_may_be_lost(self, size: int) -> None:
        """As a session does with QoS 0."""
        if not self.outlet.overflows():
            self.put_bytes += bytes(size)
            self.outlet.put(bytes(size))
            assert self.outlet.size <= LIMIT + size

    @rule()
    def stall(self) -> None:
        self.stage.socket.stalled = True

    @rule()
    def read_on(self) -> None:
        self.stage.socket.read_on()
        assert not self.outlet.blocked
        assert self.outlet.size <= self.outlet.high

    @rule()
    def settle(self) -> None:
        self.stage.settle()
        assert not self.outlet.dirty
        assert self.outlet.blocked or self.outlet.size == 0

    @rule(seconds=st.sampled_from([0.0, 0.1, 0.4, 2.0, 60.0]))
    def tick(self, seconds: float) -> None:
        self.stage.tick(seconds)

    @rule()
    def press(self) -> None:
        """The session's queue is half full."""
        self.outlet.press()
        assert self.outlet.state != OPEN

    @rule()
    def relieve(self) -> None:
        """The session's queue is empty."""
        self.outlet.relieve()
        assert self.outlet.state == OPEN or self.outlet.blocked or self.outlet.size > self.outlet.high

    @precondition(lambda self: self.outlet.state == PRESSED)
    @rule()
    def wait(self) -> None:
        self.waiting += 1
        self.outlet.wait(self.count_called)

    @invariant()
    def bytes_are_in_order(self) -> None:
        outlet, socket = self.outlet, self.stage.socket
        kept = (outlet.chunk or b"") + b"".join(outlet.more or ())
        assert outlet.size == len(kept)
        assert bytes(socket.read) + bytes(socket.kept) + kept == bytes(self.put_bytes)
        assert outlet.bytes_sent == len(socket.read) + len(socket.kept) == self.stage.counters.bytes_sent

    @invariant()
    def states_hold(self) -> None:
        outlet, turn = self.outlet, self.stage.turn
        assert turn.pressed == ([outlet] if outlet.state == PRESSED else [])
        assert turn.dirty == ([outlet] if outlet.dirty else [])
        assert outlet.dirty or outlet.blocked or outlet.size == 0
        assert outlet.size <= outlet.high or outlet.state != OPEN
        assert outlet.patience <= outlet.patience_max
        if outlet.state != PRESSED:
            assert outlet.waiters is None
        if not self.stage.soon:
            assert self.waiting - self.called == len(outlet.waiters or ())

    def teardown(self) -> None:
        """The connection is gone: nobody waits for it, nothing more is taken."""
        self.outlet.close()
        self.stage.settle()
        assert self.called == self.waiting
        self.outlet.put(b"too late")
        self.stage.settle()
        assert self.outlet.size == 0
        assert not self.stage.turn.pressed


TestOutlet = OutletMachine.TestCase
TestOutlet.settings = settings(max_examples=100, stateful_step_count=40)


def test_a_peer_that_does_not_read_is_waited_for_once() -> None:
    stage = Stage()
    stage.fill(501)
    assert stage.outlet.state == PRESSED
    assert not stage.outlet.overflows()
    stage.tick(0.1)
    stage.tick(PATIENCE - 0.11)
    assert stage.outlet.state == PRESSED
    stage.tick(0.02)
    assert stage.outlet.state == LAGGING
    assert stage.outlet.overflows()
    assert stage.counters.subscribers_lagging == 1
    stage.socket.read_on()
    assert stage.outlet.state == OPEN
    stage.tick(3.0)
    stage.fill(501)
    stage.tick(0.0)
    assert stage.outlet.state == PRESSED
    stage.tick(0.1)  # of a second, a twentieth has come back
    assert stage.outlet.state == LAGGING


def test_a_peer_that_takes_enough_is_waited_for_as_long_as_it_needs() -> None:
    stage = Stage()
    stage.fill(501)
    for _ in range(100):
        stage.tick(0.5)
        stage.outlet.credit += PACE_MIN // 2
        assert stage.outlet.state == PRESSED
    for _ in range(4):
        stage.tick(0.5)
    assert stage.outlet.state == LAGGING


def test_the_time_counts_from_when_it_fell_behind() -> None:
    """Those that stopped reading long ago and are full only now have been waited for already."""
    stage = Stage()
    stage.socket.stalled = True
    stage.outlet.put(b"first")
    stage.settle()
    stage.tick(PATIENCE + 0.1)
    assert stage.outlet.state == OPEN
    stage.outlet.put(bytes(501))
    assert stage.outlet.state == LAGGING


def test_many_small_answers_become_one_piece() -> None:
    stage = Stage()
    stage.fill(4)
    for _ in range(300):
        stage.outlet.put(b"\xd0\0")
    stage.settle()
    assert stage.outlet.more is None
    assert stage.outlet.size == 604
    stage.socket.read_on()
    assert bytes(stage.socket.read[-600:]) == b"\xd0\0" * 300


def test_without_patience_nobody_waits() -> None:
    stage = Stage(patience=0.0)
    stage.fill(501)
    assert stage.outlet.state == LAGGING
    assert stage.outlet.overflows()


@pytest.mark.parametrize("state", [PRESSED, LAGGING])
def test_a_lost_connection_holds_nobody_back(state: int) -> None:
    stage = Stage()
    stage.fill(501)
    called: list[int] = []
    stage.outlet.wait(lambda: called.append(1))
    if state == LAGGING:
        stage.tick(0.1)
        stage.tick(2 * PATIENCE)
    assert stage.outlet.state == state
    stage.outlet.close()
    stage.settle()
    assert called == [1]


def test_the_last_bytes_go_to_the_transport_whatever_it_has_already() -> None:
    stage = Stage()
    stage.fill(501)
    stage.outlet.finish()
    assert len(stage.socket.kept) == 506
    stage.outlet.put(b"too late")
    stage.settle()
    assert len(stage.socket.kept) == 506

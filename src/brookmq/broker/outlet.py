"""What goes to one connection: collected during a turn of the event loop, written once at its end, bounded by bytes.

A subscriber that reads too slowly first slows its publishers down, then loses QoS 0 messages; it never costs more than
``limit`` bytes here. How long others wait for it is its *patience*: time uses it up, what the subscriber takes earns it
back. So one that takes at least ``PACE_MIN`` is waited for as long as it needs, and one that does not read is waited
for once; used up, patience comes back slowly. The time counts from when it fell behind, not from when it is full: a
thousand that stopped reading are not waited for one after the other.

    open ──(size > high)──► pressed ──(drained)──► open
                               │ patience used up
                               ▼
                            lagging ──(drained)──► open

Messages of QoS 1 and 2 are never dropped here: a session keeps what does not fit in its queue. Answers
(acknowledgements, PINGRESP) are always taken; a client that does not read them is not read from beyond the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from brookmq.base.counters import Counters

OPEN = 0
PRESSED = 1
LAGGING = 2

PATIENCE_REFILL = 1 / 60  # of the whole budget per second: used up, it is back after a minute
PACE_MIN = 64 << 10  # bytes per second: a subscriber that takes as much is alive, however slow its publishers find it
MESSAGE_WORTH = 1 << 10  # bytes that a message out of a session's queue counts for: many small ones are a pace, too
PIECE_BYTES_SMALL = 64  # pieces smaller than this cost more for being objects than for their bytes
PIECES_SMALL_MAX = 256


class Transport(Protocol):
    """What an outlet needs of a transport; asyncio's and the WebSocket stage both are one."""

    def write(self, data: bytes, /) -> object: ...

    def get_write_buffer_size(self) -> int: ...


class Turn:
    """One turn of the event loop: the outlets that have something to write at its end."""

    __slots__ = ("call_soon", "counters", "dirty", "now", "pressed", "scheduled", "tables_full")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object], counters: Counters) -> None:
        self.call_soon = call_soon
        self.counters = counters
        self.dirty: list[Outlet] = []
        self.pressed: list[Outlet] = []  # outlets in PRESSED: as long as it is empty nobody looks for full receivers
        self.scheduled = False
        self.tables_full = False  # some table has as many changes waiting as it may have; as of the last tick
        self.now = 0.0  # monotonic seconds of the broker's last tick: as exact as patience has to be

    def add(self, outlet: Outlet) -> None:
        self.dirty.append(outlet)
        if not self.scheduled:
            self.scheduled = True
            self.call_soon(self.flush)

    def flush(self) -> None:
        self.scheduled = False
        dirty = self.dirty
        self.dirty = []
        for outlet in dirty:
            outlet.flush()


class Outlet:
    """Invariants: ``size`` is the number of bytes in ``chunk`` and ``more``; ``dirty`` says that the turn will flush
    it; ``blocked`` says that the transport still has bytes of ours, so that we add none."""

    __slots__ = (
        "blocked",
        "bytes_sent",
        "chunk",
        "closed",
        "credit",
        "dirty",
        "high",
        "limit",
        "more",
        "patience",
        "patience_at",
        "patience_max",
        "size",
        "state",
        "taken",
        "transport",
        "turn",
        "waiters",
        "when_drained",
    )

    def __init__(self, turn: Turn, transport: Transport, limit: int, patience_max: float) -> None:
        self.turn = turn
        self.transport = transport
        self.limit = limit
        self.high = limit // 2
        self.size = 0
        self.chunk: bytes | None = None
        self.more: list[bytes] | None = None
        self.bytes_sent = 0
        self.dirty = False
        self.blocked = False
        self.closed = False
        self.state = OPEN
        self.patience_max = patience_max
        self.patience = patience_max
        self.patience_at = turn.now  # when patience was last reckoned
        self.credit = 0  # bytes that messages out of the session's queue counted for
        self.taken = 0  # what the peer had taken then, credit included
        self.waiters: list[Callable[[], None]] | None = None  # publishers that wait for this outlet
        self.when_drained: Callable[[], None] | None = None  # the session's own: it has more to send

    def put(self, data: bytes) -> None:
        """Send ``data``, at the latest at the end of this turn."""
        if self.closed:
            return
        if self.chunk is None:
            self.chunk = data
        elif self.more is None:
            self.more = [data]
        else:
            self.more.append(data)
        self.size += len(data)
        if not self.dirty:
            self.dirty = True
            self.turn.add(self)
        if self.size > self.high:
            self.overfull()

    def overfull(self) -> None:
        """More than half of the limit is here: write now, and when the socket takes no more, slow the publishers
        down."""
        if not self.blocked:
            self._write()
        if self.size > self.high:
            self.press()

    def press(self) -> None:
        """Slow the publishers down: this outlet, or the queue of its session, is half full."""
        if self.state != OPEN:
            return
        self._reckon(self.turn.now)
        if self.patience <= 0:
            self._lag()
        else:
            self.state = PRESSED
            self.turn.pressed.append(self)

    def relieve(self) -> None:
        """The queue of its session is empty: nothing holds publishers back any more, unless the outlet itself is
        full."""
        if self.state != OPEN and not self.blocked and self.size <= self.high:
            self._open()

    def overflows(self) -> bool:
        """Nothing that may be lost is taken now. While publishers can still be slowed down, up to the whole limit
        is."""
        return self.size > self.high and (self.state == LAGGING or self.size > self.limit)

    def flush(self) -> None:
        self.dirty = False
        if not self.blocked:
            if self.size:
                self._write()
        elif self.more is not None:
            # many tiny answers to a peer that does not read: as one piece they cost what ``size`` says
            pieces = len(self.more)
            if pieces > PIECES_SMALL_MAX and pieces * PIECE_BYTES_SMALL > self.size:
                self._join()

    def _write(self) -> None:
        self._join()
        chunk = self.chunk
        if chunk is None:
            return
        self.chunk = None
        self.size = 0
        self.turn.counters.bytes_sent += len(chunk)
        self.bytes_sent += len(chunk)
        self.transport.write(chunk)

    def _join(self) -> None:
        """Make one piece of all."""
        if self.chunk is not None and self.more is not None:
            self.more.insert(0, self.chunk)
            self.chunk = b"".join(self.more)
            self.more = None

    def finish(self) -> None:
        """The connection is to be closed: give the transport everything, whatever it has already."""
        self.blocked = False
        self._write()
        self.closed = True

    def block(self) -> None:
        """The transport could not hand everything to the socket."""
        self.blocked = True
        if self.state == OPEN:
            self.fall_behind()

    def fall_behind(self) -> None:
        """From now on time uses up its patience: the socket takes no more, or the session begins a queue."""
        now = self.turn.now
        self.patience += (now - self.patience_at) * self.patience_max * PATIENCE_REFILL
        self.patience = min(self.patience_max, self.patience)
        self.patience_at = now
        self.taken = self.bytes_sent - self.transport.get_write_buffer_size() + self.credit

    def unblock(self) -> None:
        """The transport has handed everything to the socket."""
        self.blocked = False
        if self.size:
            self._write()
        if not self.blocked:
            self._drained()

    def _drained(self) -> None:
        if self.state != OPEN:
            self._open()
        if self.when_drained is not None:
            self.when_drained()

    def _open(self) -> None:
        if self.state == PRESSED:
            self.turn.pressed.remove(self)
        self.state = OPEN
        self.release()

    def tick(self, now: float) -> None:
        """Called by the broker from time to time while the outlet is PRESSED."""
        self._reckon(now)
        if self.patience <= 0:
            self.turn.pressed.remove(self)
            self._lag()

    def _reckon(self, now: float) -> None:
        """What is left of its patience: less by the time since the last reckoning, more by what the peer took in it."""
        taken = self.bytes_sent - self.transport.get_write_buffer_size() + self.credit
        left = self.patience + (taken - self.taken) / PACE_MIN - (now - self.patience_at)
        self.patience = max(0.0, min(self.patience_max, left))
        self.patience_at = now
        self.taken = taken

    def _lag(self) -> None:
        self.state = LAGGING
        self.turn.counters.subscribers_lagging += 1
        self.release()

    def wait(self, waiter: Callable[[], None]) -> None:
        """Call ``waiter`` once when this outlet no longer holds publishers back."""
        if self.waiters is None:
            self.waiters = [waiter]
        else:
            self.waiters.append(waiter)

    def release(self) -> None:
        waiters = self.waiters
        self.waiters = None
        if waiters is not None:
            for waiter in waiters:
                self.turn.call_soon(waiter)  # in a turn of its own: it may have much to do, and fill other outlets

    def close(self) -> None:
        """The connection is gone: nothing more is taken, nobody waits for it."""
        self.closed = True
        self.chunk = None
        self.more = None
        self.size = 0
        self.when_drained = None
        self._open()

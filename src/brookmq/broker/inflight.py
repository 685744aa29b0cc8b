"""The QoS state of one session: what is sent and not yet acknowledged, and which inbound QoS 2 packet ids are open.

Both are flat arrays indexed by packet id, made when first needed: an idle connection has neither. Packet ids travel in
runs of two bytes each, as they stand in the packets.

Outbound states of a packet id:  FREE → PUBACK_DUE → FREE                    (QoS 1)
                                 FREE → PUBREC_DUE → PUBCOMP_DUE → FREE      (QoS 2)
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

FREE = 0
PUBACK_DUE = 1
PUBREC_DUE = 2
PUBCOMP_DUE = 3

SIZE_FIRST = 64  # slots of a new window: more than most clients ever have in flight
SIZE_MAX = 65535  # packet ids are 1 to 65535 [MQTT-2.2.1-3]
NOWHERE = -1  # the position of a message that is not in the journal


class InFlight(NamedTuple):
    """One message that was sent and is not finished."""

    packet_id: int
    state: int
    position: int


class Window:
    """Packet ids of a session's outbound QoS 1 and 2 messages. ``limit`` is the smaller of the client's receive maximum
    and ``session.inflight_max``; ids are given in turn, so that a late acknowledgement meets a free slot, not another
    message. Invariant: ``count`` is the number of slots that are not FREE, and never above ``limit`` for new
    messages.

    For a kept session it also knows where in the journal each message is, so that it can be sent again, and in which
    order they went out (``place``)."""

    __slots__ = ("count", "cursor", "limit", "positions", "serial", "serials", "states")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self.cursor = 0
        self.states = bytearray(SIZE_FIRST)
        self.positions: array[int] | None = None  # by packet id - 1, like ``states``
        self.serials: array[int] | None = None
        self.serial = 0  # of the next message that is placed

    def room(self) -> int:
        return self.limit - self.count

    def take(self, count: int, state: int) -> bytes:
        """Packet ids for ``count`` messages; the caller has asked ``room`` before. [MQTT-2.2.1-3]"""
        states = self.states
        while (self.count + count) * 2 > len(states) and len(states) < SIZE_MAX:
            states.extend(bytes(min(len(states), SIZE_MAX - len(states))))
        size = len(states)
        at = self.cursor
        ids = bytearray(2 * count)
        for i in range(count):
            if at >= size:
                at = 0
            while states[at] != 0:
                at += 1
                if at >= size:
                    at = 0
            states[at] = state
            at += 1
            ids[2 * i] = at >> 8
            ids[2 * i + 1] = at & 0xFF
        self.cursor = at
        self.count += count
        return bytes(ids)

    def move(self, ids: bytes, expected: int, state: int) -> int:
        """An acknowledgement came for each id: from ``expected`` to ``state``. Returns how many were in
        ``expected``."""
        states = self.states
        size = len(states)
        moved = 0
        for i in range(0, len(ids), 2):
            at = (ids[i] << 8 | ids[i + 1]) - 1
            if 0 <= at < size and states[at] == expected:
                states[at] = state
                moved += 1
        if state == FREE:
            self.count -= moved
        return moved

    def state(self, packet_id: int) -> int:
        if 1 <= packet_id <= len(self.states):
            return self.states[packet_id - 1]
        return FREE

    def place(self, ids: bytes, position: int) -> None:
        """The messages of these ids stand one after the other in the journal, from ``position`` on (or nowhere)."""
        if self.positions is None or self.serials is None:
            self.positions = array("q")
            self.serials = array("q")
        missing = len(self.states) - len(self.positions)
        if missing:
            self.positions.frombytes(bytes(8 * missing))
            self.serials.frombytes(bytes(8 * missing))
        positions = self.positions
        serials = self.serials
        serial = self.serial
        step = 0 if position < 0 else 1
        for i in range(0, len(ids), 2):
            at = (ids[i] << 8 | ids[i + 1]) - 1
            positions[at] = position
            serials[at] = serial
            position += step
            serial += 1
        self.serial = serial

    def restore(self, entries: list[InFlight]) -> None:
        """What was in flight before: in the order in which it was sent."""
        for entry in entries:
            while entry.packet_id > len(self.states):
                self.states.extend(bytes(min(len(self.states), SIZE_MAX - len(self.states))))
            self.states[entry.packet_id - 1] = entry.state
            self.place(entry.packet_id.to_bytes(2, "big"), entry.position)
        self.count = len(entries)
        if entries:
            self.cursor = entries[len(entries) - 1].packet_id

    def in_flight(self) -> list[InFlight]:
        """All that is in flight, in the order in which it was sent."""
        states, positions, serials = self.states, self.positions, self.serials
        if self.count == 0 or positions is None or serials is None:
            return []
        used = [at for at in range(min(len(states), len(positions))) if states[at]]
        used.sort(key=serials.__getitem__)
        return [InFlight(at + 1, states[at], positions[at]) for at in used]

    def check_invariants(self) -> None:
        in_use = len(self.states) - self.states.count(0)
        if in_use != self.count:
            raise AssertionError(f"window counts {self.count} in flight, {in_use} slots are in use")


class OpenIds:
    """Inbound QoS 2 packet ids between PUBLISH and PUBREL, as a bitmap. [MQTT-4.3.3-10]"""

    __slots__ = ("bits", "count")

    def __init__(self) -> None:
        self.bits = bytearray(8192)
        self.count = 0

    def open(self, ids: bytes) -> int:
        """Open ids that are all new; when one of them is open already nothing is changed and the answer is 0."""
        bits = self.bits
        n = len(ids)
        i = 0
        while i < n:
            at = ids[i] << 8 | ids[i + 1]
            if bits[at >> 3] & (1 << (at & 7)):
                break
            bits[at >> 3] |= 1 << (at & 7)
            i += 2
        if i < n:  # a repeat (or the same id twice in one run): take back, the slow way goes one by one
            n = i
            i = 0
            while i < n:
                at = ids[i] << 8 | ids[i + 1]
                bits[at >> 3] &= 0xFF ^ (1 << (at & 7))
                i += 2
            return 0
        self.count += n // 2
        return n // 2

    def is_open(self, packet_id: int) -> bool:
        return bool(self.bits[packet_id >> 3] & (1 << (packet_id & 7)))

    def release(self, ids: bytes) -> int:
        """PUBREL came for each id: all of them are open, or nothing is changed and the answer is 0."""
        bits = self.bits
        n = len(ids)
        i = 0
        while i < n:
            at = ids[i] << 8 | ids[i + 1]
            if not bits[at >> 3] & (1 << (at & 7)):
                break
            bits[at >> 3] &= 0xFF ^ (1 << (at & 7))
            i += 2
        if i < n:  # one is not open (or stands twice in the run): take back, each gets its own answer
            n = i
            i = 0
            while i < n:
                at = ids[i] << 8 | ids[i + 1]
                bits[at >> 3] |= 1 << (at & 7)
                i += 2
            return 0
        self.count -= n // 2
        return n // 2

    def packet_ids(self) -> list[int]:
        """All open ids, for listings and for what a session must persist."""
        return [i for i in range(65536) if self.bits[i >> 3] & (1 << (i & 7))] if self.count else []

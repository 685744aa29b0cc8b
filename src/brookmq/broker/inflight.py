"""The QoS state of one session: what is sent and not yet acknowledged, and which inbound QoS 2 packet ids are open.

Both are flat arrays indexed by packet id, made when first needed: an idle connection has neither. Packet ids travel in
runs of two bytes each, as they stand in the packets.

Outbound states of a packet id:  FREE → PUBACK_DUE → FREE                    (QoS 1)
                                 FREE → PUBREC_DUE → PUBCOMP_DUE → FREE      (QoS 2)
"""

from __future__ import annotations

FREE = 0
PUBACK_DUE = 1
PUBREC_DUE = 2
PUBCOMP_DUE = 3

SIZE_FIRST = 64  # slots of a new window: more than most clients ever have in flight
SIZE_MAX = 65535  # packet ids are 1 to 65535 [MQTT-2.2.1-3]


class Window:
    """Packet ids of a session's outbound QoS 1 and 2 messages. ``limit`` is the smaller of the client's receive maximum
    and ``session.inflight_max``; ids are given in turn, so that a late acknowledgement meets a free slot, not another
    message. Invariant: ``count`` is the number of slots that are not FREE, and never above ``limit`` for new
    messages."""

    __slots__ = ("count", "cursor", "limit", "states")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self.cursor = 0
        self.states = bytearray(SIZE_FIRST)

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

"""When to look at which connection again: for keep alive, CONNECT in time, and peers that do not let go.

A wheel of quarter seconds. A connection has one place in it; when its time comes it is looked at, and if it was heard
meanwhile, put where its time will come next. So bytes that arrive cost nothing here, and neither do the idle. One that
has ended leaves its place at once: a keep alive may be 18 hours, and nothing of it shall stay for that long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brookmq.edge.connection import Connection

SLOTS_PER_SECOND = 4


class Watch:
    """Invariant: a connection stands in at most one slot, that of its ``slot``."""

    def __init__(self) -> None:
        self._slots: dict[int, set[Connection]] = {}
        self._done = 0  # all slots up to here have been looked at

    def look_again(self, connection: Connection, at: float) -> None:
        """Hand this connection out when ``at`` (monotonic seconds) has come, at most a quarter of a second later."""
        self.forget(connection)
        slot = max(int(at * SLOTS_PER_SECOND) + 1, self._done + 1)
        connection.slot = slot
        waiting = self._slots.get(slot)
        if waiting is None:
            self._slots[slot] = {connection}
        else:
            waiting.add(connection)

    def forget(self, connection: Connection) -> None:
        """Not to be looked at any more."""
        waiting = self._slots.get(connection.slot)
        if waiting is not None:
            waiting.discard(connection)
            if not waiting:
                del self._slots[connection.slot]

    def due(self, now: float) -> list[Connection]:
        last = int(now * SLOTS_PER_SECOND)
        if self._done == 0:
            self._done = min(self._slots, default=last + 1) - 1
        found: list[Connection] = []
        for slot in range(self._done + 1, last + 1):
            found.extend(self._slots.pop(slot, ()))
        self._done = max(self._done, last)
        return found

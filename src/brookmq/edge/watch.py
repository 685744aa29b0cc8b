"""When to look at which connection again: for keep alive, CONNECT in time, and peers that do not let go.

A wheel of quarter seconds. A connection has one place in it; when its time comes it is looked at, and if it was heard
meanwhile, put where its time will come next. So bytes that arrive cost nothing here, and neither do the idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brookmq.edge.connection import Connection

SLOTS_PER_SECOND = 4


class Watch:
    """Invariant: a connection that stands in several slots is handed out for the one it was put into last."""

    def __init__(self) -> None:
        self._slots: dict[int, list[Connection]] = {}
        self._done = 0  # all slots up to here have been looked at

    def look_again(self, connection: Connection, at: float) -> None:
        """Hand this connection out when ``at`` (monotonic seconds) has come, at most a quarter of a second later."""
        slot = max(int(at * SLOTS_PER_SECOND) + 1, self._done + 1)
        connection.slot = slot
        waiting = self._slots.get(slot)
        if waiting is None:
            self._slots[slot] = [connection]
        else:
            waiting.append(connection)

    def due(self, now: float) -> list[Connection]:
        last = int(now * SLOTS_PER_SECOND)
        if self._done == 0:
            self._done = min(self._slots, default=last + 1) - 1
        found: list[Connection] = []
        for slot in range(self._done + 1, last + 1):
            found.extend(connection for connection in self._slots.pop(slot, ()) if connection.slot == slot)
        self._done = max(self._done, last)
        return found

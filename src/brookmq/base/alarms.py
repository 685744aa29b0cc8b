"""Alarms: conditions that an operator has to know of, active until they are over, then kept in a history.

An alarm is known by its name (``hook_switched_off/stamp/publish``): raising it again while it is active changes nothing
but its details. Both lists are bounded, so that a flood of alarms is never a problem of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

ACTIVE_MAX = 1_000  # alarms active at a time; further ones are counted only
HISTORY_MAX = 1_000  # alarms that are over; the oldest are forgotten


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm. Times are unix seconds; ``deactivated_at`` is None while it is active."""

    name: str
    details: Mapping[str, object]
    message: str
    activated_at: float
    deactivated_at: float | None = None


class Alarms:
    """The alarms of one node."""

    def __init__(self, active_max: int = ACTIVE_MAX, history_max: int = HISTORY_MAX) -> None:
        self.active_max = active_max
        self.dropped = 0  # alarms that were not taken because too many were active
        self._active: dict[str, Alarm] = {}
        self._history: deque[Alarm] = deque(maxlen=history_max)

    def activate(self, name: str, details: Mapping[str, object], message: str, now: float) -> bool:
        """Raise an alarm; False when it is active already (it keeps its time and takes the new text) or is dropped."""
        known = self._active.get(name)
        if known is not None:
            self._active[name] = replace(known, details=dict(details), message=message)
            return False
        if len(self._active) >= self.active_max:
            self.dropped += 1
            return False
        self._active[name] = Alarm(name, dict(details), message, now)
        return True

    def deactivate(self, name: str, now: float) -> bool:
        """End an alarm and move it to the history; False when it is not active."""
        known = self._active.pop(name, None)
        if known is None:
            return False
        self._history.append(replace(known, deactivated_at=now))
        return True

    def is_active(self, name: str) -> bool:
        """Whether this alarm is active."""
        return name in self._active

    def active(self) -> list[Alarm]:
        """The active alarms, oldest first."""
        return list(self._active.values())

    def history(self) -> list[Alarm]:
        """The alarms that are over, the last one to end first."""
        return list(reversed(self._history))

    def clear_history(self) -> None:
        """Forget the alarms that are over."""
        self._history.clear()

"""How many connections a listener takes, and how fast.

Both limits belong to the listener of the node. Too many at once: the connection is accepted and closed, since a full
house does not get better by waiting. Too fast: accepting pauses and the kernel's backlog holds the callers, so that a
storm of reconnecting devices is spread out instead of being sent away to come back at once; a refusal would cost an
accept and, with TLS, invite the next attempt. Time comes in as a value.
"""

from __future__ import annotations

# Pausing for less would open and close the door more often than it is worth.
PAUSE_SECONDS_MIN = 0.05


class ConnectRate:
    """A token bucket that holds one second's worth. It may go into debt by what one turn of the loop has accepted."""

    __slots__ = ("_tokens", "_updated_at", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate  # connections per second, > 0
        self._tokens = self._capacity
        self._updated_at = now

    @property
    def _capacity(self) -> float:
        return max(1.0, self.rate)

    def take(self, now: float) -> float:
        """Count one accepted connection; returns for how many seconds to stop accepting (0.0: go on)."""
        elapsed = now - self._updated_at
        if elapsed > 0:
            self._tokens = min(self._capacity, self._tokens + elapsed * self.rate)
            self._updated_at = now
        self._tokens -= 1.0
        if self._tokens >= 1.0:
            return 0.0
        return max(PAUSE_SECONDS_MIN, (1.0 - self._tokens) / self.rate)


class Capacity:
    """How many connections the node's open files allow, over all listeners. ``in_use`` never exceeds ``maximum``."""

    __slots__ = ("in_use", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.in_use = 0

    @property
    def exhausted(self) -> bool:
        return self.in_use >= self.maximum

"""What a load is made of, apart from its shape: the target, the messages, the pace and the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brookmq.base.errors import OperationError
from brookmq.bench.transport import Target

WRITES_UNDER_WAY: Final = 4
"""A publisher's bound at full speed, in writes (QoS 0) or windows (QoS 1 and 2): the broker never waits for the tool,
and yet no queue of more than a few thousand messages builds up in it."""


class LoadError(OperationError):
    """The load could not be brought up: no broker there, connections refused, subscriptions denied."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options that all loads share."""

    target: Target
    version: int = 4
    qos: int = 0
    payload_bytes: int = 16
    rate_per_s: float = 0.0
    """Messages per second of all publishers together; 0: as fast as the broker takes them."""
    window: int = 20
    """Unacknowledged messages of one publisher at QoS 1 and 2."""
    packets_per_write: int = 0
    """0: one at QoS 0 and at a fixed rate; else all that the window has free."""
    outstanding: int = 0
    """Messages of one publisher that its receivers have not got yet; 0: ``WRITES_UNDER_WAY`` writes or windows."""
    duration_s: float = 5.0
    warm_up_s: float = 1.0
    count: int = 0
    """Messages of each publisher; 0: until the time is over. With a count there is no warm-up."""
    connect_rate_per_s: float = 0.0
    keep_alive_s: int = 300
    kept: bool = False
    """Subscribers (and idle clients) have sessions that outlive their connections; publishers never have."""
    user: str | None = None
    password: str | None = None
    prefix: str = "bench"
    broker_pids: tuple[int, ...] = ()

    @property
    def write_size(self) -> int:
        """Packets in one write."""
        if self.packets_per_write:
            return min(self.packets_per_write, self.window) if self.qos else self.packets_per_write
        return self.window if self.qos and not self.rate_per_s else 1

    @property
    def outstanding_max(self) -> int:
        """Messages under way for each publisher."""
        unit = self.window if self.qos else self.write_size
        return max(self.outstanding or WRITES_UNDER_WAY * unit, self.write_size)

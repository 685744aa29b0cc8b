"""The last minutes of the node's most watched figures, for the overview page.

One sample a second, whether somebody looks or not, so that a page opened after a peak still shows the peak. A sample is
encoded once and shared by all who watch; a watcher that is too slow misses samples, it never queues them.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from itertools import islice
from math import isfinite
from time import monotonic, time

from brookmq.ops.view import NodeView

SAMPLE_PERIOD_S = 1.0
SAMPLES_MAX = 300
"""Five minutes at one sample a second."""

WATCHERS_MAX = 64
"""Open overview pages; each costs a connection and a write a second."""

DROPPED = "dropped_"
"""What the counters of dropped messages begin with, one for each reason."""


class History:
    """Samples of a node, and the wait for the next one."""

    def __init__(self, view: NodeView) -> None:
        self._view = view
        self._samples: deque[str] = deque(maxlen=SAMPLES_MAX)
        self._next_sample = asyncio.Event()
        self._totals = _totals(view.counters())
        self._counted_at = monotonic()
        self._sampling: asyncio.Task[None] | None = None
        self._stopped = False
        self.watchers = 0

    def start(self) -> None:
        self._sampling = asyncio.get_running_loop().create_task(self._sample_for_ever(), name="ops-history")

    async def stop(self) -> None:
        """End sampling and every watcher."""
        self._stopped = True
        self._next_sample.set()
        if self._sampling is not None:
            self._sampling.cancel()
            with suppress(asyncio.CancelledError):
                await self._sampling

    def encoded(self, last: int = SAMPLES_MAX) -> str:
        """The newest ``last`` samples, oldest first, as a JSON array."""
        return f"[{','.join(islice(self._samples, max(len(self._samples) - last, 0), None))}]"

    async def watch(self) -> AsyncIterator[str]:
        """Each new sample as JSON, until the node stops."""
        self.watchers += 1
        try:
            while not self._stopped:
                await self._next_sample.wait()
                if self._samples and not self._stopped:
                    yield self._samples[-1]
        finally:
            self.watchers -= 1

    def take_sample(self) -> None:
        """Add the figures of this moment and wake the watchers."""
        totals = _totals(self._view.counters())
        now = monotonic()
        elapsed_s = max(now - self._counted_at, 1e-6)
        rates = {name: round((total - self._totals[name]) / elapsed_s, 1) for name, total in totals.items()}
        self._totals, self._counted_at = totals, now
        ready, reason = self._view.ready()
        sample = {
            "at": round(time(), 3),
            "ready": ready,
            "reason": reason,
            "rates": rates,
            "totals": totals,
            "gauges": {name: value for name, value in self._view.gauges().items() if isfinite(value)},
            "alarms": [alarm.message for alarm in self._view.alarms()],
        }
        self._samples.append(json.dumps(sample, separators=(",", ":")))
        self._next_sample.set()
        self._next_sample = asyncio.Event()

    async def _sample_for_ever(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_PERIOD_S)
            self.take_sample()


def _totals(counters: Mapping[str, int]) -> dict[str, int]:
    """The counters that are watched, by the names that the page uses."""
    return {
        "messages_in": counters.get("publishes_received", 0),
        "messages_out": counters.get("messages_sent", 0),
        "bytes_in": counters.get("bytes_received", 0),
        "bytes_out": counters.get("bytes_sent", 0),
        "dropped": sum(count for name, count in counters.items() if name.startswith(DROPPED)),
    }

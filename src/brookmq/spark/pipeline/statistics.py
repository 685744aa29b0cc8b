"""What is counted of a query, over all its starts: pure, time comes in.

Spark tells after each batch what it did, as JSON. ``matched`` and ``failed`` come from what it observed below the rule
(`rules.applying`), ``passed`` from above it. Where it read no rows, since a batch that was written before is not read
again, it observed nothing, and nothing is counted twice.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from brookmq.spark.positions import Position, rows_between

RATE_S: Final = 10.0  # over which rows per second are told
OBSERVED: Final = "rule"  # below the rule: matched, failed
OBSERVED_ROWS: Final = "rows"  # above it: passed


@dataclass(slots=True)
class Statistics:
    """One query's numbers."""

    batch: int = -1  # the last one that was finished
    batch_ms: float = 0.0
    matched: int = 0
    passed: int = 0
    failed: int = 0
    actions_failed: int = 0
    lost: int = 0  # offsets that retention took before they were read, since the last start
    position: Position | None = None  # behind the last batch
    _read: deque[tuple[float, int]] = field(default_factory=deque)  # when, and how many rows, of the last RATE_S

    def finished(self, progress: Mapping[str, Any], now: float) -> None:
        """A batch was finished: its progress report, as Spark writes it."""
        self.batch = int(progress["batchId"])
        self.batch_ms = float(progress.get("durationMs", {}).get("triggerExecution", progress.get("batchDuration", 0)))
        observed = progress.get("observedMetrics", {})
        below, above = observed.get(OBSERVED) or {}, observed.get(OBSERVED_ROWS) or {}
        matched = int(below.get("matched") or 0)
        self.matched += matched
        self.failed += int(below.get("failed") or 0)
        self.passed += int(above.get("passed") or 0)
        self._read.append((now, matched))
        for source in progress.get("sources", [])[:1]:
            self._look_at(source)

    def _look_at(self, source: Mapping[str, Any]) -> None:
        end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        if end is not None:
            self.position = {int(shard): int(offset) for shard, offset in end["offsets"].items()}
        if latest is not None:
            self.lost = int(latest.get("lost", 0))

    def rows_per_second(self, now: float) -> float:
        """Of messages that matched, lately."""
        while self._read and self._read[0][0] < now - RATE_S:
            self._read.popleft()
        return sum(rows for _, rows in self._read) / RATE_S

    def lag(self, ends: Position | None) -> int | None:
        """How many offsets of the journal are behind the last batch; None if that is not known."""
        if ends is None or self.position is None or set(self.position) - set(ends):
            return None
        return rows_between(self.position, ends)


def _offset(value: Any) -> dict[str, Any] | None:
    """A position in a progress report: JSON, or text with JSON in it."""
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) and "offsets" in found else None

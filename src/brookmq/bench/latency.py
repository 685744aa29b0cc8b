"""Percentiles out of the buckets in which ``Latencies`` counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brookmq.bench.wire import Latencies

NANOSECONDS_PER_MS: Final = 1e6


def bucket_middle(index: int) -> float:
    """The middle of the range of nanoseconds that bucket ``index`` counts."""
    if index < 128:
        return float(index)
    shift, low = index // 64 - 1, 64 + index % 64
    return (low + 0.5) * float(1 << shift)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Latencies in milliseconds; ``samples`` is how many messages they come from."""

    samples: int
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, latencies: Latencies) -> Percentiles | None:
        counts = latencies.counts()
        samples = sum(counts)
        if not samples:
            return None
        highest = latencies.highest / NANOSECONDS_PER_MS

        def at(share: float) -> float:
            return round(min(_at(counts, samples * share) / NANOSECONDS_PER_MS, highest), 4)

        return cls(samples, at(0.5), at(0.9), at(0.99), round(highest, 4))


def _at(counts: list[int], rank: float) -> float:
    seen = 0
    for index, count in enumerate(counts):
        seen += count
        if count and seen >= rank:
            return bucket_middle(index)
    return bucket_middle(len(counts) - 1)

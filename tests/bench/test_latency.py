"""Percentiles out of buckets are right to 1.6 %."""

from __future__ import annotations

import pytest

from brookmq.bench.latency import Percentiles, bucket_middle
from brookmq.bench.wire import Latencies


def test_no_samples_no_percentiles() -> None:
    assert Percentiles.of(Latencies()) is None


def test_percentiles() -> None:
    latencies = Latencies()
    for microseconds in range(1, 1001):
        latencies.record(microseconds * 1000, 1)
    found = Percentiles.of(latencies)
    assert found is not None
    assert found.samples == 1000
    assert found.p50 == pytest.approx(0.5, rel=0.02)
    assert found.p90 == pytest.approx(0.9, rel=0.02)
    assert found.p99 == pytest.approx(0.99, rel=0.02)
    assert found.max == 1.0


@pytest.mark.parametrize("nanoseconds", [1, 127, 128, 1000, 123_456, 10**9, 10**12])
def test_a_bucket_stands_for_its_values(nanoseconds: int) -> None:
    latencies = Latencies()
    latencies.record(nanoseconds, 1)
    assert bucket_middle(latencies.counts().index(1)) == pytest.approx(nanoseconds, rel=0.01)

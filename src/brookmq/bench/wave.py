"""A wave of returning sessions beside traffic that has nothing to do with them: what do the others notice?

The wave and the traffic are in one thread but in engines of their own. The traffic has its turn between any two small
portions of the wave, so that the tool's own work for thousands of connects is not taken for a delay of the broker.
"""

from __future__ import annotations

import gc
import select
import time
from dataclasses import replace
from typing import Final

from brookmq.bench import scenarios
from brookmq.bench.engine import NANOSECONDS, Engine
from brookmq.bench.fleet import Fleet
from brookmq.bench.kept import Names, Return
from brookmq.bench.latency import Percentiles
from brookmq.bench.measure import CONNECTS_PER_S_MIN, OPEN_TIMEOUT_S, QUIET_S, Snapshot, bring_up, nanoseconds_from_now
from brookmq.bench.progress import Progress
from brookmq.bench.report import Report
from brookmq.bench.settings import LoadError, Settings

PORTION: Final = 8
"""Events, and connects, of the wave between two turns of the traffic: a few hundred microseconds of the tool's time."""
IDLE_NAP_S: Final = 0.001


def run(settings: Settings, names: Names, expected: int, pairs: int, progress: Progress) -> Report:
    """Sessions come back, all at once; ``latency_ms`` is that of unrelated pairs meanwhile, ``quiet_…`` before."""
    traffic = Fleet(replace(settings, kept=False, qos=1))
    scenarios.pairs(traffic, pairs)
    returning = Return(settings, names, expected)
    wave = returning.fleet.engine
    wave.events_per_turn = wave.opens_per_turn = PORTION
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        bring_up(traffic, progress)
        progress.show("measuring the traffic alone")
        traffic.engine.pace(list(traffic.publishers), settings.rate_per_s, 1)
        _turn_both(traffic.engine, wave, nanoseconds_from_now(settings.warm_up_s))
        traffic.latencies.clear()
        _turn_both(traffic.engine, wave, nanoseconds_from_now(settings.duration_s))
        quiet = Percentiles.of(traffic.latencies)
        traffic.latencies.clear()
        progress.show(f"{names.count:,} sessions come back")
        before = Snapshot.of(returning.fleet)
        returning.set_out()
        allowed_s = OPEN_TIMEOUT_S + names.count / (settings.connect_rate_per_s or CONNECTS_PER_S_MIN)
        _turn_both(traffic.engine, wave, nanoseconds_from_now(allowed_s), returning)
        end = time.monotonic_ns()
        returning.check()
        report = returning.report("back", before, end)
        _finish(traffic, report)
        report.quiet_latency_ms, report.latency_ms = quiet, Percentiles.of(traffic.latencies)
        returning.leave()
    finally:
        gc.enable()
        gc.unfreeze()
        traffic.engine.close()
        wave.close()
        progress.close()
    return report


def _turn_both(traffic: Engine, wave: Engine, until: int, returning: Return | None = None) -> None:
    """Until the time is over, or the sessions are back and have what they wait for."""
    while (now := time.monotonic_ns()) < until and not (returning is not None and returning.over()):
        if not wave.waiting:
            nap = min(IDLE_NAP_S, max((traffic.pace_next - now) / NANOSECONDS, 0.0))
            select.select((traffic.epoll, wave.epoll), (), (), nap)
            now = time.monotonic_ns()
        traffic.turn(now, now)
        wave.turn(now, now)


def _finish(traffic: Fleet, report: Report) -> None:
    """What became due meanwhile arrives, and counts; messages of the traffic that don't are lost, wave or not."""
    engine = traffic.engine
    engine.hold_back()
    engine.run(nanoseconds_from_now(QUIET_S), lambda: all(flow.outstanding() <= 0 for flow in engine.flows))
    missing = sum(max(flow.outstanding(), 0) for flow in engine.flows)
    if missing:
        raise LoadError(f"{traffic.settings.target}: {missing} messages of the unrelated traffic did not arrive")
    report.notes.append(f"{sum(flow.sent for flow in engine.flows):,} messages of unrelated traffic, none lost")

"""Drives a fleet through its phases: connect, warm-up, the measured part, the drain; and writes the report.

The measured part is a stretch of a load that is already running: neither the connects nor the last messages, for which
the drain waits so that losses can be told from lateness, are in its rates.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Final

from brookmq.bench import processes
from brookmq.bench.client import READY, UNLIMITED
from brookmq.bench.engine import NANOSECONDS
from brookmq.bench.fleet import Fleet
from brookmq.bench.latency import Percentiles
from brookmq.bench.progress import Progress
from brookmq.bench.report import MILLION, Report
from brookmq.bench.settings import LoadError

SLICE_S: Final = 0.25
OPEN_TIMEOUT_S: Final = 30.0
CONNECTS_PER_S_MIN: Final = 50.0
"""A broker that takes fewer, handshakes of TLS included, is given up."""
QUIET_S: Final = 2.0
"""With nothing received for this long, what is missing counts as lost."""
DRAIN_TIMEOUT_S: Final = 60.0
COUNT_TIMEOUT_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The running totals at one moment."""

    at: int
    sent: int
    received: int
    acknowledged: int
    tool_cpu_s: float
    broker_cpu_s: float

    @classmethod
    def of(cls, fleet: Fleet) -> Snapshot:
        return cls(
            time.monotonic_ns(),
            sum(client.sent for client in fleet.publishers),
            sum(client.inbox.received for client in fleet.clients),
            sum(client.inbox.acknowledged for client in fleet.publishers),
            time.thread_time(),
            processes.cpu_seconds(fleet.settings.broker_pids),
        )


def nanoseconds_from_now(seconds: float) -> int:
    return time.monotonic_ns() + int(seconds * NANOSECONDS)


def bring_up(fleet: Fleet, progress: Progress) -> None:
    """Connect everyone, subscribers first; an error when anyone could not."""
    engine = fleet.engine
    for group in (fleet.subscribers, [*fleet.publishers, *fleet.others]):
        wanted = engine.opened + len(group)
        engine.open(group, fleet.settings.connect_rate_per_s)
        slowest = fleet.settings.connect_rate_per_s or CONNECTS_PER_S_MIN
        until = nanoseconds_from_now(OPEN_TIMEOUT_S + len(group) / slowest)
        while engine.opened < wanted and not engine.failed and time.monotonic_ns() < until:
            engine.run(min(nanoseconds_from_now(SLICE_S), until), lambda: engine.opening == 0 and not engine.waiting)
            progress.show(f"connecting {engine.opened:,} of {len(fleet.clients):,}")
        if engine.first_failure or engine.opened < wanted:
            reason = engine.first_failure or "the broker did not answer in time"
            raise LoadError(f"{fleet.settings.target}: {wanted - engine.opened} connections failed: {reason}")


def measure(fleet: Fleet, scenario: str, progress: Progress) -> Report:
    """Run the load that the fleet is made for."""
    settings, engine = fleet.settings, fleet.engine
    gc.collect()
    gc.freeze()
    try:
        bring_up(fleet, progress)
        gc.disable()
        if settings.keep_alive_s:
            engine.keep_alive(settings.keep_alive_s / 2)
        if not settings.rate_per_s:
            engine.unleash(settings.count or UNLIMITED)
        elif fleet.publishers:
            for client in fleet.publishers:
                client.budget = settings.count or UNLIMITED
            engine.pace(list(fleet.publishers), settings.rate_per_s, settings.write_size)
        if not settings.count:
            engine.run(nanoseconds_from_now(settings.warm_up_s))
            fleet.latencies.clear()
        before = Snapshot.of(fleet)
        if settings.count:
            _run_count(fleet, progress)
        else:
            _run_time(fleet, progress)
        after = Snapshot.of(fleet)
        report = _report(fleet, scenario, before, after)
        engine.hold_back()
        _drain(fleet, progress)
        _add_totals(report, fleet)
    finally:
        gc.enable()
        gc.unfreeze()
        engine.close()
        progress.close()
    return report


def _run_time(fleet: Fleet, progress: Progress) -> None:
    end = nanoseconds_from_now(fleet.settings.duration_s)
    while (now := time.monotonic_ns()) < end:
        last = sum(client.inbox.received for client in fleet.clients), sum(client.sent for client in fleet.publishers)
        fleet.engine.run(min(now + int(SLICE_S * NANOSECONDS), end))
        _show(fleet, progress, last, (time.monotonic_ns() - now) / NANOSECONDS)


def _run_count(fleet: Fleet, progress: Progress) -> None:
    """Until every publisher has sent its count and all of it was acknowledged and received, or nothing moves."""
    until = nanoseconds_from_now(COUNT_TIMEOUT_S)
    wanted = fleet.settings.count

    def sent() -> bool:
        return all(client.sent >= wanted or client.state != READY for client in fleet.publishers)

    while not sent() and (now := time.monotonic_ns()) < until:
        last = sum(client.inbox.received for client in fleet.clients), sum(client.sent for client in fleet.publishers)
        fleet.engine.run(now + int(SLICE_S * NANOSECONDS), sent)
        _show(fleet, progress, last, (time.monotonic_ns() - now) / NANOSECONDS)
    _drain(fleet, progress)


def _show(fleet: Fleet, progress: Progress, last: tuple[int, int], seconds: float) -> None:
    received = sum(client.inbox.received for client in fleet.clients)
    sent = sum(client.sent for client in fleet.publishers)
    progress.show(
        f"{(sent - last[1]) / seconds:,.0f} sent/s, {(received - last[0]) / seconds:,.0f} received/s, "
        f"{sum(flow.outstanding() for flow in fleet.engine.flows):,} under way"
    )


def _drain(fleet: Fleet, progress: Progress) -> None:
    """Let everything arrive that is under way."""

    def missing() -> int:
        unacknowledged = sum(c.sent - c.inbox.acknowledged for c in fleet.publishers if c.qos and c.state == READY)
        return unacknowledged + sum(max(flow.outstanding(), 0) for flow in fleet.engine.flows)

    until = nanoseconds_from_now(DRAIN_TIMEOUT_S)
    left = missing()
    quiet_since = time.monotonic_ns()
    while left and (now := time.monotonic_ns()) < until and now - quiet_since < QUIET_S * NANOSECONDS:
        fleet.engine.run(now + NANOSECONDS // 20, lambda: missing() == 0)
        if missing() != left:
            left = missing()
            quiet_since = time.monotonic_ns()
        progress.show(f"draining, {left:,} under way")


def _report(fleet: Fleet, scenario: str, before: Snapshot, after: Snapshot) -> Report:
    settings = fleet.settings
    seconds = (after.at - before.at) / NANOSECONDS
    if fleet.subscribers:
        messages = after.received - before.received
    elif settings.qos:
        messages = after.acknowledged - before.acknowledged
    else:
        messages = after.sent - before.sent
    report = Report(scenario, str(settings.target), settings.version, settings.qos, len(fleet.clients))
    report.duration_s = round(seconds, 3)
    report.messages = messages
    report.messages_per_s = round(messages / seconds, 1)
    report.latency_ms = Percentiles.of(fleet.latencies)
    report.tool_cpu_s = round(after.tool_cpu_s - before.tool_cpu_s, 3)
    report.tool_busy = round(report.tool_cpu_s / seconds, 3)
    if settings.broker_pids:
        report.broker_cpu_s = round(after.broker_cpu_s - before.broker_cpu_s, 3)
        report.broker_resident_bytes = processes.resident_bytes(settings.broker_pids)
        if messages:
            report.broker_cpu_us_per_message = round(report.broker_cpu_s * MILLION / messages, 4)
    return report


def _add_totals(report: Report, fleet: Fleet) -> None:
    flows = fleet.engine.flows
    report.sent = sum(client.sent for client in fleet.publishers)
    report.acknowledged = sum(client.inbox.acknowledged for client in fleet.publishers)
    report.refused = sum(client.inbox.refused for client in fleet.publishers)
    report.received = sum(client.inbox.received for client in fleet.clients)
    report.duplicates = sum(client.inbox.duplicates for client in fleet.subscribers)
    report.expected = sum(flow.sent * flow.copies for flow in flows)
    report.lost = max(report.expected - sum(flow.received for flow in flows), 0)
    if report.qos and not report.expected:
        report.lost = report.sent - report.acknowledged
    report.dropped_connections = fleet.engine.dropped
    if report.dropped_connections:
        report.notes.append(f"{report.dropped_connections} connections ended: {fleet.engine.first_failure}")

"""Loads that are about connections and state, not about a stream of messages: connects, takeovers, retained."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from typing import Final

from brookmq.bench import processes
from brookmq.bench.client import Client
from brookmq.bench.engine import NANOSECONDS
from brookmq.bench.fleet import Fleet
from brookmq.bench.latency import Percentiles
from brookmq.bench.measure import SLICE_S, Snapshot, bring_up, measure, nanoseconds_from_now
from brookmq.bench.packets import DISCONNECT, SerialTopic
from brookmq.bench.progress import Progress
from brookmq.bench.report import MILLION, Report
from brookmq.bench.settings import LoadError, Settings

SETTLE_S: Final = 1.0
"""Before memory is read: buffers of the handshakes are given back by then."""
DESCRIPTORS_BESIDES: Final = 100
TAKEOVER_TIMEOUT_S: Final = 60.0
RETAINED_TIMEOUT_S: Final = 120.0
SESSION_TAKEN_OVER: Final = 0x8E


def raise_open_file_limit(connections: int) -> None:
    """One descriptor per connection; an error that says the number when the system allows fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + DESCRIPTORS_BESIDES
    if soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise LoadError(f"{connections} connections need {needed} open files, and the limit (ulimit -n) is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def connecting_report(fleet: Fleet, scenario: str, before: Snapshot) -> Report:
    """The figures of a stretch of connecting that began at ``before`` and ends now."""
    settings, engine = fleet.settings, fleet.engine
    after = Snapshot.of(fleet)
    seconds = (after.at - before.at) / NANOSECONDS
    report = Report(scenario, str(settings.target), settings.version, settings.qos, len(fleet.clients))
    report.duration_s = round(seconds, 3)
    report.connects, report.connects_failed = engine.opened, engine.failed
    report.connects_per_s = round(engine.opened / seconds, 1)
    report.connect_latency_ms = Percentiles.of(engine.connect_latencies)
    report.tool_cpu_s = round(after.tool_cpu_s - before.tool_cpu_s, 3)
    report.tool_busy = round(report.tool_cpu_s / seconds, 3)
    if settings.broker_pids:
        report.broker_cpu_s = round(after.broker_cpu_s - before.broker_cpu_s, 3)
        if engine.opened:
            report.broker_cpu_us_per_connect = round(report.broker_cpu_s * MILLION / engine.opened, 2)
    return report


def connections(settings: Settings, count: int, progress: Progress) -> Report:
    """Open ``count`` connections and hold them, with keep alive, for the duration."""
    raise_open_file_limit(count)
    fleet = Fleet(settings)
    for _ in range(count):
        fleet.idle()
    memory_before = processes.resident_bytes(settings.broker_pids)
    before = Snapshot.of(fleet)
    try:
        bring_up(fleet, progress)
        report = connecting_report(fleet, "conn", before)
        if settings.keep_alive_s:
            fleet.engine.keep_alive(settings.keep_alive_s / 2)
        end = nanoseconds_from_now(max(settings.duration_s, SETTLE_S))
        while (now := time.monotonic_ns()) < end:
            fleet.engine.run(min(now + int(SLICE_S * NANOSECONDS), end))
            progress.show(f"holding {len(fleet.engine.clients):,} connections")
        if settings.broker_pids:
            report.broker_resident_bytes = processes.resident_bytes(settings.broker_pids)
            report.broker_bytes_per_connection = round((report.broker_resident_bytes - memory_before) / count, 1)
        report.dropped_connections = fleet.engine.dropped
    finally:
        fleet.engine.close()
        progress.close()
    return report


def churn(settings: Settings, at_once: int, progress: Progress) -> Report:
    """Connect and disconnect without pause, ``at_once`` connections at a time, for the duration."""
    fleet = Fleet(settings)
    engine = fleet.engine
    engine.opening_max = at_once

    def again(client: Client) -> None:
        client.write(DISCONNECT)
        engine.forget(client)
        engine.waiting.append(fleet.client())

    engine.on_ready = again
    engine.open([fleet.client() for _ in range(at_once)], settings.connect_rate_per_s)
    try:
        engine.run(nanoseconds_from_now(settings.warm_up_s))
        engine.opened = engine.failed = 0
        engine.connect_latencies.clear()
        before = Snapshot.of(fleet)
        end = nanoseconds_from_now(settings.duration_s)
        while (now := time.monotonic_ns()) < end:
            engine.run(min(now + int(SLICE_S * NANOSECONDS), end))
            progress.show(f"{engine.opened:,} connects")
        report = connecting_report(fleet, "conn", before)
    finally:
        engine.close()
        progress.close()
    report.clients = at_once
    if not report.connects:
        raise LoadError(f"{settings.target}: no connect succeeded: {engine.first_failure or 'no answer'}")
    return report


def takeover(settings: Settings, client_ids: int, count: int, progress: Progress) -> Report:
    """``client_ids`` clients are there; ``count`` more connects with the same ids push them out one after another."""
    raise_open_file_limit(2 * client_ids)
    fleet = Fleet(settings)
    engine = fleet.engine
    told: list[int] = []
    engine.on_dropped = lambda client: told.append(client.inbox.closed_with)
    engine.opening_max = max(min(engine.opening_max, client_ids // 2), 1)
    for number in range(client_ids):
        fleet.idle(f"bench-takeover-{number}")
    try:
        bring_up(fleet, progress)
        before = Snapshot.of(fleet)
        engine.opened = 0
        engine.connect_latencies.clear()
        engine.open([fleet.client(f"bench-takeover-{number % client_ids}") for number in range(count)])
        end = nanoseconds_from_now(TAKEOVER_TIMEOUT_S)

        def done() -> bool:
            return engine.opened + engine.failed >= count and engine.dropped >= engine.opened

        while not done() and (now := time.monotonic_ns()) < end:
            engine.run(min(now + int(SLICE_S * NANOSECONDS), end), done)
            progress.show(f"{engine.opened:,} of {count:,} takeovers")
        report = connecting_report(fleet, "takeover", before)
    finally:
        engine.close()
        progress.close()
    report.clients = client_ids
    report.dropped_connections = engine.dropped
    if settings.version == 5:
        report.notes.append(f"{told.count(SESSION_TAKEN_OVER):,} of {engine.dropped:,} were told 0x8E")
    if engine.dropped != engine.opened:
        report.notes.append(f"{engine.opened:,} connects, but {engine.dropped:,} earlier clients closed")
    return report


def retained(settings: Settings, topics: int, subscribers: int, progress: Progress) -> Report:
    """Set ``topics`` retained messages, subscribe to all of them ``subscribers`` times, and clear them again."""
    _set_retained(replace(settings, qos=1, count=topics), topics, progress)
    fleet = Fleet(settings)
    flow = fleet.flow(copies=subscribers)
    flow.sent = topics
    for _ in range(subscribers):
        fleet.subscriber([f"{settings.prefix}/retained/#".encode()], flow)
    before = Snapshot.of(fleet)
    try:
        bring_up(fleet, progress)
        end = nanoseconds_from_now(RETAINED_TIMEOUT_S)
        while flow.outstanding() > 0 and (now := time.monotonic_ns()) < end:
            fleet.engine.run(min(now + int(SLICE_S * NANOSECONDS), end), lambda: flow.outstanding() <= 0)
            progress.show(f"{flow.received:,} of {topics * subscribers:,} retained messages")
        report = connecting_report(fleet, "retained", before)
    finally:
        fleet.engine.close()
        progress.close()
    report.sent, report.received, report.expected = topics, flow.received, topics * subscribers
    report.lost = max(report.expected - report.received, 0)
    report.messages = flow.received
    report.messages_per_s = round(flow.received / report.duration_s, 1)
    if report.broker_cpu_s is not None and report.messages:
        report.broker_cpu_us_per_message = round(report.broker_cpu_s * MILLION / report.messages, 4)
    _set_retained(replace(settings, qos=1, count=topics, payload_bytes=0), topics, progress)
    return report


def _set_retained(settings: Settings, topics: int, progress: Progress) -> None:
    fleet = Fleet(settings)
    topic = SerialTopic(f"{settings.prefix}/retained/".encode(), len(str(topics)), topics, 1, 1, 1)
    fleet.publisher(topic, fleet.flow(copies=0), retain=True)
    report = measure(fleet, "retained", progress)
    if report.lost:
        raise LoadError(f"{settings.target}: {report.lost} retained messages were not acknowledged")

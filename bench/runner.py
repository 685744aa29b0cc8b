"""Runs scenarios against brokers: rounds on the outside, brokers in turn inside, a fresh broker for every load.

A machine drifts (other guests, heat, the kernel's memory); taking turns lets the drift meet both brokers alike.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bench.brokers import Broker, BrokerError
from bench.catalogue import Kind, Scenario
from bench.certificates import Certificates
from bench.results import Results, Series
from bench.stage import Stage
from bench.tool import Report, raise_open_file_limit, run_tool

BROKER_CPU: Final = 0
QUIET_LOAD_MAX: Final = 0.7
"""Load average above which others take time from the loads; a run of our own before this one counts too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is made."""

    scenarios: list[Scenario]
    brokers: list[Broker]
    rounds: int
    duration_s: float
    warm_up_s: float
    pinned: bool
    command: str
    mqtt_version: str
    scale: float = 1.0


def self_test(*, pinned: bool) -> list[Report]:
    loads: list[Report] = run_tool(["self-test"], pinned=pinned)["loads"]
    return [{name: load[name] for name in ("qos", "messages_per_s", "tool_busy")} for load in loads]


def run(plan: Plan, results: Results, certificates: Certificates | None, say: Callable[[str], None]) -> list[str]:
    """Fill ``results``; the failures, one line each (a failed load leaves its place empty, the run goes on)."""
    raise_open_file_limit()
    versions = {broker.name: broker.version() for broker in plan.brokers}
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    failures: list[str] = []
    load_before = round(os.getloadavg()[0], 1)
    if load_before > QUIET_LOAD_MAX:
        say(f"the machine is busy (load average {load_before}): none of these figures is to be quoted")
    for scenario in plan.scenarios:
        results.series[scenario.key] = Series(date, plan.command, plan.pinned, versions, load_before)
    for number in range(max(scenario.rounds(plan.rounds) for scenario in plan.scenarios)):
        for scenario in plan.scenarios:
            if number >= scenario.rounds(plan.rounds):
                continue
            if scenario.needs_tls and certificates is None:
                continue
            for broker in [broker for broker in plan.brokers if broker.name in scenario.brokers]:
                title = f"round {number + 1}, {scenario.title}, {broker.name}"
                try:
                    report = _report(plan, scenario, broker, certificates)
                except (BrokerError, subprocess.TimeoutExpired) as error:
                    failures.append(f"{title}: {error}")
                    say(f"{title}: failed")
                    continue
                results.series[scenario.key].add(broker.name, report)
                say(f"{title}: {_headline(scenario, report)}")
    return failures


def _report(plan: Plan, scenario: Scenario, broker: Broker, certificates: Certificates | None) -> Report:
    cpu = BROKER_CPU if plan.pinned and (os.cpu_count() or 1) > 1 else None
    if scenario.procedure is None:
        return _load(plan, scenario, broker, certificates, cpu)
    stage = Stage(broker, plan.duration_s, plan.warm_up_s, plan.pinned, cpu, plan.mqtt_version, plan.scale)
    return {"figures": {name: round(value, 4) for name, value in scenario.procedure(stage).items()}}


def _load(plan: Plan, scenario: Scenario, broker: Broker, certificates: Certificates | None, cpu: int | None) -> Report:
    with broker.running(certificates if scenario.needs_tls else None, cpu) as running:
        port = running.tls_port if scenario.needs_tls else running.port
        if port is None:
            raise BrokerError(f"{broker.name} opened no TLS listener")
        arguments = [*scenario.timed(plan.duration_s, plan.warm_up_s), "--mqtt-version", plan.mqtt_version]
        report = run_tool([*arguments, "--port", str(port), "--broker-pid", str(running.pid)], pinned=plan.pinned)
    if report["lost"] and report["qos"]:
        raise BrokerError(f"{report['lost']} messages lost")
    return report


def _headline(scenario: Scenario, report: Report) -> str:
    if scenario.kind is Kind.KEPT:
        shown = {target.figure: target.form for target in scenario.targets if not target.relative}
        return ", ".join(f"{name} {format(report['figures'][name], form)}" for name, form in shown.items())
    if scenario.kind is Kind.CONNECT:
        return f"{report['connects_per_s']:,.0f} connects/s, {report['broker_cpu_us_per_connect']:.1f} µs each"
    if scenario.kind is Kind.MEMORY:
        return f"{report['broker_bytes_per_connection']:,.0f} bytes per connection"
    if scenario.kind is Kind.LATENCY:
        return f"p50 {report['latency_ms']['p50']:.3f} ms, p99 {report['latency_ms']['p99']:.3f} ms"
    busy = f"tool {report['tool_busy']:.0%}"
    lost = f", {report['lost']:,} lost" if report["lost"] else ""
    return (
        f"{report['messages_per_s']:,.0f} messages/s, {report['broker_cpu_us_per_message']:.2f} s/million, {busy}{lost}"
    )

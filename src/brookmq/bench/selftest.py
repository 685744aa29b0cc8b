"""``bench self-test``: the tool against a broker that does nothing, so that its own limit is known."""

from __future__ import annotations

import json
from typing import Final

import click

from brookmq.bench import scenarios
from brookmq.bench.fleet import Fleet
from brookmq.bench.measure import measure
from brookmq.bench.null import null_broker
from brookmq.bench.progress import Progress
from brookmq.bench.report import Report
from brookmq.bench.settings import Settings
from brookmq.bench.transport import Target
from brookmq.bench.wire import COMPILED

PUBLISHERS: Final = 50
PACKETS_PER_WRITE: Final = 16
NEEDED_PER_S: Final = {0: 1_500_000, 1: 400_000, 2: 0}
"""Messages per second by QoS below which the tool would be what a side-by-side run measures."""


def load(port: int, qos: int, duration_s: float) -> Report:
    settings = Settings(
        Target(port=port),
        qos=qos,
        packets_per_write=0 if qos else PACKETS_PER_WRITE,
        duration_s=duration_s,
        warm_up_s=0.3,
    )
    fleet = Fleet(settings)
    scenarios.publishers_only(fleet, PUBLISHERS, "bench/self-test/%i")
    return measure(fleet, "self-test", Progress("self-test", wanted=False))


def run(duration_s: float, *, as_json: bool) -> int:
    """Exit code: 0 when the tool is fast enough here."""
    with null_broker() as (port, _):
        reports = [load(port, qos, duration_s) for qos in sorted(NEEDED_PER_S)]
    reached = all(report.messages_per_s >= NEEDED_PER_S[report.qos] for report in reports)
    if as_json:
        result = {"compiled": COMPILED, "reached": reached, "loads": [report.as_json() for report in reports]}
        click.echo(json.dumps(result))
        return 0 if reached else 1
    click.echo(f"load tool: {'compiled' if COMPILED else 'plain Python'}")
    for report in reports:
        needed = NEEDED_PER_S[report.qos]
        verdict = f" ({'ok' if report.messages_per_s >= needed else 'short'}, {needed:,} needed)" if needed else ""
        busy = f"tool at {report.tool_busy:.0%} of a core"
        click.echo(f"QoS {report.qos}: {report.messages_per_s:,.0f} messages/s{verdict}, {busy}")
    return 0 if reached else 1

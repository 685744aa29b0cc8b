"""Commands about the node itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, get_args

import click

from brookmq.ops.ctl.connection import EXIT_REFUSED, Node
from brookmq.ops.ctl.options import node_options
from brookmq.ops.ctl.output import Column, duration, moment, print_facts, print_json, print_listing, size
from brookmq.ops.view import LogLevel

LISTENER_COLUMNS: tuple[Column, ...] = (
    ("listener", lambda row: row["name"]),
    ("kind", lambda row: row["kind"]),
    ("address", lambda row: row["address"]),
    ("connections", lambda row: row["connections"]),
    ("limit", lambda row: row["connections_max"]),
)
ALARM_COLUMNS: tuple[Column, ...] = (
    ("alarm", lambda row: row["name"]),
    ("since", lambda row: moment(row["raised_at"])),
    ("message", lambda row: row["message"]),
)


@click.command()
@node_options
def status(node: Node, as_json: bool) -> None:
    """Show how the node is; exit code 1 if it can't serve clients.

    \b
    Examples:
      brookmq ctl status
      brookmq ctl status --url http://10.0.0.7:18083 --json
    """
    info = node.get("/node")
    ready, reason = node.ready()
    samples = node.get("/overview/samples", last=1)
    alarms = node.get("/alarms")
    if as_json:
        now = samples[-1] if samples else None
        print_json({"node": info, "ready": ready, "reason": reason, "now": now, "alarms": alarms})
    else:
        print_facts(_facts(info, ready, reason, samples[-1] if samples else None, len(alarms)))
        click.echo()
        print_listing(info["listeners"], LISTENER_COLUMNS, limit=None, as_json=False)
    if not ready:
        sys.exit(EXIT_REFUSED)


def _facts(
    info: Mapping[str, Any], ready: bool, reason: str, now: Mapping[str, Any] | None, alarms: int
) -> dict[str, object]:
    facts: dict[str, object] = {
        "node": info["name"],
        "role": info["role"],
        "state": "ready" if ready else f"not ready: {reason}",
        "version": f"{info['version']} ({'compiled' if info['compiled'] else 'plain Python'})",
        "up": duration(info["uptime_s"]),
    }
    if info["store"] is not None:
        facts["store"] = _store(info["store"])
    if now is not None:
        rates, gauges = now["rates"], now["gauges"]
        connections = int(gauges.get("connections", 0))
        facts["connections"] = f"{connections} ({info['connections_fit']} fit)"
        facts |= {name: int(gauges.get(name, 0)) for name in ("sessions", "subscriptions")}
        retained_bytes = size(gauges.get("retained_bytes", 0))
        facts["retained"] = f"{int(gauges.get('retained', 0))} ({retained_bytes})"
        facts["messages/s"] = f"{rates['messages_in']:.0f} in, {rates['messages_out']:.0f} out"
        facts["bytes/s"] = f"{size(rates['bytes_in'])} in, {size(rates['bytes_out'])} out"
        facts["dropped"] = f"{now['totals']['dropped']} since the start"
        facts["loop lag"] = f"{1000 * gauges.get('loop_lag_s', 0):.1f} ms"
        facts["memory"] = size(gauges.get("resident_memory_bytes", 0))
    return facts | {"alarms": alarms}


def _store(store: Mapping[str, Any]) -> str:
    where = f"{'own' if store['own'] else 'external'}, {', '.join(store['addresses']) or 'not started yet'}"
    again = f", restarted {store['restarts']} times" if store["restarts"] else ""
    return f"{where}{again}{', cannot be used: ' if store['reason'] else ''}{store['reason']}"


@click.command()
@click.argument("search", required=False, default="")
@node_options
def metrics(node: Node, as_json: bool, search: str) -> None:
    """Show all counters and gauges, or those whose name contains SEARCH.

    \b
    Examples:
      brookmq ctl metrics
      brookmq ctl metrics dropped
    """
    answer = node.get("/metrics")
    chosen = {
        kind: {name: value for name, value in sorted(figures.items()) if search in name}
        for kind, figures in answer.items()
    }
    if as_json:
        print_json(chosen)
    else:
        print_facts(chosen["gauges"] | chosen["counters"])


@click.command()
@node_options
def alarms(node: Node, as_json: bool) -> None:
    """List what needs attention now.

    \b
    Example:
      brookmq ctl alarms
    """
    print_listing(node.get("/alarms"), ALARM_COLUMNS, limit=None, as_json=as_json)


@click.command(name="log-level")
@click.argument("level", required=False, type=click.Choice(get_args(LogLevel)))
@node_options
def log_level(node: Node, as_json: bool, level: str | None) -> None:
    """Show the level of the node's log, or change it to LEVEL until the node stops.

    \b
    Examples:
      brookmq ctl log-level
      brookmq ctl log-level debug
    """
    if level is None:
        answer = node.get("/log-level")
    else:
        answer = node.request("PUT", "/log-level", body={"level": level})
    if as_json:
        print_json(answer)
    else:
        click.echo(answer["level"])

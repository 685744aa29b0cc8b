"""The tables of a results file, for the terminal and for the docs alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from bench import catalogue
from bench.catalogue import SCENARIOS, Kind, Scenario, Target
from bench.results import Results, Series

OURS, THEIRS = "brookmq", "mosquitto"
NONE = "—"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        lines = [self.headers, tuple("---" if i == 0 else "--:" for i in range(len(self.headers))), *self.rows]
        return f"### {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def ratio_text(ratio: float | Fraction | None) -> str:
    """A saving as 1/n, the way the targets are given; else a plain factor."""
    if ratio is None:
        return NONE
    if 0 < ratio < 0.67:
        return f"1/{float(1 / ratio):.3g}"
    return f"{float(ratio):.2f}"


def number(value: float | None, form: str = ",.0f") -> str:
    return NONE if value is None else format(value, form)


def divided(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def verdict(ratio: float | None, limit: float | Fraction | None) -> str:
    if ratio is None or limit is None:
        return ""
    return "ok" if ratio <= limit else "short"


def tables(results: Results) -> list[Table]:
    made = [
        _tool(results),
        _messages(results),
        _wildcards(results),
        _connects(results),
        _latencies(results),
        _memory(results),
        _kept(results),
    ]
    return [table for table in made if table.rows]


def _of_kind(results: Results, kind: Kind) -> list[tuple[Scenario, Series]]:
    return [(s, results.series[s.key]) for s in SCENARIOS if s.kind is kind and s.key in results.series]


def _tool(results: Results) -> Table:
    rows = [(f"QoS {report['qos']}", number(report["messages_per_s"])) for report in results.tool]
    return Table("The load tool alone, on one core, against a null broker", ("load", "messages/s"), rows)


def _rate(series: Series, broker: str, name: str = "messages_per_s") -> str:
    marks = ("\\*" if series.tool_was_limit(broker) else "") + ("†" if series.lost(broker) else "")
    return number(series.figure(broker, name)) + marks


def _messages(results: Results) -> Table:
    headers = (
        "scenario", "Mosquitto messages/s", "BrookMQ messages/s", "Mosquitto CPU s/million", "BrookMQ CPU s/million",
        "CPU ratio", "to reach", "",
    )  # fmt: skip
    rows = []
    for scenario, series in _of_kind(results, Kind.MESSAGES):
        theirs = series.figure(THEIRS, "broker_cpu_us_per_message")
        ours = series.figure(OURS, "broker_cpu_us_per_message")
        ratio = divided(ours, theirs)
        rows.append((
            scenario.title, _rate(series, THEIRS), _rate(series, OURS), number(theirs, ".2f"), number(ours, ".2f"),
            ratio_text(ratio), ratio_text(scenario.ratio_max), verdict(ratio, scenario.ratio_max),
        ))  # fmt: skip
    return Table("Messages", headers, rows)


def _wildcards(results: Results) -> Table:
    """Growth is against 1,000 filters of the same broker: what an index costs, not what a message costs."""
    headers = (
        "filters and topics", "Mosquitto CPU s/million", "BrookMQ CPU s/million", "Mosquitto growth", "BrookMQ growth",
        "to reach", "",
    )  # fmt: skip
    rows = []
    for scenario, series in _of_kind(results, Kind.WILDCARDS):
        fresh = scenario.key.endswith("-new")
        base_key = f"wildcards-{catalogue.WILDCARD_COUNTS[0]}-{'new' if fresh else 'seen'}"
        base = results.series.get(base_key, series)
        costs = {broker: series.figure(broker, "broker_cpu_us_per_message") for broker in (THEIRS, OURS)}
        starts = {broker: base.figure(broker, "broker_cpu_us_per_message") for broker in (THEIRS, OURS)}
        growth = divided(costs[OURS], starts[OURS])
        rows.append((
            scenario.title, number(costs[THEIRS], ".2f"), number(costs[OURS], ".2f"),
            number(divided(costs[THEIRS], starts[THEIRS]), ".2f"), number(growth, ".2f"),
            *_growth_verdict(scenario, fresh, growth, costs[OURS], starts[OURS]),
        ))  # fmt: skip
    return Table("Many wildcard filters", headers, rows)


def _growth_verdict(
    scenario: Scenario, fresh: bool, growth: float | None, cost: float | None, start: float | None
) -> tuple[str, str]:
    if str(catalogue.WILDCARD_COUNTS[-1]) not in scenario.key:
        return "", ""
    if fresh:
        return f"{catalogue.NEW_GROWTH_MAX:g}", verdict(growth, catalogue.NEW_GROWTH_MAX)
    limit = f"{catalogue.SEEN_GROWTH_MAX:g} or {catalogue.SEEN_GROWTH_US_MAX:g} µs"
    if growth is None or cost is None or start is None:
        return limit, ""
    within = growth <= catalogue.SEEN_GROWTH_MAX or cost - start <= catalogue.SEEN_GROWTH_US_MAX
    return limit, "ok" if within else "short"


def _connects(results: Results) -> Table:
    headers = (
        "scenario", "Mosquitto connects/s", "BrookMQ connects/s", "Mosquitto CPU µs", "BrookMQ CPU µs", "CPU ratio",
        "to reach", "",
    )  # fmt: skip
    rows = []
    for scenario, series in _of_kind(results, Kind.CONNECT):
        theirs = series.figure(THEIRS, "broker_cpu_us_per_connect")
        ours = series.figure(OURS, "broker_cpu_us_per_connect")
        ratio = divided(ours, theirs)
        rows.append((
            scenario.title, _rate(series, THEIRS, "connects_per_s"), _rate(series, OURS, "connects_per_s"),
            number(theirs, ".1f"), number(ours, ".1f"), ratio_text(ratio), ratio_text(scenario.ratio_max),
            verdict(ratio, scenario.ratio_max),
        ))  # fmt: skip
    return Table("Connects", headers, rows)


def _latencies(results: Results) -> Table:
    headers = ("load", "percentile", "Mosquitto ms", "BrookMQ ms", "ratio", "to reach", "")
    rows = []
    limits = {"p50": catalogue.LATENCY_P50_RATIO_MAX, "p99": catalogue.LATENCY_P99_RATIO_MAX}
    for scenario, series in _of_kind(results, Kind.LATENCY):
        for name, limit in limits.items():
            theirs, ours = (series.figure(broker, "latency_ms", name) for broker in (THEIRS, OURS))
            ratio = divided(ours, theirs)
            rows.append((
                scenario.title, name, number(theirs, ".3f"), number(ours, ".3f"), number(ratio, ".2f"),
                f"{float(limit):g}", verdict(ratio, limit),
            ))  # fmt: skip
    return Table("Latency at a fixed rate", headers, rows)


def _memory(results: Results) -> Table:
    headers = ("scenario", "Mosquitto bytes each", "BrookMQ bytes each", "to reach", "")
    rows = []
    for scenario, series in _of_kind(results, Kind.MEMORY):
        theirs, ours = (series.figure(broker, "broker_bytes_per_connection") for broker in (THEIRS, OURS))
        limit = None if scenario.needs_tls else catalogue.IDLE_BYTES_MAX
        rows.append((scenario.title, number(theirs), number(ours), number(limit), verdict(ours, limit)))
    return Table("Resident memory of idle connections", headers, rows)


def _kept(results: Results) -> Table:
    """Scenarios of several steps: one row for each of their figures."""
    headers = ("scenario", "figure", "Mosquitto", "BrookMQ", "to reach", "")
    rows = []
    for scenario, series in _of_kind(results, Kind.KEPT):
        for target in scenario.targets:
            theirs, ours = (series.figure(broker, "figures", target.figure) for broker in (THEIRS, OURS))
            if target.relative:
                theirs, ours = None, divided(ours, theirs)
            rows.append((
                scenario.title, target.label, number(theirs, target.form), number(ours, target.form),
                *_target_verdict(target, ours),
            ))  # fmt: skip
        rows += [(scenario.title, what, theirs, ours, "", "") for what, theirs, ours in scenario.remarks]
    return Table("Sessions that outlive their connections", headers, rows)


def _target_verdict(target: Target, value: float | None) -> tuple[str, str]:
    if target.limit is None:
        return "", ""
    bound = f"{'≥' if target.at_least else '≤'} {target.limit:,g}"
    if value is None:
        return bound, ""
    return bound, "ok" if (value >= target.limit if target.at_least else value <= target.limit) else "short"

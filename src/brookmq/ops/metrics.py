"""The node's figures in Prometheus' text format, version 0.0.4.

Counters and gauges come by name and go out by name: ``messages_sent`` becomes ``brookmq_messages_sent_total``,
``loop_lag_s`` becomes ``brookmq_loop_lag_seconds``. A new one needs nothing here but, if its name does not say it all,
a sentence in :data:`brookmq.base.counters.HELP` or :data:`GAUGE_HELP`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isnan

from brookmq.base.counters import HELP as COUNTER_HELP
from brookmq.ops.rule_view import RuleFigures
from brookmq.ops.view import NodeInfo, NodeView

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GAUGE_HELP: Mapping[str, str] = {
    "connections": "Clients that are connected",
    "connections_most": "The most clients that were connected at a time",
    "transports": "Open transport connections, before and after their CONNECT",
    "sessions": "Sessions, connected or not",
    "subscriptions": "Subscriptions of all sessions",
    "shared_subscriptions": "Subscriptions to shared groups",
    "filters": "Distinct topic filters in use",
    "retained": "Topics with a retained message",
    "retained_bytes": "Bytes of retained messages",
    "delayed": "Messages waiting for their delay to pass",
    "topics_cached": "Topics whose receivers are remembered",
    "publishers_waiting_for": "Connections that are full, so that publishers wait for them",
    "loop_lag_s": "How late the event loop ran a timer: the latest peak, fading within seconds",
    "resident_memory_bytes": "Resident memory of the node",
    "store_up": "1 while the store can be used, else 0",
    "store_restarts": "Times that the process of the store was started again",
    "store_waiting_bytes": "Bytes that were handed to the store and are not known to be stored",
    "journal_bytes": "Bytes of the journal in the store, asked for every ten seconds",
    "journal_batches_appended": "Batches that the store has taken into the journal",
    "journal_messages_appended": "Messages that the store has taken into the journal",
    "journal_messages_given_up": "Messages that the store did not take in time; MQTT 5 publishers got 0x97",
    "journal_bytes_appended": "Bytes that the store has taken into the journal",
    "journal_batches_read": "Batches read back from the journal",
    "journal_batches_lost": "Batches that the store should have and has not",
    "journal_bytes_read": "Bytes read back from the journal",
}
"""What the gauges and the counters outside of the broker mean; one that is not here is described by its name."""

_LAG = "Messages of the journal that a declared reader has not read"
_LOST = "Messages that were gone before a declared reader read them"

_RULE_FIGURES = {
    "matched": ("counter", "Messages that matched the topic filters of a rule"),
    "passed": ("counter", "Rows that came out of a rule"),
    "failed": ("counter", "Messages that a rule could not decode"),
    "actions_failed": ("counter", "Batches that an action of a rule did not take"),
    "restarts": ("counter", "Times that a rule was started again after a failure"),
    "lag": ("gauge", "Messages of the journal that a rule has not read"),
    "rows_per_second": ("gauge", "Messages that a rule reads in a second"),
    "batch_ms": ("gauge", "How long the last batch of a rule took"),
}
"""By the name of a figure in the statistics of a rule."""

_UNITS = {"_s": "_seconds", "_ms": "_milliseconds"}


def render(view: NodeView) -> str:
    """All figures of the node as one page for Prometheus."""
    return "".join(_lines(view))


def _lines(view: NodeView) -> Iterator[str]:
    info = view.info()
    yield from _family("build_info", "gauge", "The node and its version; always 1", 1, _labels(info))
    yield from _family("start_time_s", "gauge", "Unix time at which the node started", info.started_at.timestamp())
    yield from _family("ready", "gauge", "1 while clients can be served, else 0", int(view.ready()[0]))
    yield from _family("alarms", "gauge", "Alarms that are raised now", len(view.alarms()))
    for name, value in view.counters().items():
        yield from _family(name, "counter", help_of(name), value)
    for name, number in view.gauges().items():
        yield from _family(name, "gauge", help_of(name), number)
    readers = view.pipeline().readers()
    if readers:
        lags = {reader.name: reader.lag for reader in readers}
        lost = {reader.name: reader.lost for reader in readers}
        yield from _each("reader_lag", "gauge", "reader", _LAG, lags)
        yield from _each("reader_lost", "gauge", "reader", _LOST, lost)
    yield from _family(
        "pipeline_alive", "gauge", "1 while a pipeline reports", int(view.rules().pipeline_status().alive)
    )
    yield from _rules(view.rules().figures())


def _rules(rules: Sequence[RuleFigures]) -> Iterator[str]:
    """What a pipeline that is alive has told of rules. Counters begin again with each pipeline."""
    if not rules:
        return
    running = {rule.name: int(rule.state == "running") for rule in rules}
    yield from _each("rule_running", "gauge", "rule", "1 while a pipeline runs the rule", running)
    told = {rule.name: rule.statistics for rule in rules if rule.statistics is not None}
    for name, (kind, help_text) in _RULE_FIGURES.items():
        values = {rule: getattr(statistics, name) for rule, statistics in told.items()}
        if values:
            yield from _each(f"rule_{name}", kind, "rule", help_text, values)


def _each(name: str, kind: str, label: str, help_text: str, values: Mapping[str, float]) -> Iterator[str]:
    """A family with a value for each name."""
    full_name = metric_name(name, kind)
    yield f"# HELP {full_name} {help_text}\n# TYPE {full_name} {kind}\n"
    for labelled, value in values.items():
        yield f'{full_name}{{{label}="{_escaped(labelled)}"}} {_number(value)}\n'


def help_of(name: str) -> str:
    """One sentence about a figure."""
    return COUNTER_HELP.get(name) or GAUGE_HELP.get(name) or name.replace("_", " ").capitalize()


def metric_name(name: str, kind: str) -> str:
    """The name in Prometheus' manner: our prefix, units in full, counters end in ``_total``."""
    for short, full in _UNITS.items():
        if name.endswith(short):
            name = name.removesuffix(short) + full
    suffix = "_total" if kind == "counter" and not name.endswith("_total") else ""
    return f"brookmq_{name}{suffix}"


def _family(name: str, kind: str, help_text: str, value: float, labels: str = "") -> Iterator[str]:
    full_name = metric_name(name, kind)
    escaped_help = help_text.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {full_name} {escaped_help}\n# TYPE {full_name} {kind}\n{full_name}{labels} {_number(value)}\n"


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if isnan(value):
        return "NaN"
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def _labels(info: NodeInfo) -> str:
    pairs = {
        "node": info.name,
        "role": info.role,
        "version": info.version,
        "compiled": "true" if info.compiled else "false",
    }
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

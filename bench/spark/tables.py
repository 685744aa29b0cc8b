"""The tables of the Spark figures, with what is to be reached."""

from __future__ import annotations

from typing import Final

from bench.spark.results import Part, Results
from bench.tables import NONE, Table, number, verdict

READ_RATIO_MAX: Final = 2.0  # CPU per row, against Spark's Parquet reader
LATENCY_S_MAX: Final = 0.5
IDLE_PERCENT_MAX: Final = 2.0
CAPTURE_US_MAX: Final = 2.0
START_S_MAX: Final = 15.0

FEW_COLUMNS: Final = "topic,payload,published_at"
READS: Final = {"read-all": "all columns", "read-few": FEW_COLUMNS.replace(",", ", ")}
CAPTURES: Final = {
    "capture-pairs-1": ("500 pairs, QoS 1", CAPTURE_US_MAX),
    "capture-fan-in-1": ("fan-in, 500 publishers, QoS 1", CAPTURE_US_MAX),
    "capture-few-1": ("fan-in, 50 publishers, QoS 1, which wait for the disk", None),
    "capture-fan-in-0": ("fan-in, 50 publishers, QoS 0", CAPTURE_US_MAX),
}


def tables(results: Results) -> list[Table]:
    made = [_reads(results), _partitions(results), _following(results), _captures(results), _starts(results)]
    return [table for table in made if table.rows]


def _reads(results: Results) -> Table:
    headers = (
        "columns", "Parquet CPU s/million", "journal CPU s/million", "of it in Python", "store CPU s/million",
        "Parquet rows/s", "journal rows/s", "CPU ratio", "to reach", "",
    )  # fmt: skip
    rows = []
    for key, title in READS.items():
        if (part := results.parts.get(key)) is None:
            continue
        ratio = part.ratio("brookmq_cpu_s", "parquet_cpu_s")
        names = ("parquet_cpu_s", "brookmq_cpu_s", "brookmq_python_cpu_s", "brookmq_store_cpu_s")
        rows.append((
            title, *(number(part.figure(name), ".2f") for name in names), number(part.figure("parquet_rows_per_s")),
            number(part.figure("brookmq_rows_per_s")), number(ratio, ".2f"), f"≤ {READ_RATIO_MAX:g}",
            verdict(ratio, READ_RATIO_MAX),
        ))  # fmt: skip
    return Table("Reading the journal in Spark, against Spark's own Parquet reader", headers, rows)


def _partitions(results: Results) -> Table:
    rows = []
    if (part := results.parts.get("partitions")) is not None:
        speed = part.ratio("all_rows_per_s", "one_rows_per_s")
        one, both = (number(part.figure(f"{way}_rows_per_s")) for way in ("one", "all"))
        rows.append((one, both, number(speed, ".2f")))
    headers = ("rows/s of one partition", "rows/s of four partitions on two cores", "times")
    return Table("Partitions at the same time", headers, rows)


def _following(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    latency, idle = results.parts.get("latency"), results.parts.get("idle")
    if latency is not None:
        rows += [
            _row("PUBLISH to the call of foreachBatch, p50, s", latency, "call_p50_s", ".3f", LATENCY_S_MAX),
            _row("PUBLISH to its rows in foreachBatch, p50, s", latency, "rows_p50_s", ".3f", LATENCY_S_MAX),
            _row("the same, p90, s", latency, "rows_p90_s", ".3f", None),
        ]
    if idle is not None:
        rows += [
            _row("an idle stream: the store, % of a core", idle, "store_percent", ".2f", IDLE_PERCENT_MAX),
            _row("an idle stream: the node, % of a core", idle, "node_percent", ".2f", None),
        ]
    return Table("A stream that follows the journal", ("figure", "median", "to reach", ""), rows)


def _captures(results: Results) -> Table:
    headers = (
        "load", "messages/s without", "messages/s captured", "CPU µs without", "CPU µs captured", "more, µs",
        "to reach", "",
    )  # fmt: skip
    rows = []
    for key, (title, limit) in CAPTURES.items():
        if (part := results.parts.get(key)) is None:
            continue
        extra = part.figure("extra_us")
        rows.append((
            title, number(part.figure("nothing_messages_per_s")), number(part.figure("everything_messages_per_s")),
            number(part.figure("nothing_us"), ".2f"), number(part.figure("everything_us"), ".2f"),
            number(extra, ".2f"), NONE if limit is None else f"≤ {limit:g}", verdict(extra, limit),
        ))  # fmt: skip
    return Table("What capturing everything costs (node and store, CPU per message)", headers, rows)


def _starts(results: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    if (part := results.parts.get("start")) is not None:
        rows = [
            _row("`brookmq pipeline run`, to rows in a Delta table", part, "pipeline_s", ".1f", START_S_MAX),
            _row("a program with the cache", part, "cache_s", ".1f", START_S_MAX),
            _row("a program without it", part, "no_cache_s", ".1f", None),
            _row("a program started by Spark's own scripts", part, "scripts_s", ".1f", None),
        ]
    return Table("From the command to the first rows of a stream, s", ("start", "median", "to reach", ""), rows)


def _row(title: str, part: Part, name: str, form: str, limit: float | None) -> tuple[str, ...]:
    value = part.figure(name)
    return (title, number(value, form), NONE if limit is None else f"≤ {limit:g}", verdict(value, limit))

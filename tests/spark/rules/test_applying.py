"""Rules as streams: windows that end once, counts of what matched and failed, decoders in Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from brookmq.spark.rules import CompiledRule, Schema, compile_rule
from brookmq.spark.rules.applying import apply_rule
from brookmq.spark.rules.testing import sample_messages
from brookmq.spark.schema import spark_schema
from tests.spark.rules import sparkplug_payloads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(second: int, payload: Any, topic: str = "s/1") -> dict[str, Any]:
    return {"topic": topic, "payload": payload, "published_at": NOON + timedelta(seconds=second)}


def streamed(
    spark: SparkSession, folder: Path, rule: CompiledRule, batches: list[list[dict[str, Any]]]
) -> tuple[list[dict[str, Any]], StreamingQuery]:
    """All rows of a rule that runs as a stream, one batch for each list of messages."""
    source = folder / "source"
    source.mkdir()
    for number, messages in enumerate(batches):
        pq.write_table(sample_messages(messages), source / f"{number:03}.parquet")
    frame = spark.readStream.schema(spark_schema()).option("maxFilesPerTrigger", 1).parquet(str(source))
    name = f"rows_{folder.name.replace('-', '_')}"
    writer = apply_rule(frame, rule, "rule").writeStream.format("memory").queryName(name)
    writer = writer.outputMode(rule.output_mode).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(300)
    finally:
        query.stop()
    return [row.asDict() for row in spark.sql(f"SELECT * FROM {name}").collect()], query


def counted(query: StreamingQuery) -> tuple[int, int]:
    found = [progress.observedMetrics["rule"] for progress in query.recentProgress if progress.observedMetrics]
    return sum(row.matched or 0 for row in found), sum(row.failed or 0 for row in found)


def test_rows_and_counts(spark: SparkSession, tmp_path: Path) -> None:
    rule = compile_rule('SELECT CAST(payload.t AS DOUBLE) AS t FROM "s/+" WHERE payload.t > 1')
    batches = [[at(0, {"t": 1}), at(1, {"t": 2})], [at(2, "no json"), at(3, {"t": "3"}), at(4, {"t": 9}, "other")]]
    rows, query = streamed(spark, tmp_path, rule, batches)
    assert rows == [{"t": 2.0}, {"t": 3.0}]
    assert counted(query) == (4, 1)


def test_a_window_comes_once(spark: SparkSession, tmp_path: Path) -> None:
    rule = compile_rule(
        "SELECT date_format(window.start, 'HH:mm') AS start, sum(payload.t) AS s FROM \"s/+\" "
        "GROUP BY window(published_at, '1 minute') WATERMARK '10 seconds'"
    )
    batches = [
        [at(0, {"t": 1}), at(59, {"t": 2})],
        [at(65, {"t": 4}), at(30, {"t": 8})],  # the second one is late, and waited for
        [at(200, {"t": 16})],  # now both windows are over
        [at(201, {"t": 16})],
        [at(31, {"t": 32})],  # too late
    ]
    rows, _ = streamed(spark, tmp_path, rule, batches)
    assert rows == [{"start": "12:00", "s": 11.0}, {"start": "12:01", "s": 4.0}]


def test_a_decoder_in_python(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.checked("s", "sparkplug")
    rule = compile_rule('FOREACH payload.metrics AS m DO m.name AS n INCASE m.integer < -1 FROM "s/+"', schema)
    rows, query = streamed(spark, tmp_path, rule, [[at(0, sparkplug_payloads.DBIRTH), at(1, b"\x07")]])
    assert rows == [{"n": "Count"}, {"n": "Big"}]
    assert counted(query) == (2, 1)


@pytest.mark.parametrize("kind", ["plain", "decoded"])
def test_a_payload_is_decoded_once(spark: SparkSession, kind: str) -> None:
    """Spark pushes conditions down; the decoding must not be repeated in them."""
    schema = None if kind == "plain" else Schema.checked("s", "json", {"fields": "a double, b double"})
    rule = compile_rule(
        'SELECT payload.a AS a, payload.b AS b FROM "s/+" WHERE payload.a > 1 AND payload.b < 3', schema
    )
    frame = spark.createDataFrame(sample_messages([at(0, {"a": 2, "b": 1})]))
    plan = apply_rule(frame, rule)._jdf.queryExecution().optimizedPlan().toString()
    function = "parse_json" if kind == "plain" else "from_json"
    assert plan.count(function) == 1 or plan.count("parseJson") == 1, plan

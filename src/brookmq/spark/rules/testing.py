"""A rule tried on sample messages: what would come out?

Everything goes through Spark as in a pipeline. Rows go in as Arrow and come out as one JSON text each, which is what
the caller needs, and the only form in which values of a JSON payload (VARIANT) leave Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from brookmq.base.errors import CallerError
from brookmq.spark.rules.analysing import first_line
from brookmq.spark.rules.applying import apply_rule, counts, matched_messages
from brookmq.spark.rules.compiling import CompiledRule
from brookmq.spark.rules.errors import RuleError
from brookmq.spark.schema import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

SAMPLES_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Tried:
    """``matched`` messages of the topic filters, of which ``failed`` could not be decoded; ``rows`` came out."""

    rows: tuple[dict[str, Any], ...]
    matched: int
    failed: int


def sample_messages(messages: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of messages as the source has them. A payload may be bytes, text, or a value that becomes JSON."""
    if len(messages) > SAMPLES_MAX:
        raise CallerError(f"more than {SAMPLES_MAX} sample messages")
    schema = arrow_schema()
    now = datetime.now(UTC)
    rows = []
    for offset, message in enumerate(messages):
        for name in message:
            if name not in schema.names:
                raise CallerError(f"a message has no column {name!r}")
        row = {"qos": 0, "retain": False, "published_at": now, "partition": 0, "offset": offset, **message}
        payload = row.get("payload", b"")
        if isinstance(payload, str):
            payload = payload.encode()
        rows.append({**row, "payload": payload if isinstance(payload, bytes) else json.dumps(payload).encode()})
    return pa.Table.from_pylist(rows, schema=schema)


def try_rule(spark: SparkSession, rule: CompiledRule, messages: pa.Table) -> Tried:
    """The rule on these messages, in a session of its own of a Spark that is warm."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    if messages.num_rows > SAMPLES_MAX:
        raise CallerError(f"more than {SAMPLES_MAX} sample messages")
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    observed = Observation()
    try:
        frame = session.createDataFrame(messages).coalesce(1)
        rows = apply_rule(frame, rule, observed)
        names = [f.col(f"`{column.name}`") for column in rule.columns]
        texts = rows.select(f.to_json(f.struct(*names), {"ignoreNullFields": "false"})).collect()
        found = _counted(observed, frame, rule)
    except (PySparkException, Py4JJavaError) as error:
        raise RuleError(f"Spark cannot run this rule: {first_line(error)}") from None
    return Tried(tuple(json.loads(text) for (text,) in texts), found["matched"], found["failed"])


def _counted(observed: Observation, frame: DataFrame, rule: CompiledRule) -> dict[str, Any]:
    """What Spark counted on the way; by a query of its own if it saw that no message can pass, and read none."""
    from py4j.protocol import Py4JJavaError

    try:
        return dict(observed.get)
    except Py4JJavaError:
        row = matched_messages(frame, rule).agg(*counts(rule)).collect()[0]
        return dict(row.asDict())

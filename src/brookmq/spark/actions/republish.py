"""Rows back to MQTT: each row of a rule is a message, published by the node exactly once.

Executors hand their rows to the node as the sink does. The node knows a row by the query, the batch, its partition and
its number there, and drops what comes again. So rows have to come again in the same order. Those of a rule without
groups do, since messages are read in the order of their offsets; groups come as Spark's shuffle brings them, and are
sorted (``steady`` false).

A row that can't be published (a topic with a NULL or a wildcard in it, a payload larger than the node allows) is left
out, counted and logged. It would fail again whenever the batch is tried, and one message of a stranger's would hold up
the rule for ever.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, VariantType

from brookmq.base.rule_documents import RepublishAction
from brookmq.spark.actions.interface import ActionError, BatchKey, NodeAccess
from brookmq.spark.actions.storable import JSON_OPTIONS
from brookmq.spark.row_sender import PartitionKey, send_rows
from brookmq.spark.rules.types import quoted
from brookmq.spark.sink_columns import SinkColumns, sink_columns
from brookmq.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

logger = logging.getLogger(__name__)

JSON: Final = "json"
OUTCOME: Final = "published bigint, expired bigint, bad bigint, error string"
TAG_CHARACTERS: Final = 12

_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]*)\}")
_NESTED: Final = (ArrayType, MapType, StructType, VariantType)


class Republisher:
    """Publishes the rows of one action. ``steady``: a batch that comes again has its rows in the same order."""

    def __init__(self, document: RepublishAction, node: NodeAccess, schema: StructType, *, steady: bool = True) -> None:
        self._document = document
        self._where = f"republish to {document.topic}"
        self._check(schema)
        self._options = SinkOptions(
            servers=node.servers,
            token=node.token,
            topic=None,
            qos=document.qos,
            retain=document.retain,
            query=None,
            batch=None,
            skip_bad_rows=True,
            sort_rows=not steady,
        )
        # Two actions of a rule have rows with the same numbers.
        settings = document.model_dump_json(include={"topic", "qos", "retain", "payload"})
        self._tag = hashlib.sha256(settings.encode()).hexdigest()[:TAG_CHARACTERS]

    def write(self, frame: DataFrame, key: BatchKey) -> int:
        messages = frame.select(self._topic().alias("topic"), self._payload(frame.schema).alias("payload"))
        task = _PublishTask(
            f"{key.query}/{self._tag}", key.batch, self._options, sink_columns(messages.schema, self._options)
        )
        outcomes = messages.mapInArrow(task, OUTCOME).collect()
        for outcome in outcomes:
            if outcome.error is not None:
                raise ActionError(f"{self._where}: {outcome.error}")
        bad = sum(outcome.bad for outcome in outcomes)
        if bad:
            logger.warning("%s: %d rows of batch %d can't be published, and are left out", self._where, bad, key.batch)
        return sum(outcome.published for outcome in outcomes)

    def close(self) -> None:
        """Each task has a connection of its own."""

    def _check(self, schema: StructType) -> None:
        types = {field.name: field.dataType for field in schema.fields}
        for name in self._document.topic_columns:
            if name not in types:
                raise ActionError(f"{self._where}: the rule has no column {name!r}; it has {', '.join(types)}")
            if not isinstance(types[name], StringType):
                raise ActionError(f"{self._where}: the column {name} is {types[name].simpleString()}, and no text")
        payload = self._document.payload
        if payload != JSON and payload not in types:
            raise ActionError(f"{self._where}: payload: the rule has no column {payload!r}; it has {', '.join(types)}")

    def _topic(self) -> Column:
        """NULL where a column of it is."""
        pieces = _PLACEHOLDER.split(self._document.topic)  # text and names of columns by turns
        columns = [f.col(quoted(piece)) if at % 2 else f.lit(piece) for at, piece in enumerate(pieces) if piece]
        return f.concat(*columns)

    def _payload(self, schema: StructType) -> Column:
        if self._document.payload == JSON:
            return f.to_json(f.struct(*(f.col(quoted(name)) for name in schema.names)), JSON_OPTIONS)
        column, kind = f.col(quoted(self._document.payload)), schema[self._document.payload].dataType
        if isinstance(kind, _NESTED):
            return f.to_json(column, JSON_OPTIONS)
        return column if isinstance(kind, (BinaryType, StringType)) else column.cast("string")


@dataclass(frozen=True, slots=True)
class _PublishTask:
    """What each executor does with its part of a batch. What the node does not take is told, and is no failure of the
    task: that would look like one of the rows themselves."""

    query: str
    batch: int
    options: SinkOptions
    columns: SinkColumns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        context = TaskContext.get()
        assert context is not None, "rows are published by tasks"
        outcome: dict[str, Any] = {"published": 0, "expired": 0, "bad": 0, "error": None}
        try:
            counts = send_rows(
                batches, self.columns, self.options, PartitionKey(self.query, self.batch, context.partitionId())
            )
            outcome.update(published=counts.published, expired=counts.expired, bad=counts.bad)
        except (OSError, LookupError, ValueError) as error:
            outcome["error"] = str(error).removeprefix("brookmq: ")
            for _ in batches:  # to the end: others count these rows
                pass
        schema = pa.schema([
            ("published", pa.int64()), ("expired", pa.int64()), ("bad", pa.int64()), ("error", pa.string()),
        ])  # fmt: skip
        yield pa.RecordBatch.from_pylist([outcome], schema=schema)

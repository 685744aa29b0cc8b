"""Rows to MQTT: ``frame.write.format("brookmq")`` and ``frame.writeStream.format("brookmq")``.

Executors hand rows over to a node, which publishes each of them once. Nothing is left to do for a commit: what a batch
has published is stored when its tasks end, and is known to the node when the batch comes once more.

A stream is known by Spark's id of the query, which is in its checkpoint and goes with it. A batch write has a name of
its own, so that tasks can be tried again; with the options ``query`` and ``batch`` the whole write can.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from brookmq.spark.node_client import NodeClient
from brookmq.spark.row_sender import Counts, PartitionKey, send_rows
from brookmq.spark.sink_columns import SinkColumns
from brookmq.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("brookmq.spark")

QUERY_PROPERTY: Final = "sql.streaming.queryId"
BATCH_PROPERTY: Final = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    counts: Counts


class BatchSink(DataSourceArrowWriter):
    """One write of a frame."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns
        self._query = options.query or f"write-{uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        key = PartitionKey(self._query, self._options.batch or 0, _context().partitionId())
        return Written(send_rows(iterator, self._columns, self._options, key))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _tell(messages)
        self._forget()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._forget()

    def _forget(self) -> None:
        """Nobody will ask again for what was written without a name."""
        if self._options.query is not None:
            return
        client = NodeClient(self._options.servers, self._options.token)
        client.patience_s = 0.0
        try:
            client.forget_query(self._query)
        except (OSError, LookupError, ValueError) as error:
            log.info("what was published as %s stays known to the node: %s", self._query, error)
        finally:
            client.close()


class StreamSink(DataSourceStreamArrowWriter):
    """The batches of a stream."""

    def __init__(self, options: SinkOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = _context()
        query = self._options.query or context.getLocalProperty(QUERY_PROPERTY)
        batch = context.getLocalProperty(BATCH_PROPERTY)
        if query is None or batch is None:
            raise ValueError("brookmq: Spark does not say which batch of which query this is")
        key = PartitionKey(query, int(batch), context.partitionId())
        return Written(send_rows(iterator, self._columns, self._options, key))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        _tell(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was published stays so, and is not published again with the next attempt."""


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by tasks"
    return context


def _tell(messages: Sequence[WriterCommitMessage | None]) -> None:
    counts = [message.counts for message in messages if isinstance(message, Written)]
    bad = sum(each.bad for each in counts)
    if bad:
        log.warning("%d rows could not be published, and were skipped", bad)

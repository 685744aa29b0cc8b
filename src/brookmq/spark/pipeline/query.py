"""One attempt at a query: a rule or table as a stream in Spark, from its start to its end.

It is ended between two batches where that is possible. Then everything that was written is in its checkpoint, and a
changed rule goes on behind it. Ending it in the middle loses nothing either: the batch comes again under the same key.
But a changed rule would make other rows of it under another key, and rows of both versions would be there.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from brookmq.spark.actions.interface import BatchKey, NodeAccess
from brookmq.spark.pipeline.batches import BatchError, BatchWriter
from brookmq.spark.pipeline.checkpoints import Generation
from brookmq.spark.pipeline.explaining import explained
from brookmq.spark.pipeline.plans import Plan, plan_of
from brookmq.spark.pipeline.wanted import WantedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PACE: Final = "2 seconds"
PACED_FACTOR: Final = 10  # rows of a paced batch, as it comes less often: what waits is caught up with all the same
LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Settings:
    """What all queries of a pipeline have in common."""

    node: NodeAccess
    rows_per_batch: int
    once: bool = False


@dataclass(frozen=True, slots=True)
class Calls:
    """What is told of a run, on threads of Spark's: it came to a batch, it wrote one, it went on without an action."""

    lived: Callable[[], None]
    wrote: Callable[[], None]
    action_failed: Callable[[str], None]


class QueryRun:
    """One attempt. Started and stopped once, on any thread."""

    def __init__(self, query: WantedQuery, settings: Settings, calls: Calls) -> None:
        self.query = query
        self._settings = settings
        self._plan: Plan = plan_of(query, settings.node)
        self._calls = calls
        self._stream: StreamingQuery | None = None
        self._run_id = ""
        self._writer: BatchWriter | None = None
        self._generation: Generation | None = None
        self._key: str | None = None
        self._failure: BatchError | None = None
        self._stopping = False
        self._patient_until = 0.0  # meaningful while stopping
        self._lock = threading.Lock()
        self._batch: int | None = None  # that is being written
        self._written: int | None = None  # the last one that was

    def start(self, spark: SparkSession, generation: Generation) -> None:
        """Raises what Spark or an action raises about a query that can't be started."""
        plan, settings = self._plan, self._settings
        rows_max = settings.rows_per_batch * (PACED_FACTOR if plan.paced else 1)
        options = {
            "servers": ",".join(settings.node.servers),
            "filter": json.dumps(plan.filters),
            "columns": ",".join(plan.columns),
            "readerName": self.query.reader,
            "startingPosition": json.dumps(generation.start),
            "maxRowsPerBatch": str(rows_max),
            "failOnDataLoss": "false",  # what is gone stays gone: it is counted, told, and passed over
        }
        if settings.node.token is not None:
            options["token"] = settings.node.token
        rows = plan.rows(spark.readStream.format("brookmq").options(**options).load())
        self._generation = generation
        self._writer = BatchWriter(plan.chains(rows.schema), plan.on_action_failed, self._calls.action_failed)
        # Queries share the processor fairly: a pool of its own for each, and the pool is that of the starting thread.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.query.name)
        stream = rows.writeStream.queryName(self.query.name).outputMode(plan.output_mode)
        stream = stream.option("checkpointLocation", str(generation.checkpoint)).foreachBatch(self._write)
        if settings.once:
            stream = stream.trigger(availableNow=True)
        elif plan.paced:
            stream = stream.trigger(processingTime=PACE)
        self._stream = stream.start()
        self._run_id = str(self._stream.runId)

    @property
    def run_id(self) -> str:
        """Spark's name for this attempt in its reports; empty before it is started."""
        return self._run_id

    def is_over(self) -> bool:
        return self._stream is not None and not self._stream.isActive

    def outcome(self) -> BatchError | None:
        """Of a query that is over: what ended it; None if it was asked to end, or was done."""
        assert self._stream is not None
        error = self._stream.exception()
        if error is None or self._stopping:
            return None
        return self._failure or BatchError(explained(str(error)))

    def stop(self, patience_s: float) -> None:
        """Ends the query, if it can behind the batch that it is at; returns when it is over."""
        self._patient_until = time.monotonic() + patience_s
        with self._lock:
            self._stopping = True
        stream, writer = self._stream, self._writer
        assert stream is not None
        assert writer is not None
        while stream.isActive and not self._between_batches() and time.monotonic() < self._patient_until:
            time.sleep(LOOK_S)
        writer.close()  # what waits for somebody else does not wait any longer
        stream.stop()

    def hurry(self) -> None:
        """A stop that waits for a batch waits no longer."""
        self._patient_until = 0.0

    def close(self) -> None:
        """Lets go of what actions hold, behind the end of the query."""
        if self._writer is not None:
            self._writer.close()

    def _between_batches(self) -> bool:
        """Nothing is being written, and what was is in the checkpoint: Spark reports behind that."""
        with self._lock:
            batch, written = self._batch, self._written
        if batch is not None:
            return False
        if written is None:
            return True
        progress = self._stream.lastProgress if self._stream is not None else None
        return progress is not None and int(progress["batchId"]) >= written

    def _write(self, frame: DataFrame, batch: int) -> None:
        """Called by Spark, again with the same batch if it does not know that it was written."""
        assert self._writer is not None
        assert self._generation is not None
        with self._lock:
            if self._stopping:
                raise BatchError("the query is being stopped")
            self._batch = batch
        self._calls.lived()
        try:
            if self._key is None:
                self._key = self._generation.query_id
            self._writer.write(frame, BatchKey(self._key, batch))
        except BatchError as error:
            self._failure = error
            raise
        except (PySparkException, Py4JError) as error:
            # Short, and without the text of Java's exception: Spark looks for that with an expression which uses up the
            # stack of its thread where the text is long.
            self._failure = BatchError(explained(str(error)))
            raise self._failure from None
        else:
            with self._lock:
                self._written = batch
        finally:
            with self._lock:
                self._batch = None
        self._calls.wrote()

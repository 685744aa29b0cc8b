"""A Spark driver that publishes what the journal has, and dies on the way: it is killed with its JVM, as by kill -9,
behind some rows of a batch, or when all of them are written and Spark does not know it yet.

Arguments: the URL of a node, a folder for the checkpoint, and for each batch when to die in it: write, commit or "".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from pyspark import TaskContext
from pyspark.sql.types import StructType

import brookmq.spark
from brookmq.spark.sink import BATCH_PROPERTY, StreamSink
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from brookmq.spark.source import BrookSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage

PLAN = "BROOKMQ_TEST_DEATHS"  # Spark's processes inherit it
ROWS_PER_BATCH = 100
SLICE_ROWS = 5
SLICES_BEFORE_DEATH = 3


def die(when: str, batch: int) -> None:
    """Once for each batch that is to be died in."""
    plan = json.loads(os.environ[PLAN])
    mark = Path(plan["folder"]) / f"died-{batch}"
    if batch >= len(plan["deaths"]) or plan["deaths"][batch] != when or mark.exists():
        return
    mark.touch()
    driver = psutil.Process(plan["driver"])
    for process in [*driver.children(recursive=True), driver]:
        if process.pid != os.getpid():
            with suppress(psutil.NoSuchProcess):  # ended by itself meanwhile
                process.kill()
    os._exit(9)


class DyingSink(StreamSink):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return super().write(dying(iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        die("commit", batchId)


def dying(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Few rows at a time, which are sent before the next ones are asked for."""
    context = TaskContext.get()
    assert context is not None
    slices = 0
    for batch in batches:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            if slices == SLICES_BEFORE_DEATH:
                die("write", int(context.getLocalProperty(BATCH_PROPERTY) or -1))
            yield batch.slice(start, SLICE_ROWS)
            slices += 1


class DyingSource(BrookSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamSink:
        options = sink_options(dict(self.options), stream=True)
        return DyingSink(options, sink_columns(schema, options))


def main(url: str, folder: str, deaths: list[str]) -> None:
    os.environ[PLAN] = json.dumps({"folder": folder, "driver": os.getpid(), "deaths": deaths})
    settings: dict[str, Any] = {"spark__local__dir": f"{folder}/local", "spark__sql__shuffle__partitions": 2}
    spark = brookmq.spark.session("local[2]", **settings)
    spark.dataSource.register(DyingSource)
    messages = spark.readStream.format("brookmq").options(
        servers=url, filter="in/#", startingPosition="earliest", maxRowsPerBatch=ROWS_PER_BATCH
    )
    rows = messages.load().selectExpr("replace(topic, 'in', 'out') topic", "payload", "2 qos")
    writer = rows.writeStream.format("dying").options(servers=url, checkpointLocation=f"{folder}/checkpoint")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3].split(","))

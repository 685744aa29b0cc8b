"""Reading the journal, side by side with Spark's own Parquet reader.

The same rows and columns, from the journal of a node and from a Parquet folder that was written from it, into a sink
that does nothing. What is compared is the CPU time of all of Spark's processes (the JVM, the Python workers) per
million rows; the store's is told beside it. Rounds are interleaved, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.spark.journal import CHUNK, Publisher, node
from bench.spark.processes import cpu_s, java_of, own_cpu_s
from bench.spark.results import Figures, Say
from bench.spark.tables import FEW_COLUMNS
from brookmq.spark import session
from brookmq.spark.node_client import NodeClient

if TYPE_CHECKING:
    import psutil
    from pyspark.sql import DataFrame, SparkSession

MILLION: Final = 1_000_000
SHARDS: Final = 4
MASTER: Final = "local[2,2]"


class RowsMissingError(Exception):
    """What came out of the journal is not what went in."""


def read_rounds(folder: Path, rows: int, rounds: int, say: Say) -> dict[str, list[Figures]]:
    """By comparison, the figures of each round."""
    rows -= rows % CHUNK
    with node(folder / "node", SHARDS) as running:
        began = time.monotonic()
        publisher = Publisher(running.mqtt_port)
        publisher.many(rows)
        publisher.close()
        say(f"{rows:,} rows published, {rows / (time.monotonic() - began):,.0f} a second")
        spark = session(MASTER, spark__local__dir=folder / "spark")
        try:
            comparison = _Comparison(spark, running.url, folder / "parquet", rows, running.store)
            return comparison.rounds(rounds, say)
        finally:
            spark.stop()


class _Comparison:
    def __init__(self, spark: SparkSession, url: str, parquet: Path, rows: int, store: psutil.Process) -> None:
        self._spark = spark
        self._url = url
        self._parquet = str(parquet)
        self._rows = rows
        self._store = store
        self._java = java_of(spark)
        self._journal().write.parquet(self._parquet)
        stored = self._files().count()
        if stored != rows:
            raise RowsMissingError(f"{stored:,} rows came out of the journal, {rows:,} went in")

    def rounds(self, count: int, say: Say) -> dict[str, list[Figures]]:
        one_shard, rows_of_one = self._one_partition()
        ways: dict[str, dict[str, tuple[Callable[[], DataFrame], int]]] = {
            "read-all": {"brookmq": (self._journal, self._rows), "parquet": (self._files, self._rows)},
            "read-few": {
                "brookmq": (lambda: self._journal(columns=FEW_COLUMNS), self._rows),
                "parquet": (lambda: self._files().select(*FEW_COLUMNS.split(",")), self._rows),
            },
            "partitions": {
                "one": (lambda: self._journal(startingPosition=one_shard), rows_of_one),
                "all": (self._journal, self._rows),
            },
        }
        found: dict[str, list[Figures]] = {key: [] for key in ways}
        for pair in ways.values():
            for frame, _ in pair.values():
                _consume(frame())  # once for the compilers
        for number in range(count):
            for key, pair in ways.items():
                figures: Figures = {}
                for way, (frame, rows) in pair.items():
                    measured = self._measured(frame, rows)
                    figures |= {f"{way}_{name}": value for name, value in measured.items()}
                found[key].append(figures)
                say(f"round {number + 1}, {key}: {figures}")
        return found

    def _journal(self, **options: str) -> DataFrame:
        return self._spark.read.format("brookmq").options(servers=self._url, **options).load()

    def _files(self) -> DataFrame:
        return self._spark.read.parquet(self._parquet)

    def _one_partition(self) -> tuple[str, int]:
        """A position from which only the first shard has something to read, and how much."""
        client = NodeClient([self._url])
        ends = client.journal().ends
        client.close()
        return json.dumps({str(shard): end for shard, end in ends.items() if shard > 0}), ends[0]

    def _measured(self, frame: Callable[[], DataFrame], rows: int) -> Figures:
        def now() -> tuple[float, float, float]:
            together = cpu_s(self._java)
            return together, together - own_cpu_s(self._java), cpu_s(self._store)

        before, began = now(), time.monotonic()
        _consume(frame())
        took = time.monotonic() - began
        spark, python, store = (after - earlier for after, earlier in zip(now(), before, strict=True))
        return {
            "cpu_s": round(spark * MILLION / rows, 3),
            "python_cpu_s": round(python * MILLION / rows, 3),
            "store_cpu_s": round(store * MILLION / rows, 3),
            "rows_per_s": round(rows / took),
        }


def _consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()

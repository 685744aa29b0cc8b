"""A stream that follows the journal: how long a message takes to the sink, and what waiting costs."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Final

from bench.spark.journal import Publisher, node
from bench.spark.processes import own_cpu_s
from bench.spark.results import Figures, Say
from brookmq.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MASTER: Final = "local[2,2]"
SHARDS: Final = 4
PAUSE_S: Final = 0.37  # between messages: no multiple of anything that a query does
WARM_MESSAGES: Final = 40  # until the compilers have seen everything
ARRIVAL_S: Final = 60.0
IDLE_AFTER_S: Final = 12.0  # an idle stream asks less often from some time on
LOOK_S: Final = 0.02


def follow_rounds(folder: Path, messages: int, idle_s: float, rounds: int, say: Say) -> dict[str, list[Figures]]:
    """Latency and idle cost, of a query each."""
    found: dict[str, list[Figures]] = {"latency": [], "idle": []}
    spark = session(MASTER, spark__local__dir=folder / "spark")
    try:
        for number in range(rounds):
            with node(folder / f"node-{number}", SHARDS) as running:
                following = _Following(spark, running.url, folder / f"checkpoint-{number}")
                try:
                    found["latency"].append(following.latency(running.mqtt_port, messages))
                    time.sleep(IDLE_AFTER_S)
                    before = [own_cpu_s(running.store), own_cpu_s(running.own)]
                    time.sleep(idle_s)
                    after = [own_cpu_s(running.store), own_cpu_s(running.own)]
                finally:
                    following.stop()
            store, own = (100 * (new - old) / idle_s for new, old in zip(after, before, strict=True))
            found["idle"].append({"store_percent": round(store, 3), "node_percent": round(own, 3)})
            say(f"round {number + 1}, following: {found['latency'][-1]} {found['idle'][-1]}")
    finally:
        spark.stop()
    return found


class _Following:
    """A query whose sink notes when it has which row."""

    def __init__(self, spark: SparkSession, url: str, checkpoint: Path) -> None:
        self._called: dict[bytes, float] = {}
        self._arrived: dict[bytes, float] = {}
        stream = spark.readStream.format("brookmq").option("servers", url).load()
        writer = stream.writeStream.foreachBatch(self._sink).option("checkpointLocation", str(checkpoint))
        self._query: StreamingQuery = writer.start()
        self._wait(lambda: bool(self._query.recentProgress))

    def _sink(self, rows: DataFrame, _batch: int) -> None:
        called = time.monotonic()
        found = [bytes(row.payload) for row in rows.select("payload").collect()]
        arrived = time.monotonic()
        for payload in found:
            self._called[payload] = called
            self._arrived[payload] = arrived

    def latency(self, port: int, messages: int) -> Figures:
        sent: dict[bytes, float] = {}
        publisher = Publisher(port)
        for number in range(WARM_MESSAGES + messages):
            payload = b"%d" % number
            sent[payload] = time.monotonic()
            publisher.one("bench/latency", payload)
            time.sleep(PAUSE_S)
        publisher.close()
        self._wait(lambda: len(self._arrived) == len(sent))
        measured = list(sent)[WARM_MESSAGES:]
        to_call = quantiles([self._called[one] - sent[one] for one in measured], n=10)
        to_rows = quantiles([self._arrived[one] - sent[one] for one in measured], n=10)
        last = self._query.lastProgress
        assert last is not None
        figures = {"call_p50_s": to_call[4], "rows_p50_s": to_rows[4], "rows_p90_s": to_rows[8]}
        figures |= {f"batch_{name}_s": value / 1000 for name, value in last["durationMs"].items()}
        return {name: round(value, 3) for name, value in figures.items()}

    def stop(self) -> None:
        self._query.stop()

    def _wait(self, condition: object) -> None:
        assert callable(condition)
        deadline = time.monotonic() + ARRIVAL_S
        while not condition():
            if not self._query.isActive or time.monotonic() >= deadline:
                raise TimeoutError(f"the stream does not follow: {self._query.exception()}")
            time.sleep(LOOK_S)

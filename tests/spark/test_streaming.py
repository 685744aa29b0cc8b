"""The format ``brookmq`` with a real node and a real Spark: streams."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from pyspark.errors import StreamingQueryException

from tests.harness.raw import unique
from tests.spark.journal_node import JournalNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

WAIT_S = 90.0  # for what takes a second: the machine may have other things to do
IDLE_S = 5.0


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


class Sink:
    """Rows by batch, as ``foreachBatch`` gets them."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int, str, bytes]]] = {}
        self._changed = threading.Condition()

    def __call__(self, batch: DataFrame, number: int) -> None:
        rows = [(row.partition, row.offset, row.topic, bytes(row.payload)) for row in batch.collect()]
        with self._changed:
            self.batches[number] = rows
            self._changed.notify_all()

    @property
    def rows(self) -> list[tuple[int, int, str, bytes]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def await_rows(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.rows) >= count, WAIT_S), f"{len(self.rows)} of {count} rows"


def stream(spark: SparkSession, journal: JournalNode, sink: Sink, checkpoint: Path, **options: Any) -> DataStreamWriter:
    messages = spark.readStream.format("brookmq").options(servers=journal.url, **options).load()
    return messages.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))


def drained(writer: DataStreamWriter) -> StreamingQuery:
    """Runs until everything is read that is there now."""
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    return query


def numbered(prefix: str, first: int, count: int) -> list[tuple[str, bytes]]:
    return [(f"{prefix}/{number % 7}", b"%d" % number) for number in range(first, first + count)]


def payloads(sink: Sink) -> list[int]:
    return sorted(int(payload) for *_, payload in sink.rows)


def test_available_now_reads_everything_and_goes_on_from_its_checkpoint(
    spark: SparkSession, journal: JournalNode, tmp_path: Path
) -> None:
    prefix = unique("now")
    options = {"filter": f"{prefix}/#", "startingPosition": "earliest"}
    journal.publish_all(numbered(prefix, 0, 500))
    sink = Sink()
    drained(stream(spark, journal, sink, tmp_path, **options))
    assert payloads(sink) == list(range(500))
    assert len(sink.batches) == 1
    journal.publish_all(numbered(prefix, 500, 100))
    again = Sink()
    drained(stream(spark, journal, again, tmp_path, **options))
    assert payloads(again) == list(range(500, 600))
    nothing = Sink()
    drained(stream(spark, journal, nothing, tmp_path, **options))
    assert nothing.rows == []


def test_a_limit_is_exact_to_the_row(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    prefix = unique("limit")
    before = journal.ends()
    journal.publish_all(numbered(prefix, 0, 500))
    sink = Sink()
    query = drained(stream(spark, journal, sink, tmp_path, startingPosition=json.dumps(before), maxRowsPerBatch=120))
    assert payloads(sink) == list(range(500))
    sources = [progress["sources"][0] for progress in query.recentProgress]
    reached = [sum(before.values()), *(offsets(source["endOffset"]) for source in sources)]
    taken = [after - earlier for earlier, after in pairwise(reached)]
    assert taken[:-1] == [120] * 4
    assert taken[-1] <= 120
    positions = [(partition, offset) for partition, offset, *_ in sink.rows]
    assert len(set(positions)) == len(positions)
    assert offsets(sources[-1]["latestOffset"]) == offsets(sources[-1]["endOffset"])


def offsets(text: str) -> int:
    """Over all partitions, of a position in a progress report."""
    return sum(json.loads(text)["offsets"].values())


def test_a_stream_begins_at_the_end_and_follows(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    prefix = unique("live")
    journal.publish_all(numbered(prefix, 0, 50))
    sink = Sink()
    query = stream(spark, journal, sink, tmp_path, filter=f"{prefix}/#").start()
    try:
        deadline = time.monotonic() + WAIT_S
        while not (tmp_path / "offsets" / "0").exists() and not query.recentProgress:  # the first look at the end
            assert time.monotonic() < deadline
            assert query.isActive, query.exception()
            time.sleep(0.05)
        for first in (50, 80, 110):
            journal.publish_all(numbered(prefix, first, 30))
            sink.await_rows(first + 30 - 50)
        assert payloads(sink) == list(range(50, 140))
    finally:
        query.stop()


def test_a_named_reader_is_known_to_the_node(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    prefix, name = unique("named"), unique("reader")
    journal.publish_all(numbered(prefix, 0, 50))
    options = {"startingPosition": "earliest", "readerName": name, "filter": f"{prefix}/#"}
    drained(stream(spark, journal, Sink(), tmp_path, **options))
    with urlopen(f"{journal.url}/api/v1/readers/{name}") as answer:
        found = json.load(answer)
    assert found["position"] == {str(shard): end for shard, end in journal.ends().items()}
    assert (found["lag"], found["lost"], found["alive"], found["filter"]) == (0, 0, True, [f"{prefix}/#"])


def test_an_idle_stream_leaves_store_and_node_alone(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    import psutil

    query = stream(spark, journal, Sink(), tmp_path).start()
    try:
        deadline = time.monotonic() + WAIT_S
        while not query.recentProgress:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        processes = {"store": journal.store, "node": psutil.Process(journal.node.process.pid)}
        before = {name: sum(process.cpu_times()[:2]) for name, process in processes.items()}
        time.sleep(IDLE_S)  # what is measured is a time in which nothing happens
        used = {name: sum(process.cpu_times()[:2]) - before[name] for name, process in processes.items()}
        assert used["store"] <= 0.02 * IDLE_S + 0.02, used
        assert used["node"] <= 0.05 * IDLE_S + 0.02, used
        assert query.isActive, query.exception()
    finally:
        query.stop()


def test_loss_in_the_middle_is_an_error_or_is_counted(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lossy")
    journal = JournalNode(folder, shards=1)
    try:
        journal.publish_all(numbered("a", 0, 10))
        sink = Sink()
        drained(stream(spark, journal, sink, folder / "c", startingPosition="earliest"))
        for first in range(10, 410, 100):
            journal.publish_all(numbered("a", first, 100))
        journal.purge(0, keep=2)
        journal.await_first(0, above=10)
        query = stream(spark, journal, sink, folder / "c").trigger(availableNow=True).start()
        with pytest.raises(StreamingQueryException, match="are gone from the journal"):
            query.awaitTermination(WAIT_S)
        journal.publish_all(numbered("a", 410, 10))
        query = drained(stream(spark, journal, sink, folder / "c", failOnDataLoss=False))
        got = payloads(sink)
        assert got[:10] == list(range(10))
        assert got[10:] == list(range(420 - len(got[10:]), 420))
        assert 20 < len(got) < 420
        # The batch that had failed is planned again without a look at the end; the next one tells.
        latest = json.loads(query.lastProgress["sources"][0]["latestOffset"])  # type: ignore[index]
        assert latest["lost"] == 420 - len(got)
    finally:
        journal.stop()


def test_another_journal_under_the_checkpoint(
    spark: SparkSession, journal: JournalNode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    journal.publish_all(numbered(unique(), 0, 5))
    drained(stream(spark, journal, Sink(), checkpoint, startingPosition="earliest"))
    other = JournalNode(tmp_path_factory.mktemp("other"))
    try:
        query = stream(spark, other, Sink(), checkpoint).trigger(availableNow=True).start()
        with pytest.raises(StreamingQueryException, match="Start the query with a new checkpoint"):
            query.awaitTermination(WAIT_S)
    finally:
        other.stop()


def test_options_that_are_wrong_for_a_stream(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    query = stream(spark, journal, Sink(), tmp_path, endingPosition="latest").start()
    with pytest.raises(StreamingQueryException, match="a stream has no end; the option endingPosition"):
        query.awaitTermination(WAIT_S)

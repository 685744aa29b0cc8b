"""The sink with a real Spark, a real node and a subscriber: what rows become, and each of them once."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.pandas.types import to_arrow_schema

from brookmq.spark.row_sender import PartitionKey, send_rows
from brookmq.spark.sink import BatchSink
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from tests.harness.node import free_port
from tests.harness.raw import Client, unique
from tests.harness.received import Packet
from tests.harness.wire import Property
from tests.spark.journal_node import JournalNode
from tests.spark.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

WAIT_S = 90.0
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
KEPT = [(Property.SESSION_EXPIRY, 1000), (Property.RECEIVE_MAXIMUM, 1000)]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


@pytest.fixture
def prefix() -> str:
    return unique("sink")


@pytest.fixture
def subscriber(journal: JournalNode, prefix: str) -> Iterator[Client]:
    with Client(journal.node.mqtt).connect(props=KEPT) as client:
        client.subscribe(f"{prefix}/#", qos=2, retain_as_published=True)
        yield client


def write(frame: DataFrame, journal: JournalNode, **options: Any) -> None:
    frame.write.format("brookmq").mode("append").options(servers=journal.url, **options).save()


def stream(frame: DataFrame, journal: JournalNode, checkpoint: Path, **options: Any) -> StreamingQuery:
    writer = frame.writeStream.format("brookmq").options(servers=journal.url, **options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def drained(query: StreamingQuery) -> StreamingQuery:
    assert query.awaitTermination(WAIT_S)
    return query


def taken(client: Client, count: int) -> list[Packet]:
    """So many messages, and not one more."""
    found = [client.take() for _ in range(count)]
    client.expect_nothing()
    return found


def payloads(client: Client, count: int) -> list[int]:
    return sorted(int(packet.payload) for packet in taken(client, count))


def test_a_row_with_everything(spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str) -> None:
    frame = spark.sql(
        f"""select '{prefix}/a' topic, cast('x' as binary) payload, 2 qos, true retain,
        array(named_struct('name', 'k', 'value', 'v'), named_struct('name', 'k', 'value', 'w')) user_properties,
        'text/plain' content_type, 'r/t' response_topic, cast('c' as binary) correlation_data, 1 payload_format,
        timestamp_seconds(unix_seconds(now()) + 1000) expires_at, 'me' client_id, 7L offset"""
    )
    write(frame, journal)
    (got,) = taken(subscriber, 1)
    assert (got.topic, got.payload, got.qos, got.retain) == (f"{prefix}/a".encode(), b"x", 2, True)
    assert got.all(Property.USER_PROPERTY) == [("k", "v"), ("k", "w")]
    assert got.get(Property.CONTENT_TYPE) == "text/plain"
    assert got.get(Property.RESPONSE_TOPIC) == "r/t"
    assert got.get(Property.CORRELATION_DATA) == b"c"
    assert got.get(Property.PAYLOAD_FORMAT) == 1
    assert 900 < got.number(Property.MESSAGE_EXPIRY) <= 1000
    with Client(journal.node.mqtt).connect() as later:
        later.subscribe(f"{prefix}/a", qos=0)
        assert later.take().payload == b"x"


def test_options_for_all_rows_and_text_as_payload(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    frame = spark.sql("select 'elsewhere' topic, 'é' value, map('k', 'v') user_properties")
    write(frame, journal, topic=f"{prefix}/b", qos=1)
    (got,) = taken(subscriber, 1)
    assert (got.topic, got.payload, got.qos, got.retain) == (f"{prefix}/b".encode(), "é".encode(), 1, False)
    assert (got.get(Property.PAYLOAD_FORMAT), got.all(Property.USER_PROPERTY)) == (1, [("k", "v")])


def test_what_the_source_gives_can_be_written_back(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    source = unique("in")
    with Client(journal.node.mqtt).connect() as client:
        for number in range(20):
            props = [(Property.USER_PROPERTY, ("n", str(number))), (Property.CONTENT_TYPE, "t")]
            client.publish(f"{source}/{number % 3}", b"%d" % number, qos=1, props=props if number % 2 else [])
    messages = spark.readStream.format("brookmq").options(
        servers=journal.url, filter=f"{source}/#", startingPosition="earliest"
    )
    frame = messages.load().selectExpr(f"replace(topic, '{source}', '{prefix}') topic", "* except (topic)")
    drained(stream(frame, journal, tmp_path))
    found = taken(subscriber, 20)
    for topic in range(3):
        in_order = [int(packet.payload) for packet in found if packet.topic == f"{prefix}/{topic}".encode()]
        assert in_order == list(range(topic, 20, 3))
    for packet in found:
        number = int(packet.payload)
        assert packet.qos == 1
        assert packet.all(Property.USER_PROPERTY) == ([("n", str(number))] if number % 2 else [])
        assert packet.get(Property.CONTENT_TYPE) == ("t" if number % 2 else None)


def test_a_stream_goes_on_where_it_was(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    source = unique("in")
    messages = spark.readStream.format("brookmq").options(
        servers=journal.url, filter=f"{source}/#", startingPosition="earliest", maxRowsPerBatch=130
    )
    frame = messages.load().selectExpr(f"'{prefix}/x' topic", "payload", "2 qos")
    for first in (0, 300):
        journal.publish_all((f"{source}/{number % 7}", b"%d" % number) for number in range(first, first + 300))
        drained(stream(frame, journal, tmp_path))
        assert payloads(subscriber, 300) == list(range(first, first + 300))
    drained(stream(frame, journal, tmp_path))
    subscriber.expect_nothing()


def set_back(checkpoint: Path) -> None:
    """To where the first batch is begun, and not ended."""
    for path in [*(checkpoint / "commits").iterdir(), *(checkpoint / "offsets").iterdir()]:
        number = path.name.removeprefix(".").removesuffix(".crc")
        if number.isdecimal() and (path.parent.name == "commits" or int(number) > 0):
            path.unlink()


def test_a_batch_that_is_repeated_publishes_nothing_new(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    """As after the death of a driver behind the write: the batch is not in Spark's log of commits."""
    source = unique("in")
    journal.publish_all((f"{source}/{number % 7}", b"%d" % number) for number in range(500))
    messages = spark.readStream.format("brookmq").options(
        servers=journal.url, filter=f"{source}/#", startingPosition="earliest"
    )
    frame = messages.load().selectExpr(f"'{prefix}/x' topic", "payload", "2 qos")
    drained(stream(frame, journal, tmp_path))
    assert payloads(subscriber, 500) == list(range(500))
    set_back(tmp_path)
    drained(stream(frame, journal, tmp_path))
    subscriber.expect_nothing()
    set_back(tmp_path)
    drained(stream(frame, journal, tmp_path, query=unique("query")))
    assert payloads(subscriber, 500) == list(range(500)), "under another name they are new ones"


def test_tasks_that_are_tried_again(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    """The session tries tasks twice; the first time each of them dies behind its first rows."""

    def dying(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            if number and context.attemptNumber() == 0:
                (tmp_path / f"died-{context.partitionId()}").touch()
                raise RuntimeError("the first attempt dies here")
            yield batch

    rows = spark.range(0, 1000, 1, 2).selectExpr(f"'{prefix}/x' topic", "cast(id as string) value", "2 qos")
    spark.conf.set(BATCH_ROWS, 200)
    try:
        write(rows.mapInArrow(dying, rows.schema), journal)
    finally:
        spark.conf.unset(BATCH_ROWS)
    assert {path.name for path in tmp_path.iterdir()} == {"died-0", "died-1"}
    assert payloads(subscriber, 1000) == list(range(1000))


def test_a_named_batch_is_written_once(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    name = unique("query")
    rows = spark.range(100).selectExpr(f"'{prefix}/x' topic", "cast(id as string) value")
    for batch in (0, 0, 1, 1):
        write(rows, journal, query=name, batch=batch)
    assert Counter(payloads(subscriber, 200)) == dict.fromkeys(range(100), 2)
    with pytest.raises(PySparkException, match=f"batch 0 of the query '{name}' comes, and batch 1 of it is published"):
        write(rows, journal, query=name, batch=0)
    subscriber.expect_nothing()


def test_a_write_without_a_name_is_new_each_time(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    rows = spark.range(10).selectExpr(f"'{prefix}/x' topic", "cast(id as string) value")
    for _ in range(2):
        write(rows, journal)
    assert Counter(payloads(subscriber, 20)) == dict.fromkeys(range(10), 2)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_write_without_a_name_leaves_nothing_behind(
    journal: JournalNode, subscriber: Client, prefix: str, end: str
) -> None:
    schema = schema_of("topic string, value string")
    options = sink_options({"servers": journal.url}, stream=False)
    columns = sink_columns(schema, options)
    sink = BatchSink(options, columns)
    batch = pa.RecordBatch.from_pylist([{"topic": f"{prefix}/x", "value": "x"}], schema=to_arrow_schema(schema))
    send_rows([batch], columns, options, PartitionKey(sink._query, 0, 3))
    url = f"{journal.url}/api/v1/publish/exactly-once/{sink._query}/3"
    assert json.load(urlopen(url)) == {"batch": 0, "row": 0}
    getattr(sink, end)([])
    assert json.load(urlopen(url)) == {"batch": -1, "row": -1}
    taken(subscriber, 1)


def test_inside_of_foreach_batch(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    source, name = unique("in"), unique("query")
    journal.publish_all((f"{source}/{number % 7}", b"%d" % (number % 10)) for number in range(500))
    messages = spark.readStream.format("brookmq").options(
        servers=journal.url, filter=f"{source}/#", startingPosition="earliest"
    )
    failures = [RuntimeError("behind the write")]

    def publish(frame: DataFrame, batch: int) -> None:
        rows = (
            frame.groupBy("payload")
            .count()
            .selectExpr(f"concat('{prefix}/', cast(payload as string)) topic", "cast(count as string) value", "2 qos")
        )
        write(rows.repartition(1).sortWithinPartitions(*rows.columns), journal, query=name, batch=batch)
        if failures:
            raise failures.pop()

    writer = messages.load().writeStream.foreachBatch(publish).option("checkpointLocation", str(tmp_path))
    with pytest.raises(StreamingQueryException, match="behind the write"):
        writer.trigger(availableNow=True).start().awaitTermination(WAIT_S)
    drained(writer.trigger(availableNow=True).start())
    assert payloads(subscriber, 10) == [50] * 10


def test_an_aggregation_as_a_stream(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, tmp_path: Path
) -> None:
    source = unique("in")
    journal.publish_all((f"{source}/{number % 7}", b"%d" % number) for number in range(70))
    messages = spark.readStream.format("brookmq").options(
        servers=journal.url, filter=f"{source}/#", startingPosition="earliest"
    )
    counts = messages.load().groupBy("topic").count()
    rows = counts.selectExpr(f"replace(topic, '{source}', '{prefix}') topic", "cast(count as string) value")
    writer = rows.writeStream.outputMode("complete").format("brookmq").options(servers=journal.url, sortRows=True)
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    drained(writer.start())
    assert Counter(packet.topic for packet in taken(subscriber, 7)) == {
        f"{prefix}/{number}".encode(): 1 for number in range(7)
    }


def test_a_bad_row_fails_the_write_or_is_skipped(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    bad = "case id when 7 then 'a/#' when 8 then '$SYS/x' when 9 then null else"
    rows = spark.range(0, 20, 1, 1).selectExpr(f"{bad} '{prefix}/x' end topic", "cast(id as string) value")
    with pytest.raises(
        PySparkException, match=r"brookmq: row 7 of partition 0 can't be published: column topic: 'a/#'"
    ):
        write(rows, journal)
    assert payloads(subscriber, 7) == list(range(7))
    with pytest.raises(PySparkException, match=r"row 0 of partition 0 .* column topic: '\$SYS/x': .*the node's own"):
        write(rows.where("id = 8"), journal)
    write(rows, journal, onBadRow="skip")
    assert payloads(subscriber, 17) == [*range(7), *range(10, 20)]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("'t' topic, 1 payload", {}, "column payload has to be binary or string, not int"),
        ("'t' topic, '' payload, 1 x", {}, "the sink knows no column 'x'"),
        ("'t' topic, '' payload", {"qos": "4"}, "option qos takes 0, 1 or 2"),
        ("'t' topic, '' payload", {"query": "x"}, "options query and batch go together"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(
    spark: SparkSession, columns: str, options: dict[str, str], message: str
) -> None:
    writer = spark.sql(f"select {columns}").write.format("brookmq").mode("append").options(**options)
    with pytest.raises(PySparkException, match=message):
        writer.option("servers", f"http://127.0.0.1:{free_port()}").save()


def test_mistakes_of_a_stream(spark: SparkSession, journal: JournalNode, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("'t' topic", "value payload")
    with pytest.raises(StreamingQueryException, match="column payload has to be binary or string, not bigint"):
        drained(stream(frame, journal, tmp_path))


def test_overwriting_is_refused(spark: SparkSession, journal: JournalNode) -> None:
    writer = spark.sql("select 't' topic, '' value").write.format("brookmq").mode("overwrite")
    with pytest.raises(PySparkException, match="what is published can't be taken back"):
        writer.option("servers", journal.url).save()


def test_nobody_is_there(spark: SparkSession) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    writer = spark.sql("select 't' topic, '' value").write.format("brookmq").mode("append")
    with pytest.raises(PySparkException, match=rf"no node answers \(option servers\): {url} \(refused\)"):
        writer.option("servers", url).save()


def test_a_node_that_is_killed_is_waited_for(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = f'[http]\nbind = "127.0.0.1:{free_port()}"\n'
    journal = JournalNode(tmp_path, config=config)
    try:
        with Client(journal.node.mqtt).connect("kept", clean=False, props=KEPT) as client:
            client.subscribe("out/#", qos=2)
        journal.publish_all((f"in/{number % 7}", b"%d" % number) for number in range(2000))
        messages = spark.readStream.format("brookmq").options(
            servers=journal.url, filter="in/#", startingPosition="earliest", maxRowsPerBatch=100
        )
        frame = messages.load().selectExpr("replace(topic, 'in', 'out') topic", "payload", "2 qos")
        query = stream(frame, journal, tmp_path_factory.mktemp("checkpoint"))
        for batch in (3, 10):
            await_batch(query, batch)
            journal.node.kill()
            journal = JournalNode(tmp_path, config=config)
        drained(query)
        with Client(journal.node.mqtt).connect("kept", clean=False, props=KEPT) as client:
            assert payloads(client, 2000) == list(range(2000))
    finally:
        journal.stop()


def await_batch(query: StreamingQuery, batch: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while query.lastProgress is None or query.lastProgress["batchId"] < batch:
        assert time.monotonic() < deadline
        assert query.isActive, query.exception()
        time.sleep(0.02)

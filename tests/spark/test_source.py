"""The format ``brookmq`` with a real node and a real Spark: batches."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from brookmq.spark.schema import COLUMNS
from tests.harness.node import free_port
from tests.harness.raw import Client, unique
from tests.harness.wire import Property
from tests.spark.journal_node import JournalNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


def load(spark: SparkSession, journal: JournalNode, **options: Any) -> DataFrame:
    return spark.read.format("brookmq").options(servers=journal.url, **options).load()


def moment(unix: float) -> datetime:
    return datetime.fromtimestamp(unix, UTC).replace(tzinfo=None)


def test_every_column_of_every_kind_of_message(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("kinds")
    began = time.time()
    with Client(journal.node.mqtt, 4) as old:
        old.connect("old-client", username="someone", password="secret")
        old.publish(f"{prefix}/0", b"zero")
        old.publish(f"{prefix}/1", b"", qos=1)
        old.publish(f"{prefix}/2", bytes(range(256)), qos=2)
        old.publish(f"{prefix}/retained", b"kept", qos=1, retain=True)
    with Client(journal.node.mqtt, 5) as new:
        new.connect("neu-€𝄞")
        new.publish(f"{prefix}/plain", b"five", qos=1)
        new.publish(
            f"{prefix}/prop/é𝄞", b'{"a": 1}', qos=2, retain=True,
            props=[
                (Property.PAYLOAD_FORMAT, 1), (Property.MESSAGE_EXPIRY, 3600), (Property.CONTENT_TYPE, "text/ü"),
                (Property.RESPONSE_TOPIC, "answer/to"), (Property.CORRELATION_DATA, b"\0\xff"),
                (Property.USER_PROPERTY, ("name", "value")), (Property.USER_PROPERTY, ("name", "again")),
                (Property.USER_PROPERTY, ("", "€")),
            ],
        )  # fmt: skip
        new.publish(f"{prefix}/format", b"f", qos=0, props=[(Property.PAYLOAD_FORMAT, 0)])
    ended = time.time()

    nothing = dict.fromkeys(
        ["username", "user_properties", "content_type", "response_topic", "correlation_data", "payload_format"]
    )
    by_old = {**nothing, "retain": False, "client_id": "old-client", "username": "someone"}
    by_new = {**nothing, "retain": False, "client_id": "neu-€𝄞"}
    pairs = [("name", "value"), ("name", "again"), ("", "€")]
    expected = {
        f"{prefix}/0": {**by_old, "payload": b"zero", "qos": 0},
        f"{prefix}/1": {**by_old, "payload": b"", "qos": 1},
        f"{prefix}/2": {**by_old, "payload": bytes(range(256)), "qos": 2},
        f"{prefix}/retained": {**by_old, "payload": b"kept", "qos": 1, "retain": True},
        f"{prefix}/plain": {**by_new, "payload": b"five", "qos": 1},
        f"{prefix}/prop/é𝄞": {
            **by_new, "payload": b'{"a": 1}', "qos": 2, "retain": True, "user_properties": pairs,
            "content_type": "text/ü", "response_topic": "answer/to", "correlation_data": b"\0\xff", "payload_format": 1,
        },
        f"{prefix}/format": {**by_new, "payload": b"f", "qos": 0, "payload_format": 0},
    }  # fmt: skip
    messages = load(spark, journal, filter=f"{prefix}/#")
    assert messages.columns == list(COLUMNS)
    rows = {row.topic: row.asDict() for row in messages.collect()}
    assert set(rows) == set(expected)
    for topic, row in rows.items():
        found = {name: row[name] for name in expected[topic]}
        if found["user_properties"] is not None:
            found["user_properties"] = [tuple(pair) for pair in found["user_properties"]]
        for name in ("payload", "correlation_data"):
            found[name] = None if found[name] is None else bytes(found[name])
        assert found == expected[topic]
        assert moment(began) <= row["published_at"] <= moment(ended)
        expires_in = None if row["expires_at"] is None else (row["expires_at"] - row["published_at"]).total_seconds()
        assert expires_in == (pytest.approx(3600, abs=1) if "prop" in topic else None)
        assert row["node"] == "brookmq@127.0.0.1"
        assert row["partition"] in (0, 1)


def test_everything_that_was_published_once_each_at_dense_offsets(spark: SparkSession, journal: JournalNode) -> None:
    dice = random.Random(11)
    prefix = unique("all")
    sent = [(f"{prefix}/{dice.randrange(50)}", dice.randbytes(dice.randrange(300))) for _ in range(3000)]
    journal.publish_all(sent[:1500], version=4)
    journal.publish_all(sent[1500:], version=5)
    rows = load(spark, journal, filter=f"{prefix}/+").collect()
    assert sorted((row.topic, bytes(row.payload)) for row in rows) == sorted(sent)
    everything = load(spark, journal, columns="partition,offset", filter="#,$events/#,$SYS/#").collect()
    for shard, end in journal.ends().items():
        assert sorted(row.offset for row in everything if row.partition == shard) == list(range(end))
    # The order in a partition is the order in which they came.
    for topic in {topic for topic, _ in sent}:
        mine = sorted((row.offset, bytes(row.payload)) for row in rows if row.topic == topic)
        assert [payload for _, payload in mine] == [payload for name, payload in sent if name == topic]


def test_filters(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("filter")
    journal.publish_all([(f"{prefix}/{a}/{b}", b"") for a in "abc" for b in "xy,"])

    def topics(filter: str) -> set[str]:
        rows = load(spark, journal, filter=filter, columns="topic").collect()
        return {row.topic.removeprefix(prefix + "/") for row in rows}

    assert topics(f"{prefix}/a/#") == {"a/x", "a/y", "a/,"}
    assert topics(f"{prefix}/+/x, {prefix}/b/y") == {"a/x", "b/x", "c/x", "b/y"}
    assert topics(f'["{prefix}/+/,"]') == {"a/,", "b/,", "c/,"}
    assert topics(f"{prefix}/nothing/#") == set()


def test_columns_and_a_schema_of_ones_own(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("columns")
    journal.publish_all([(f"{prefix}/a", b"payload")])
    chosen = load(spark, journal, filter=f"{prefix}/#", columns="payload, topic")
    assert chosen.columns == ["payload", "topic"]
    assert [(bytes(row.payload), row.topic) for row in chosen.collect()] == [(b"payload", f"{prefix}/a")]
    reader = spark.read.format("brookmq").options(servers=journal.url, filter=f"{prefix}/#")
    assert [row.asDict() for row in reader.schema("qos int, topic string").load().collect()] == [
        {"qos": 1, "topic": f"{prefix}/a"}
    ]
    with pytest.raises(PySparkException, match="topic is of type string, not int"):
        reader.schema("topic int").load().collect()


def test_positions(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("positions")
    filter = f"{prefix}/#"
    journal.publish_all([(f"{prefix}/{number}", b"old") for number in range(20)])
    ends = journal.ends()
    between = time.time()
    journal.publish_all([(f"{prefix}/{number}", b"new") for number in range(20)])

    def payloads(**options: Any) -> list[bytes]:
        return sorted(bytes(row.payload) for row in load(spark, journal, filter=filter, **options).collect())

    old, new = [b"old"] * 20, [b"new"] * 20
    offsets = "{" + ", ".join(f'"{shard}": {offset}' for shard, offset in ends.items()) + "}"
    assert payloads() == new + old
    assert payloads(startingPosition="latest") == []
    assert payloads(startingPosition=offsets) == new
    assert payloads(endingPosition=offsets) == old
    assert payloads(startingPosition=repr(between)) == new
    when = datetime.fromtimestamp(between, UTC).isoformat()
    assert payloads(startingPosition=when, endingPosition="latest") == new
    assert payloads(endingPosition=when) == old
    assert payloads(startingPosition=offsets, endingPosition=offsets) == []


def test_conditions_are_pushed_down(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("push")
    journal.publish_all([(f"{prefix}/{number % 10}", b"%d" % number) for number in range(200)])
    between = time.time()
    journal.publish_all([(f"{prefix}/{number % 10}", b"late") for number in range(50)])
    plain = load(spark, journal, filter=f"{prefix}/#")
    pushed = load(spark, journal, filter=f"{prefix}/#", pushDown=True)
    conditions = [
        f.col("topic") == f"{prefix}/3",
        f.col("topic").isin(f"{prefix}/1", f"{prefix}/2"),
        f.col("topic").startswith(f"{prefix}/"),
        f.col("partition") == 1,
        (f.col("offset") > 5) & (f.col("offset") <= 9000) & (f.col("partition").isin(0, 5)),
        f.col("published_at") >= f.lit(datetime.fromtimestamp(between, UTC)),
        (f.col("published_at") < f.lit(datetime.fromtimestamp(between, UTC))) & (f.col("qos") == 1),
        f.col("topic") == f"{prefix}/3/none",
    ]
    for condition in conditions:
        expected = sorted((row.partition, row.offset) for row in plain.where(condition).collect())
        assert sorted((row.partition, row.offset) for row in pushed.where(condition).collect()) == expected
    assert pushed.where("partition = 1").rdd.getNumPartitions() == 1
    assert pushed.where("offset >= 2 and offset < 3 and partition = 0").count() <= 1


def test_push_down_says_when_spark_does_not_do_it(spark: SparkSession, journal: JournalNode) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert load(spark, journal).where("partition = 1").count() >= 0
        with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
            load(spark, journal, pushDown=True).where("partition = 1").count()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_more_partitions_than_shards(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("parts")
    journal.publish_all([(f"{prefix}/{number}", b"") for number in range(500)])
    messages = load(spark, journal, minPartitions=7)
    assert messages.rdd.getNumPartitions() >= 7
    rows = [(row.partition, row.offset) for row in messages.select("partition", "offset").collect()]
    assert len(rows) == len(set(rows)) == load(spark, journal).count()


def test_rows_go_to_executors_and_not_through_the_driver(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("bytes")
    journal.publish_all([(f"{prefix}/{number % 100}", os.urandom(20_000)) for number in range(1000)])
    driver = psutil.Process()
    java = psutil.Process(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
    before = driver.io_counters().read_chars
    load(spark, journal, filter=f"{prefix}/#").write.format("noop").mode("overwrite").save()
    assert driver.io_counters().read_chars - before < 1_000_000  # of 20,000,000

    port = journal.store_port
    readers = set()
    for process in [driver, java, *java.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # an idle worker of an earlier test ends while it is looked at
            if any(one.raddr and one.raddr.port == port for one in process.net_connections("tcp")):
                readers.add(process.pid)
    # Workers keep their connections for the next task.
    assert len(readers) >= 2
    assert not readers & {driver.pid, java.pid}


def test_what_retention_has_removed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    journal = JournalNode(tmp_path_factory.mktemp("lossy"), shards=1)
    try:
        for _ in range(6):
            journal.publish_all([("a", b"x" * 1000)] * 100)
        total = load(spark, journal).count()
        assert total == 600
        journal.purge(0, keep=4)
        start = '{"0": 0}'
        deadline = time.monotonic() + 30
        left = load(spark, journal, startingPosition=start, failOnDataLoss=False).count()
        assert 0 < left < total
        with pytest.raises(PySparkException, match="are gone from the journal: retention or a purge has removed them"):
            load(spark, journal, startingPosition=start).count()
        # The node notices within seconds; then `earliest` is what is left.
        while load(spark, journal, failOnDataLoss=False, columns="offset").agg(f.min("offset")).first()[0] == 0:  # type: ignore[index]
            assert time.monotonic() < deadline
        assert load(spark, journal, failOnDataLoss=False).count() == left
    finally:
        journal.stop()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filtre": "a"}, "brookmq: there is no option 'filtre'; did you mean filter?"),
        ({"filter": "a/#/b"}, "brookmq: 'a/#/b' is no topic filter"),
        ({"startingPosition": "soon"}, "brookmq: the option startingPosition takes earliest, latest"),
        ({"startingPosition": '{"7": 1}'}, "brookmq: the option startingPosition names partition 7"),
        ({"maxRowsPerBatch": "5"}, "brookmq: the option maxRowsPerBatch is for streams"),
        ({"columns": "tpoic"}, "brookmq: the option columns has 'tpoic'"),
    ],
)
def test_wrong_options(spark: SparkSession, journal: JournalNode, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException) as raised:
        load(spark, journal, **options).count()
    assert message in str(raised.value)


def test_nobody_at_the_address(spark: SparkSession, journal: JournalNode) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(PySparkException) as raised:
        spark.read.format("brookmq").option("servers", url).load().count()
    assert f"brookmq: no node answers (option servers): {url} (refused)" in str(raised.value)
    with pytest.raises(PySparkException) as raised:
        spark.read.format("brookmq").option("servers", f"127.0.0.1:{journal.node.mqtt[1]}").load().count()
    assert f"http://127.0.0.1:{journal.node.mqtt[1]}" in str(raised.value)
    both = f"{url},{journal.url}"
    assert spark.read.format("brookmq").option("servers", both).load().count() >= 0


def test_a_store_that_was_killed_is_found_again(spark: SparkSession, journal: JournalNode) -> None:
    prefix = unique("killed")
    journal.publish_all([(f"{prefix}/{number % 10}", b"") for number in range(200)])
    messages = load(spark, journal, filter=f"{prefix}/#")
    assert messages.count() == 200  # workers keep their connections, and the plan the way to the store
    journal.store.kill()
    assert messages.count() == 200
    assert load(spark, journal, filter=f"{prefix}/#").count() == 200

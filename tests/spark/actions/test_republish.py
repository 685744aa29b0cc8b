"""Rows of rules as messages: topics and payloads, each row once, and what can't be published is left out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from brookmq.base.rule_documents import RepublishAction
from brookmq.spark.actions import ActionError, BatchKey, NodeAccess, make_action
from brookmq.spark.actions.republish import Republisher
from tests.harness.node import free_port
from tests.harness.raw import Client, unique
from tests.harness.received import Packet
from tests.harness.wire import Property
from tests.spark.journal_node import JournalNode
from tests.spark.schemas import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    yield node
    node.stop()


@pytest.fixture
def prefix() -> str:
    return unique("republished")


@pytest.fixture
def subscriber(journal: JournalNode, prefix: str) -> Iterator[Client]:
    with Client(journal.node.mqtt).connect() as client:
        client.subscribe(f"{prefix}/#", qos=2, retain_as_published=True)
        yield client


def republisher(frame: DataFrame, journal: JournalNode, *, steady: bool = True, **settings: Any) -> Republisher:
    made = make_action(RepublishAction(**settings), {}, NodeAccess((journal.url,)), frame.schema, steady=steady)
    assert isinstance(made, Republisher)
    return made


def taken(client: Client, count: int) -> list[Packet]:
    found = [client.take() for _ in range(count)]
    client.expect_nothing()
    return found


def test_a_row_is_json_and_its_columns_are_in_the_topic(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    frame = spark.sql(
        """select 'a' device, 1.5D temperature, cast(null as int) missing, array(1, 2) list, parse_json('{"x":1}') json,
        timestamp '2026-11-15 12:00:00Z' `at time`, 'b' `with.dot`"""
    )
    action = republisher(frame, journal, topic=f"{prefix}/${{device}}/${{with.dot}}/${{device}}", qos=2, retain=True)
    assert action.write(frame, BatchKey(unique("query"), 0)) == 1
    (got,) = taken(subscriber, 1)
    assert (got.topic, got.qos, got.retain) == (f"{prefix}/a/b/a".encode(), 2, True)
    assert got.get(Property.PAYLOAD_FORMAT) == 1
    assert json.loads(got.payload) == {
        "device": "a", "temperature": 1.5, "missing": None, "list": [1, 2], "json": {"x": 1},
        "at time": "2026-11-15T12:00:00.000000Z", "with.dot": "b",
    }  # fmt: skip
    action.close()


@pytest.mark.parametrize(
    ("column", "payload"),
    [
        ("'é'", "é".encode()),
        ("cast('ab' as binary)", b"ab"),
        ("1.5D", b"1.5"),
        ("7", b"7"),
        ("true", b"true"),
        ("named_struct('x', 1, 'y', cast(null as int))", b'{"x":1,"y":null}'),
        ("array('a', 'b')", b'["a","b"]'),
        ("parse_json('[1]')", b"[1]"),
    ],
)
def test_a_column_is_the_payload(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str, column: str, payload: bytes
) -> None:
    frame = spark.sql(f"select {column} as `the value`, 1 as other")
    action = republisher(frame, journal, topic=f"{prefix}/x", payload="the value")
    assert action.write(frame, BatchKey(unique("query"), 0)) == 1
    assert taken(subscriber, 1)[0].payload == payload


def test_a_batch_that_comes_again_is_not_published_again(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    query = unique("query")
    frame = spark.range(0, 300, 1, 2).selectExpr("id", "cast(id % 5 as string) device")
    action = republisher(frame, journal, topic=f"{prefix}/${{device}}", qos=1, payload="id")
    other = republisher(frame, journal, topic=f"{prefix}/other", qos=1, payload="id")
    for batch in (0, 1):
        for _ in range(2):
            action.write(frame, BatchKey(query, batch))
            other.write(frame, BatchKey(query, batch))
    found = taken(subscriber, 1200)
    assert sorted(int(packet.payload) for packet in found) == sorted([*range(300)] * 4)
    for device in range(5):
        of_device = [int(packet.payload) for packet in found if packet.topic == f"{prefix}/{device}".encode()]
        for part in (range(150), range(150, 300)):
            in_part = [number for number in of_device if number in part]
            assert in_part == [number for number in part if number % 5 == device] * 2


def test_rows_in_another_order_are_still_the_same_rows(
    spark: SparkSession, journal: JournalNode, subscriber: Client, prefix: str
) -> None:
    """As the groups of a rule may come: what was published of them before the crash is not published again."""
    query = unique("query")
    frame = spark.range(0, 100, 1, 1).selectExpr("cast(id as string) device")
    action = republisher(frame, journal, steady=False, topic=f"{prefix}/x", qos=1, payload="device")
    action.write(frame.where("device < 50"), BatchKey(query, 0))
    action.write(frame.orderBy("device").coalesce(1), BatchKey(query, 1))
    action.write(frame.orderBy(frame.device.desc()).coalesce(1), BatchKey(query, 1))
    assert sorted(int(packet.payload) for packet in taken(subscriber, 150)) == sorted([*range(50), *range(100)])


def test_rows_that_can_not_be_published_are_left_out(
    spark: SparkSession,
    journal: JournalNode,
    subscriber: Client,
    prefix: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    frame = spark.range(0, 10, 1, 1).selectExpr("case id when 3 then 'a/#' when 4 then null else 'd' end device", "id")
    action = republisher(frame, journal, topic=f"{prefix}/${{device}}", payload="id")
    with caplog.at_level(logging.WARNING):
        assert action.write(frame, BatchKey(unique("query"), 7)) == 8
    assert sorted(int(packet.payload) for packet in taken(subscriber, 8)) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert (
        f"republish to {prefix}/${{device}}: 2 rows of batch 7 can't be published, and are left out" in caplog.messages
    )


def test_nothing_to_publish(spark: SparkSession, journal: JournalNode) -> None:
    frame = spark.sql("select 'a' device where false")
    assert republisher(frame, journal, topic="t").write(frame, BatchKey(unique("query"), 0)) == 0


def test_a_node_that_is_gone_is_an_error_of_the_action(spark: SparkSession) -> None:
    frame = spark.sql("select 'a' device")
    url = f"http://127.0.0.1:{free_port()}"
    action = Republisher(RepublishAction(topic="t"), NodeAccess((url,)), frame.schema)
    with pytest.raises(ActionError, match=rf"^republish to t: no node answers \(option servers\): {url} \(refused\)$"):
        action.write(frame, BatchKey(unique("query"), 0))


def test_an_error_of_the_rows_is_none_of_the_action(spark: SparkSession, journal: JournalNode) -> None:
    from pyspark.errors import PySparkException

    frame = spark.range(1).selectExpr("cast(1 / id as string) device")
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        republisher(frame, journal, topic="t").write(frame, BatchKey(unique("query"), 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topic": "a/${nothing}"}, "republish to a/${nothing}: the rule has no column 'nothing'; it has device, n"),
        ({"topic": "a/${n}"}, "republish to a/${n}: the column n is int, and no text"),
        ({"topic": "a", "payload": "x"}, "republish to a: payload: the rule has no column 'x'; it has device, n"),
    ],
)
def test_columns_that_there_are_not(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ActionError) as raised:
        Republisher(RepublishAction(**settings), NodeAccess(("",)), schema_of("device string, n int"))
    assert str(raised.value) == message

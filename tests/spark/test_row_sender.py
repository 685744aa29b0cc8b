"""Sending rows: numbers, portions and gaps; what the node has is not sent, and what it refuses is named."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from brookmq.base.errors import PeerError
from brookmq.broker.rows import MEDIA_TYPE, decode_rows
from brookmq.broker.settings import Settings
from brookmq.ops.bounds import BODY_BYTES_MAX
from brookmq.spark import node_client, row_sender
from brookmq.spark.node_client import NodeClient, RowRefusedError
from brookmq.spark.row_sender import Counts, PartitionKey, send_rows
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from tests.spark.schemas import schema_of

SCHEMA = schema_of("topic string, payload binary, message_expiry int, expires_at timestamp")
KEY = PartitionKey("q", 4, 2)


class MemorySink:
    """A node's part: rows by number, as its own decoder reads them, and those behind what it has."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.reached = (-1, -1)
        self.requests: list[tuple[int, int]] = []  # first row, how many
        self.published: dict[int, bytes] = {}
        self.clients: list[dict[str, Any]] = []

    def publish_rows(self, query: str, partition: int, body: bytes) -> tuple[int, int]:
        assert (query, partition) == ("q", 2)
        assert len(body) <= BODY_BYTES_MAX
        try:
            first, messages = decode_rows(body, self.settings, 0.0)
        except PeerError as error:
            row, _, reason = str(error).partition(": ")
            raise RowRefusedError(int(row.removeprefix("row ")), reason, error.reason) from None
        self.requests.append((first.row, len(messages)))
        for number, message in enumerate(messages, first.row):
            if (first.batch, number) > self.reached:
                assert number not in self.published
                self.published[number] = message.payload
                self.reached = (first.batch, number)
        return self.reached


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemorySink]:
    made = MemorySink()
    created = NodeClient.__init__

    def create(client: NodeClient, *arguments: Any, **options: Any) -> None:
        made.clients.append(options)
        created(client, *arguments, **options)

    monkeypatch.setattr(row_sender, "REQUEST_ROWS_MAX", 2000)
    monkeypatch.setattr(NodeClient, "__init__", create)
    monkeypatch.setattr(NodeClient, "publish_rows", lambda _, *arguments: made.publish_rows(*arguments))
    return made


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(SCHEMA, timezone="UTC"))


def numbered(first: int, count: int, size: int = 0) -> list[dict[str, Any]]:
    return [{"topic": "t", "payload": b"%d" % number + bytes(size)} for number in range(first, first + count)]


def send(*batches: pa.RecordBatch, key: PartitionKey = KEY, **options: str) -> Counts:
    chosen = sink_options(options, stream=True)
    return send_rows(iter(batches), sink_columns(SCHEMA, chosen), chosen, key)


def test_the_words_of_both_sides_are_the_same() -> None:
    assert node_client.ROWS == MEDIA_TYPE
    assert node_client.BODY_BYTES_MAX == BODY_BYTES_MAX


def test_rows_are_numbered_through_all_batches(node: MemorySink) -> None:
    assert send(batch(numbered(0, 4500)), batch([]), batch(numbered(4500, 10))) == Counts(published=4510)
    assert node.requests == [(0, 2000), (2000, 2000), (4000, 500), (4500, 10)]
    assert node.published == {number: b"%d" % number for number in range(4510)}
    assert node.reached == (4, 4509)


def test_nothing_to_send(node: MemorySink) -> None:
    assert send() == send(batch([])) == Counts()
    assert node.requests == []


def test_requests_are_bounded_in_bytes(node: MemorySink) -> None:
    size = row_sender.REQUEST_BYTES_MAX // 3
    send(batch(numbered(0, 5, size)))
    assert node.requests == [(0, 2), (2, 2), (4, 1)]
    node.settings.packet_size_max = 1 << 28
    node.published.clear()
    rows = [*numbered(5, 1), *numbered(6, 1, 3 * row_sender.REQUEST_BYTES_MAX), *numbered(7, 1)]
    send(batch(rows), key=KEY._replace(batch=5))
    assert node.requests[3:] == [(0, 1), (1, 1), (2, 1)]


def test_what_the_node_has_is_not_sent_again(node: MemorySink) -> None:
    node.reached = (4, 4200)
    assert send(batch(numbered(0, 4500))) == Counts(published=4500)
    assert node.requests == [(0, 2000), (4000, 500)]  # the first answer says how far it is
    assert sorted(node.published) == list(range(4201, 4500))


def test_a_query_that_was_set_back_is_told(node: MemorySink) -> None:
    node.reached = (7, 0)
    with pytest.raises(ValueError, match=r"^brookmq: batch 4 of the query 'q' comes, and batch 7 of it is published"):
        send(batch(numbered(0, 5)))


def test_a_node_that_was_there_before_is_waited_for(node: MemorySink) -> None:
    for batch_id in (0, 1):
        node.published.clear()
        send(batch(numbered(0, 1)), key=KEY._replace(batch=batch_id))
    assert [options["known"] for options in node.clients] == [False, True]


def test_expired_rows_keep_their_numbers(node: MemorySink) -> None:
    rows = numbered(0, 6)
    rows[0]["expires_at"] = rows[3]["expires_at"] = rows[5]["expires_at"] = 1_000_000
    assert send(batch(rows)) == Counts(published=3, expired=3)
    assert node.requests == [(1, 2), (4, 1)]
    assert sorted(node.published) == [1, 2, 4]


def test_a_bad_row_is_an_error_behind_those_before_it(node: MemorySink) -> None:
    rows = numbered(0, 10)
    rows[7]["topic"] = "a/#"
    with pytest.raises(ValueError, match=r"^brookmq: row 7 of partition 2 can't be published: column topic: 'a/#': "):
        send(batch(rows))
    assert sorted(node.published) == list(range(7))


def test_bad_rows_are_skipped_and_keep_their_numbers(node: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    rows = numbered(0, 40)
    for number in range(0, 40, 2):
        rows[number]["payload"] = None
    with caplog.at_level(logging.WARNING, "brookmq.spark"):
        assert send(batch(rows), onBadRow="skip") == Counts(published=20, bad=20)
    assert sorted(node.published) == list(range(1, 40, 2))
    assert len(caplog.messages) == row_sender.LOGGED_MAX + 1
    assert caplog.messages[0].startswith("row 0 of partition 2 can't be published: column payload: it is null")
    assert caplog.messages[-1] == "partition 2: 20 rows can't be published, and are skipped"


def test_what_the_node_refuses_is_named(node: MemorySink) -> None:
    node.settings.topic_levels_max = 2
    rows = numbered(0, 5)
    rows[3]["topic"] = "a/b/c"
    with pytest.raises(ValueError, match=r"row 3 of partition 2 .* column topic: 'a/b/c': .*more than 2 levels"):
        send(batch(rows))
    assert sorted(node.published) == [0, 1, 2]


def test_what_the_node_refuses_is_skipped(node: MemorySink) -> None:
    node.settings.packet_size_max = 1000
    rows = numbered(0, 9)
    for number in (0, 4, 5, 8):
        rows[number]["payload"] = bytes(2000)
    assert send(batch(rows), onBadRow="skip") == Counts(published=5, bad=4)
    assert sorted(node.published) == [1, 2, 3, 6, 7]


def test_rows_can_be_sorted(node: MemorySink) -> None:
    send(batch(numbered(5, 4)), batch(numbered(0, 5)), sortRows="true")
    assert [node.published[row] for row in range(9)] == [b"%d" % number for number in range(9)]

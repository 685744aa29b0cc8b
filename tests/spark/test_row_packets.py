"""Rows as packets: byte for byte what an encoder of the tests' own makes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from brookmq.spark import row_packets
from brookmq.spark.packet_pieces import topic_of
from brookmq.spark.row_packets import BadRow, Encoded, RowPackets
from brookmq.spark.sink_columns import sink_columns
from brookmq.spark.sink_options import sink_options
from tests.harness import wire
from tests.harness.wire import Property
from tests.spark.schemas import schema_of

NOW = 1000.0
ALL = (
    "topic string, payload binary, qos int, retain boolean, user_properties array<struct<name:string,value:string>>, "
    "content_type string, response_topic string, correlation_data binary, payload_format int, expires_at timestamp, "
    "message_expiry int"
)
BASE = {"topic": "a/b", "payload": b"x"}


def encode(columns: str, rows: list[dict[str, Any]], **options: str) -> Encoded:
    schema = schema_of(columns)
    chosen = sink_options(options, stream=True)
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema, timezone="UTC"))
    return RowPackets(sink_columns(schema, chosen), chosen).encode(batch, NOW)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TOPIC = st.text(st.sampled_from("ab/é$ "), min_size=1, max_size=12)
ROW = st.fixed_dictionaries(
    {"topic": TOPIC, "payload": st.binary(max_size=200)},
    optional={
        "qos": st.none() | st.integers(0, 2),
        "retain": st.none() | st.booleans(),
        "user_properties": st.none() | st.lists(st.fixed_dictionaries({"name": TEXT, "value": TEXT}), max_size=3),
        "content_type": st.none() | TEXT,
        "response_topic": st.none() | TOPIC,
        "correlation_data": st.none() | st.binary(max_size=9),
        "payload_format": st.none() | st.integers(0, 1),
        "message_expiry": st.none() | st.integers(1, 1 << 31 - 1),
    },
)


def expected(row: dict[str, Any]) -> bytes:
    identified = {"payload_format": Property.PAYLOAD_FORMAT, "message_expiry": Property.MESSAGE_EXPIRY,
                  "content_type": Property.CONTENT_TYPE, "response_topic": Property.RESPONSE_TOPIC,
                  "correlation_data": Property.CORRELATION_DATA}  # fmt: skip
    props: list[tuple[int, Any]] = [(at, row[name]) for name, at in identified.items() if row.get(name) is not None]
    props += [(Property.USER_PROPERTY, (pair["name"], pair["value"])) for pair in row.get("user_properties") or []]
    qos = row.get("qos") or 0
    return wire.publish(
        row["topic"], row["payload"], qos=qos, packet_id=1 if qos else None, retain=row.get("retain") or False,
        props=props,
    )  # fmt: skip


@given(st.lists(ROW, max_size=8))
def test_any_rows(rows: list[dict[str, Any]]) -> None:
    assert encode(ALL, rows) == Encoded([expected(row) for row in rows], {})


def test_options_instead_of_columns() -> None:
    packet = wire.publish("t", b"x", qos=1, packet_id=1, retain=True)
    assert encode(ALL, [BASE], topic="t", qos="1", retain="true").packets == [packet]


@pytest.mark.parametrize("size", [0, 1, 120, 127, 128, 16_383, 16_384, 300_000])
def test_payloads_of_all_sizes(size: int) -> None:
    found = encode("topic string, value binary", [{"topic": "t", "value": bytes(size)}])
    assert found.packets == [wire.publish("t", bytes(size))]
    assert topic_of(found.packets[0]) == b"t"


def test_text_says_that_it_is_text_unless_the_row_says_otherwise() -> None:
    columns = "topic string, value string, payload_format int"
    rows = [{"topic": "t", "value": "é"}, {"topic": "t", "value": "é", "payload_format": 0}]
    assert encode(columns, rows).packets == [
        wire.publish("t", "é".encode(), props=[(Property.PAYLOAD_FORMAT, 1)]),
        wire.publish("t", "é".encode(), props=[(Property.PAYLOAD_FORMAT, 0)]),
    ]
    assert encode("topic string, value string", rows[:1]).packets == [
        wire.publish("t", "é".encode(), props=[(Property.PAYLOAD_FORMAT, 1)])
    ]


def test_strings_that_are_no_text_go_out_as_they_are() -> None:
    schema = schema_of("topic string, value string")
    options = sink_options({}, stream=True)
    values = pa.array([b"\xff", b"ok"], pa.binary()).view(pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array(["t", "t"]), values], ["topic", "value"])
    found = RowPackets(sink_columns(schema, options), options).encode(batch, NOW)
    assert found.packets == [wire.publish("t", b"\xff"), wire.publish("t", b"ok", props=[(Property.PAYLOAD_FORMAT, 1)])]
    topics = pa.RecordBatch.from_arrays([values, pa.array(["t", "t"])], ["topic", "value"])
    refused = RowPackets(sink_columns(schema, options), options).encode(topics, NOW)
    assert refused.packets[0] is None
    assert "not UTF-8" in refused.bad[0].reason


def test_user_properties_as_a_map() -> None:
    rows = [{"topic": "t", "payload": b"", "user_properties": [("k", "v"), ("a", "b")]}, {"topic": "t", "payload": b""}]
    found = encode("topic string, payload binary, user_properties map<string,string>", rows)
    pairs = [(Property.USER_PROPERTY, ("k", "v")), (Property.USER_PROPERTY, ("a", "b"))]
    assert found.packets == [wire.publish("t", props=pairs), wire.publish("t")]


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


def test_what_expires_has_its_seconds_left_and_what_is_over_is_left_out() -> None:
    rows = [
        {**BASE, "expires_at": moment(60)},
        {**BASE, "expires_at": moment(0.25)},
        {**BASE, "expires_at": moment(0)},
        {**BASE, "expires_at": moment(-5)},
        {**BASE, "expires_at": moment(-5), "message_expiry": 7},
        {**BASE},
        {**BASE, "expires_at": moment(1e10)},
    ]
    expiries = [60, 1, None, None, 7, 0, 0xFFFF_FFFF]
    found = encode(ALL, rows)
    assert found.packets == [
        None if each is None else wire.publish("a/b", b"x", props=[(Property.MESSAGE_EXPIRY, each)] if each else [])
        for each in expiries
    ]
    assert found.bad == {}
    without = [{name: value for name, value in row.items() if name != "message_expiry"} for row in rows]
    assert [packet is None for packet in encode(ALL, without).packets] == [False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("row", "column", "reason"),
    [
        ({"topic": None}, "topic", "null"),
        ({"topic": ""}, "topic", "'': topic name: empty"),
        ({"topic": "a/+"}, "topic", "'a/\\+': topic name: with wildcards"),
        ({"topic": "a\0"}, "topic", "U\\+0000"),
        ({"topic": "a" * 65_536}, "topic", "65536 bytes"),
        ({"payload": None}, "payload", "null"),
        ({"payload": bytes(row_packets.PACKET_BYTES_MAX)}, "payload", "more than fits"),
        ({"qos": 3}, "qos", "no QoS 3"),
        ({"qos": -1}, "qos", "no QoS -1"),
        ({"content_type": "\0"}, "content_type", "U\\+0000"),
        ({"content_type": "x" * 65_536}, "content_type", "65536 bytes"),
        ({"response_topic": "a/#"}, "response_topic", "wildcards"),
        ({"correlation_data": bytes(65_536)}, "correlation_data", "65536 bytes"),
        ({"payload_format": 2}, "payload_format", "0 .bytes. or 1 .text., not 2"),
        ({"message_expiry": 0}, "message_expiry", "1 to 4294967295 seconds, not 0"),
        ({"user_properties": [{"name": None, "value": "x"}]}, "user_properties", "null"),
        ({"user_properties": [{"name": "x", "value": None}]}, "user_properties", "null"),
        ({"user_properties": [None]}, "user_properties", "null"),
        ({"user_properties": [{"name": "\0", "value": "x"}]}, "user_properties", "U\\+0000"),
    ],
)
def test_what_can_not_be_published(row: dict[str, Any], column: str, reason: str) -> None:
    found = encode(ALL, [BASE, {**BASE, **row}, BASE])
    fine = wire.publish("a/b", b"x")
    assert found.packets == [fine, None, fine]
    assert list(found.bad) == [1]
    assert found.bad[1].column == column
    with pytest.raises(ValueError, match=reason):
        raise ValueError(found.bad[1].reason)


def test_a_row_with_two_faults_is_told_once() -> None:
    assert encode(ALL, [{"topic": None, "payload": None, "qos": 9}]).bad == {0: BadRow("qos", "there is no QoS 9")}


def test_topics_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_packets, "TOPICS_KEPT_MAX", 3)
    schema, options = schema_of("topic string, payload binary"), sink_options({}, stream=True)
    packets = RowPackets(sink_columns(schema, options), options)
    rows = [{"topic": str(number % 7), "payload": b""} for number in range(50)]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))
    assert packets.encode(batch, NOW).packets == [wire.publish(row["topic"]) for row in rows]
    assert len(packets._topics) <= 3

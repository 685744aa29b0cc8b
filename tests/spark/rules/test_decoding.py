"""Payloads that Python decodes, written by other encoders: fastavro, protoc's classes, pysparkplug and tahu."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from brookmq.spark.rules import Schema, compile_rule
from brookmq.spark.rules.analysing import analyse
from brookmq.spark.rules.decoding import arrow_type, decode_batch
from brookmq.spark.rules.protobuf import compiled
from brookmq.spark.rules.sparkplug import TYPE
from brookmq.spark.rules.sparkplug import decode as decode_sparkplug
from brookmq.spark.rules.testing import Tried, sample_messages, try_rule
from tests.spark.rules import sparkplug_payloads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "test",
    "fields": [
        {"name": "device", "type": "string"},
        {"name": "temp", "type": ["null", "double"], "default": None},
        {"name": "n", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"]}},
        {"name": "before", "type": "State"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "extra", "type": {"type": "map", "values": "double"}},
        {"name": "any", "type": ["null", "int", "string", "boolean"]},
        {
            "name": "place",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "lat", "type": "float"}, {"name": "raw", "type": "bytes"}],
            },
        },
    ],
}
READING: dict[str, Any] = {
    "device": "d1",
    "temp": 21.5,
    "n": 2**40,
    "state": "ON",
    "before": "OFF",
    "at": dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC),
    "day": dt.date(2026, 1, 31),
    "price": Decimal("12.34"),
    "tags": ["a", "b"],
    "extra": {"k": 0.5},
    "any": "text",
    "place": {"lat": 1.5, "raw": b"\x00\xff"},
}
PROTO = """
syntax = "proto3";
package test;
import "google/protobuf/timestamp.proto";
enum State { UNKNOWN = 0; ON = 1; }
message Place { double lat = 1; bytes raw = 2; }
message Reading {
  string device = 1;
  optional double temp = 2;
  int64 n = 3;
  uint64 big = 4;
  State state = 5;
  google.protobuf.Timestamp at = 6;
  repeated string tags = 7;
  map<string, double> extra = 8;
  Place place = 9;
  repeated Place places = 10;
  bool ok = 11;
}
"""


def avro_payload(record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(AVRO), record)
    return stream.getvalue()


def proto_payload(**fields: Any) -> bytes:
    files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(compiled(PROTO)))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("test.Reading"))(**fields)
    payload: bytes = message.SerializeToString()
    return payload


def decoded(schema: Schema, payload: bytes) -> Any:
    return decode_batch(schema.kind, json.dumps(schema.definition), pa.array([payload], pa.binary())).to_pylist()[0]


def tried(spark: SparkSession, sql: str, schema: Schema, payloads: list[bytes]) -> Tried:
    rule = compile_rule(sql, schema)
    assert analyse(spark, rule) == rule.columns
    messages = [{"topic": "d/1", "payload": payload} for payload in payloads]
    return try_rule(spark, rule, sample_messages(messages))


def test_avro_values() -> None:
    schema = Schema.checked("r", "avro", {"schema": AVRO})
    found = decoded(schema, avro_payload(READING))
    assert found == READING | {"price": 12.34, "extra": [("k", 0.5)]}
    empty = decoded(schema, avro_payload(READING | {"temp": None, "any": 5, "tags": [], "extra": {}}))
    assert (empty["temp"], empty["any"], empty["tags"], empty["extra"]) == (None, "5", [], [])


def test_avro_that_is_wrong() -> None:
    schema = Schema.checked("r", "avro", {"schema": json.dumps(AVRO)})
    good = avro_payload(READING)
    for payload in (b"", good[:-1], good + b"\x00", b"\xff" * 40, b"{}"):
        assert decoded(schema, payload) is None


@given(st.binary(max_size=200))
def test_avro_of_any_bytes(payload: bytes) -> None:
    decoded(Schema.checked("r", "avro", {"schema": AVRO}), payload)


def test_avro_frames() -> None:
    body = avro_payload(READING)
    confluent = Schema.checked("r", "avro", {"schema": AVRO, "framing": "confluent"})
    assert decoded(confluent, b"\x00" + struct.pack(">I", 7) + body)["device"] == "d1"
    assert decoded(confluent, body) is None
    single = Schema.checked("r", "avro", {"schema": AVRO, "framing": "single-object"})
    # The specification's own example, 0x7275d51a3f395c8f for "int": the frame has it with the lowest byte first.
    assert fastavro.schema.fingerprint('"int"', "CRC-64-AVRO") == "8f5c393f1ad57572"
    canonical = fastavro.schema.to_parsing_canonical_form(fastavro.parse_schema(AVRO))
    fingerprint = bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
    assert decoded(single, b"\xc3\x01" + fingerprint + body)["device"] == "d1"
    assert decoded(single, b"\xc3\x01" + bytes(8) + body) is None


def test_avro_in_spark(spark: SparkSession) -> None:
    schema = Schema.checked("r", "avro", {"schema": AVRO})
    sql = (
        "SELECT payload.device AS d, payload.temp * 2 AS t, payload.at AS at, payload.day AS day, "
        "payload.extra.k AS k, payload.place.lat AS lat, payload.tags[1] AS tag, hex(payload.place.raw) AS raw "
        'FROM "d/+" WHERE payload.n > 1'
    )
    found = tried(spark, sql, schema, [avro_payload(READING), b"wrong", avro_payload(READING | {"n": 1})])
    assert found.rows == (
        {
            "d": "d1",
            "t": 43.0,
            "at": "2026-01-31T12:00:00.000Z",
            "day": "2026-01-31",
            "k": 0.5,
            "lat": 1.5,
            "tag": "b",
            "raw": "00FF",
        },
    )
    assert (found.matched, found.failed) == (3, 1)


def test_protobuf_values() -> None:
    schema = Schema.checked("r", "protobuf", {"proto": PROTO, "message": "test.Reading"})
    payload = proto_payload(
        device="d1",
        temp=0.0,
        n=-5,
        big=2**63 + 1,
        state=1,
        at={"seconds": 1769860800, "nanos": 250_000_000},
        tags=["a"],
        extra={"k": 1.5},
        place={"lat": 2.5, "raw": b"\xff"},
        places=[{"lat": 1}, {}],
        ok=True,
    )
    assert decoded(schema, payload) == {
        "device": "d1",
        "temp": 0.0,
        "n": -5,
        "big": None,
        "state": "ON",
        "at": dt.datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=dt.UTC),
        "tags": ["a"],
        "extra": [("k", 1.5)],
        "place": {"lat": 2.5, "raw": b"\xff"},
        "places": [{"lat": 1.0, "raw": b""}, {"lat": 0.0, "raw": b""}],
        "ok": True,
    }
    bare = decoded(schema, b"")
    assert (bare["temp"], bare["n"], bare["at"], bare["place"], bare["state"]) == (None, 0, None, None, "UNKNOWN")
    assert decoded(schema, b"\x0a\xff") is None


@given(st.binary(max_size=100))
def test_protobuf_of_any_bytes(payload: bytes) -> None:
    definition = {"descriptors": DESCRIPTORS, "message": "test.Reading"}
    decoded(Schema.checked("r", "protobuf", definition), payload)


DESCRIPTORS = compiled(PROTO)


def test_protobuf_in_spark(spark: SparkSession) -> None:
    schema = Schema.checked("r", "protobuf", {"descriptors": DESCRIPTORS, "message": "test.Reading"})
    sql = (
        "FOREACH payload.places AS p DO p.lat AS lat, payload.device AS d, payload.state AS s "
        'FROM "d/+" WHERE payload.ok'
    )
    good = proto_payload(device="x", ok=True, state=1, places=[{"lat": 1}, {"lat": 2}])
    found = tried(spark, sql, schema, [good, b"\xff\xff", proto_payload(ok=False)])
    assert found.rows == ({"lat": 1.0, "d": "x", "s": "ON"}, {"lat": 2.0, "d": "x", "s": "ON"})
    assert (found.matched, found.failed) == (3, 1)


def test_sparkplug_values() -> None:
    found = decode_sparkplug(sparkplug_payloads.DBIRTH)
    assert (found["timestamp"], found["seq"]) == (1769860800250_000, 3)
    metrics = {metric["name"]: metric for metric in found["metrics"]}
    assert metrics["Temp"]["number"] == 21.5
    assert metrics["Temp"]["datatype"] == "Double"
    assert metrics["Temp"]["timestamp"] == 1769860800250_000
    assert (metrics["Count"]["integer"], metrics["Count"]["number"]) == (-7, -7.0)
    assert metrics["Small"]["integer"] == -1
    assert metrics["Big"]["integer"] == -(2**40)
    assert (metrics["Unsigned"]["integer"], metrics["Unsigned"]["number"]) == (None, float(2**63 + 5))
    assert metrics["Ratio"]["number"] == 0.25
    assert (metrics["Running"]["boolean"], metrics["Running"]["number"]) == (True, 1.0)
    assert metrics["Label"]["text"] == "größer"
    assert metrics["Raw"]["bytes"] == b"\x00\xff"
    assert metrics["Since"]["integer"] == 1769860800000
    assert (metrics["Gone"]["is_null"], metrics["Gone"]["integer"]) == (True, None)
    port = metrics["Port"]
    assert (port["alias"], port["integer"], port["is_historical"]) == (12, 65535, True)


def test_sparkplug_without_datatypes() -> None:
    temp, count, port = decode_sparkplug(sparkplug_payloads.DDATA)["metrics"]
    assert (temp["number"], temp["datatype"]) == (21.5, None)
    assert count["integer"] == 2**32 - 7
    assert (port["name"], port["alias"], port["integer"]) == (None, 12, 65534)


def test_sparkplug_of_another_library() -> None:
    found = decode_sparkplug(sparkplug_payloads.TAHU)
    assert found["uuid"] == "u-1"
    assert [(m["name"], m["alias"], m["number"], m["text"]) for m in found["metrics"]] == [
        ("Pressure", None, 1.5, None),
        ("Level", 5, 300.0, None),
        ("Text", None, None, "hello"),
    ]


@given(st.binary(max_size=100))
def test_sparkplug_of_any_bytes(payload: bytes) -> None:
    try:
        found = decode_sparkplug(payload)
    except ValueError:
        return
    assert pa.array([found], arrow_type(TYPE))


@given(st.data())
def test_sparkplug_with_a_byte_changed(data: st.DataObject) -> None:
    payload = bytearray(sparkplug_payloads.DBIRTH)
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    decoded(Schema.checked("s", "sparkplug"), bytes(payload))


def test_sparkplug_in_spark(spark: SparkSession) -> None:
    schema = Schema.checked("s", "sparkplug")
    sql = (
        "FOREACH payload.metrics AS m DO m.name AS name, m.number AS value, m.timestamp AS at, payload.seq AS seq "
        'INCASE m.number < 0 FROM "d/+"'
    )
    found = tried(spark, sql, schema, [sparkplug_payloads.DBIRTH, b"\x07", sparkplug_payloads.NBIRTH])
    assert [(row["name"], row["value"], row["seq"]) for row in found.rows] == [
        ("Count", -7.0, 3),
        ("Small", -1.0, 3),
        ("Big", -float(2**40), 3),
    ]
    assert found.rows[0]["at"] == "2026-01-31T12:00:00.250Z"
    assert (found.matched, found.failed) == (3, 1)


def test_one_record_beyond_arrow_leaves_the_others() -> None:
    far = struct.pack("<B", 0x08) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # a timestamp of 2^64 - 1 ms
    batch = pa.array([far, sparkplug_payloads.DDATA, None], pa.binary())
    found = decode_batch("sparkplug", "{}", batch).to_pylist()
    assert [record is None for record in found] == [False, False, True]
    assert found[0]["timestamp"] is None

"""Sparkplug B payloads: the metrics of an edge node, from the field numbers of the specification (version 3.0, 6.4).

A small reader of its own, because what a rule needs is not what the wire has: signed integers travel as unsigned ones,
the type of a value stands in another field, and a table needs one column for each kind of value.

Types are sent with births; a data message may leave them out. Then ``datatype`` is NULL, and an integer below zero is
what its bits are without a sign.

    payload.timestamp, payload.seq, payload.uuid
    payload.metrics: name, alias, timestamp, datatype, is_null, is_historical, is_transient,
                     number (of any numeric value), integer (exact), boolean, text, bytes
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from brookmq.spark.rules.types import BOOLEAN, BYTES, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, list_of, record_of

METRICS_MAX: Final = 100_000

_METRIC: Final = record_of(
    (
        ("name", TEXT),
        ("alias", INTEGER),
        ("timestamp", TIMESTAMP),
        ("datatype", TEXT),
        ("is_historical", BOOLEAN),
        ("is_transient", BOOLEAN),
        ("is_null", BOOLEAN),
        ("number", NUMBER),
        ("integer", INTEGER),
        ("boolean", BOOLEAN),
        ("text", TEXT),
        ("bytes", BYTES),
    )
)
TYPE: Final[Type] = record_of(
    (("timestamp", TIMESTAMP), ("seq", INTEGER), ("uuid", TEXT), ("body", BYTES), ("metrics", list_of(_METRIC)))
)

# fmt: off
DATATYPES: Final = (  # by their numbers
    "Unknown", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double", "Boolean",
    "String", "DateTime", "Text", "UUID", "DataSet", "Bytes", "File", "Template", "PropertySet", "PropertySetList",
    "Int8Array", "Int16Array", "Int32Array", "Int64Array", "UInt8Array", "UInt16Array", "UInt32Array", "UInt64Array",
    "FloatArray", "DoubleArray", "BooleanArray", "StringArray", "DateTimeArray",
)
# fmt: on
_SIGNED_BITS: Final = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64}
_INTEGER_MAX: Final = 2**63 - 1
_YEAR_10000_MS: Final = 253_402_300_800_000
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def decoder(_: Mapping[str, Any]) -> Callable[[bytes], dict[str, Any]]:
    return decode


def decode(payload: bytes) -> dict[str, Any]:
    """The payload as a record of `TYPE`; ValueError if it is none."""
    record: dict[str, Any] = {name: None for name, _ in TYPE.fields}
    metrics: list[dict[str, Any]] = []
    for number, value in _fields(payload):
        if number == 1:
            record["timestamp"] = _time(_integer(value))
        elif number == 2:
            metrics.append(_metric(_bytes(value)))
            if len(metrics) > METRICS_MAX:
                raise ValueError(f"more than {METRICS_MAX} metrics")
        elif number == 3:
            record["seq"] = _exact(_integer(value))
        elif number == 4:
            record["uuid"] = _bytes(value).decode()
        elif number == 5:
            record["body"] = _bytes(value)
    record["metrics"] = metrics
    return record


def _metric(data: bytes) -> dict[str, Any]:
    fields = dict(_fields(data))
    code = _integer(fields[4]) if 4 in fields else None
    datatype = None if code is None else DATATYPES[code] if code < len(DATATYPES) else str(code)
    metric: dict[str, Any] = {name: None for name, _ in _METRIC.fields}
    metric |= {
        "name": _bytes(fields[1]).decode() if 1 in fields else None,
        "alias": _exact(_integer(fields[2])) if 2 in fields else None,
        "timestamp": _time(_integer(fields[3])) if 3 in fields else None,
        "datatype": datatype,
        "is_historical": bool(fields.get(5, 0)),
        "is_transient": bool(fields.get(6, 0)),
        "is_null": bool(fields.get(7, 0)),
    }
    if not metric["is_null"]:
        metric |= _value(fields, datatype)
    return metric


def _value(fields: Mapping[int, int | bytes], datatype: str | None) -> dict[str, Any]:
    """The value in the columns of its kind."""
    for number in (10, 11):
        if number in fields:
            value = _signed(_integer(fields[number]), datatype)
            return {"number": float(value), "integer": _exact(value)}
    if 12 in fields:
        return {"number": float(struct.unpack("<f", _sized(fields[12], 4))[0])}
    if 13 in fields:
        return {"number": float(struct.unpack("<d", _sized(fields[13], 8))[0])}
    if 14 in fields:
        return {"boolean": bool(fields[14]), "number": float(bool(fields[14]))}
    if 15 in fields:
        return {"text": _bytes(fields[15]).decode()}
    if 16 in fields:
        return {"bytes": _bytes(fields[16])}
    return {}


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a Protobuf message, by number; fixed ones as their bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _LENGTH:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"not Sparkplug B: wire type {wire}")
        if number == 0 or at + size > len(data):
            raise ValueError("not Sparkplug B: a field is cut off")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ValueError("not Sparkplug B: a number is cut off")


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("not Sparkplug B: a number is needed")  # noqa: TRY004 - the payload is wrong
    return value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("not Sparkplug B: bytes are needed")  # noqa: TRY004 - the payload is wrong
    return value


def _sized(value: int | bytes, size: int) -> bytes:
    found = _bytes(value)
    if len(found) != size:
        raise ValueError(f"not Sparkplug B: {size} bytes are needed")
    return found


def _signed(value: int, datatype: str | None) -> int:
    bits = _SIGNED_BITS.get(datatype or "")
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _exact(value: int) -> int | None:
    return value if value <= _INTEGER_MAX else None


def _time(milliseconds: int) -> int | None:
    """Microseconds, as Arrow has them."""
    return milliseconds * 1_000 if milliseconds < _YEAR_10000_MS else None

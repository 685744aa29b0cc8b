"""What the table "pipeline" keeps for programs that process the journal, or publish what came of it.

| key                                              | state                                                          |
|--------------------------------------------------|----------------------------------------------------------------|
| ``q`` + query, byte 0xFF, partition (4 bytes)    | a ``SinkPosition``: how far the rows of a query were published |
| ``n`` + name                                     | a ``ReaderState``: how far a reader of the journal has come    |
| ``r`` + name                                     | a rule                                                         |
| ``s`` + name                                     | a schema                                                       |
| ``t`` + name                                     | a declared table                                               |
| ``u`` + name                                     | a resource: a connection that actions of rules share           |

Every state begins with its format number, 1. The last four are JSON behind it, and mean nothing here. Changes are
those of ``value_record``: SET with a state, DELETED.

A row that a query publishes has an *origin* in the journal that names query, partition, batch and row: by it a start
finds rows that were stored before their position was.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from brookmq.store.errors import BadRecord

SINK_KEY: Final = b"q"
READER_KEY: Final = b"n"
RULE_KEY: Final = b"r"
SCHEMA_KEY: Final = b"s"
TABLE_KEY: Final = b"t"
RESOURCE_KEY: Final = b"u"

FORMAT: Final = 1
ORIGIN: Final = b"sink\0"

_POSITION: Final = struct.Struct(">Bqqd")
_COUNT: Final = struct.Struct(">I")
_RANGE: Final = struct.Struct(">qqq")
_ROW: Final = struct.Struct(">Iqq")


class Row(NamedTuple):
    """A row of a query's partition. Batches and rows rise, from anything above -1 on."""

    batch: int
    row: int


NOTHING: Final = Row(-1, -1)  # before all rows


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """All rows up to ``row`` are stored, and those in ``beyond``, which a node that died had stored before others."""

    row: Row = NOTHING
    written_at: float = 0.0
    beyond: frozenset[Row] = frozenset()


@dataclass(frozen=True, slots=True)
class ReaderState:
    """``position``: the first offset that was not read, by shard. ``lost``: what retention took before it was read."""

    journal: str
    position: Mapping[int, int]
    filters: tuple[str, ...] = ()
    seen_at: float = 0.0
    lost: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)  # of newer versions, kept as they are


# -- sinks


def sink_key(query: str, partition: int) -> bytes:
    """Partitions of a query are in one part of the table."""
    return SINK_KEY + query.encode() + b"\xff" + partition.to_bytes(4, "big")


def origin_of(key: bytes, row: Row) -> bytes:
    """The origin of a row of the query and partition in a key."""
    return ORIGIN + _ROW.pack(int.from_bytes(key[-4:], "big"), *row) + key[1:-5]


def is_sink(origin: bytes) -> bool:
    """Whether an origin is that of a query's row."""
    return origin.startswith(ORIGIN)


def row_of(origin: bytes) -> tuple[bytes, Row]:
    """The key and the row in such an origin."""
    partition, batch, row = _ROW.unpack_from(origin, len(ORIGIN))
    query = origin[len(ORIGIN) + _ROW.size :]
    return SINK_KEY + query + b"\xff" + partition.to_bytes(4, "big"), Row(batch, row)


def encode_sink(position: SinkPosition) -> bytes:
    ranges = _ranges(position.beyond)
    head = _POSITION.pack(FORMAT, *position.row, position.written_at)
    return head + _COUNT.pack(len(ranges)) + b"".join(_RANGE.pack(*each) for each in ranges)


def decode_sink(state: bytes) -> SinkPosition:
    try:
        number, batch, row, written_at = _POSITION.unpack_from(state)
        (count,) = _COUNT.unpack_from(state, _POSITION.size)
        ranges = [_RANGE.unpack_from(state, _POSITION.size + 4 + _RANGE.size * at) for at in range(count)]
    except struct.error:
        number = 0
    if number != FORMAT or len(state) != _POSITION.size + 4 + _RANGE.size * count:
        raise BadRecord(f"the position of a query is {_described(state)}")
    beyond = frozenset(Row(of, each) for of, first, last in ranges for each in range(first, last + 1))
    return SinkPosition(Row(batch, row), written_at, beyond)


def _ranges(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    """Batch, first and last row, of rows that follow each other."""
    found: list[tuple[int, int, int]] = []
    for batch, row in sorted(rows):
        if found and found[-1][0] == batch and found[-1][2] == row - 1:
            found[-1] = batch, found[-1][1], row
        else:
            found.append((batch, row, row))
    return found


# -- readers


def reader_key(name: str) -> bytes:
    return READER_KEY + name.encode()


def encode_reader(state: ReaderState) -> bytes:
    return encode_document({
        **state.details,
        "journal": state.journal,
        "position": {str(shard): offset for shard, offset in sorted(state.position.items())},
        "filters": list(state.filters),
        "seen_at": state.seen_at,
        "lost": state.lost,
    })  # fmt: skip


def decode_reader(state: bytes) -> ReaderState:
    fields = decode_document(state)
    try:
        return ReaderState(
            str(fields.pop("journal")),
            {int(shard): int(offset) for shard, offset in fields.pop("position").items()},
            tuple(map(str, fields.pop("filters"))),
            float(fields.pop("seen_at")),
            int(fields.pop("lost")),
            fields,
        )
    except (LookupError, ValueError, TypeError, AttributeError):
        raise BadRecord(f"a reader is {_described(state)}") from None


# -- rules, schemas, tables and resources


def encode_document(fields: Mapping[str, Any]) -> bytes:
    """A state of named fields."""
    return bytes((FORMAT,)) + json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def decode_document(state: bytes) -> dict[str, Any]:
    if state[:1] != bytes((FORMAT,)):
        raise BadRecord(f"a document is {_described(state)}")
    try:
        fields = json.loads(state[1:])
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise BadRecord(f"a document is {_described(state)}")
    return fields


def _described(state: bytes) -> str:
    known = f"of format {state[0]}" if state else "empty"
    return f"{known} with {len(state)} bytes, which is not known here (format {FORMAT} is)"

"""The plain twin of ``columns.pyx``: record bodies of the journal, made into Arrow columns.

It is what runs without a compiler, and what the compiled form is tested against; the reasons stand there. It reads a
record as the node does, with ``decode_batch``, and makes each message an entry in Python lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.kernel import Run
from brookmq.mqtt.packet_types import PUBLISH
from brookmq.mqtt.properties import Properties, decode_properties
from brookmq.store.errors import BadRecord
from brookmq.store.journal.batch import FORMAT, OFFSET_MAX, decode_batch
from brookmq.store.journal.fields import FieldReader
from brookmq.store.journal.group import Group

COMPILED = False
ROWS_MAX: Final = 10_000
BYTES_MAX: Final = 32 * 1024 * 1024
TOPICS_MAX: Final = 100_000
SECONDS_MAX: Final = 9.0e12  # more does not fit into microseconds of 64 bits

Row = dict[str, Any]


def extent(record: bytes, position: int) -> tuple[int, int]:
    """The first offset of a record whose body begins at ``position``, and the one behind its last."""
    reader = FieldReader(record, position)
    format_number = reader.byte()
    reader.byte()
    if format_number != FORMAT:
        raise BadRecord(f"format {format_number} is not known here ({FORMAT} is)")
    base, count = reader.varint(), reader.varint()
    if base > OFFSET_MAX or count > OFFSET_MAX - base:
        raise BadRecord(f"offsets from {base} on")
    return base, base + count


class Columns:
    """Messages of one shard as columns: those that are captured and that ``accepts`` takes (None: any topic)."""

    def __init__(
        self,
        schema: pa.Schema,
        shard: int,
        node: str,
        accepts: Callable[[bytes], bool] | None = None,
        rows_max: int = ROWS_MAX,
        bytes_max: int = BYTES_MAX,
    ) -> None:
        self._schema = schema
        self._shard = shard
        self._constants: dict[str, Any] = {"partition": shard, "node": node}
        self._accepts = accepts
        self._answers: dict[bytes, bool] = {}
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._rows: list[Row] = []
        self._bytes = 0

    @property
    def rows(self) -> int:
        """That wait for the next batch."""
        return len(self._rows)

    def add(self, record: bytes, position: int, first: int, last: int) -> list[pa.RecordBatch]:
        """Takes what has offsets from ``first`` to before ``last`` in a record whose body begins at ``position``.

        Returns the batches that are full. After ``BadRecord`` the columns are of no use any more.
        """
        full: list[pa.RecordBatch] = []
        for group in decode_batch(self._shard, 0, record[position:]).groups:
            start, end = max(first, group.first), min(last, group.first + group.count)
            if start >= end or not group.captured or not self._takes(group.topic):
                continue
            try:
                self._take(group, start, end)
            except (UnicodeDecodeError, PacketError) as error:
                raise BadRecord(f"the group at offset {group.first}: {error}") from None
            if len(self._rows) >= self._rows_max or self._bytes >= self._bytes_max:
                batch = self.finish()
                if batch is not None:
                    full.append(batch)
        return full

    def finish(self) -> pa.RecordBatch | None:
        """The rows that wait, as a batch; None when there are none."""
        if not self._rows:
            return None
        rows, self._rows, self._bytes = self._rows, [], 0
        arrays = [pa.array([row[field.name] for row in rows], field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _takes(self, topic: bytes) -> bool:
        if self._accepts is None:
            return True
        if topic not in self._answers:
            if len(self._answers) >= TOPICS_MAX:
                self._answers.clear()
            self._answers[topic] = self._accepts(topic)
        return self._answers[topic]

    def _take(self, group: Group, start: int, end: int) -> None:
        payloads, properties = _payloads(group)
        shared = {
            **self._constants,
            "topic": group.topic.decode(),
            "qos": group.qos,
            "retain": group.retain,
            "client_id": group.client_id,
            "username": group.username,
            "user_properties": [{"name": name, "value": value} for name, value in properties.user_properties] or None,
            "content_type": properties.content_type,
            "response_topic": properties.response_topic,
            "correlation_data": properties.correlation_data,
            "payload_format": properties.payload_format_indicator,
            "expires_at": _microseconds(group.expires_at) if group.expires_at != 0.0 else None,
            "published_at": _microseconds(group.published_at),
        }
        names = len(group.topic) + len(group.client_id) + len(group.username or "")
        for offset in range(start, end):
            payload = payloads[offset - group.first]
            self._rows.append({**shared, "offset": offset, "payload": payload})
            self._bytes += names + len(payload)


def _payloads(group: Group) -> tuple[list[bytes], Properties]:
    if group.plain:
        run = Run()
        if run.scan(group.packets, 0, group.version5, len(group.packets)) != len(group.packets):
            raise BadRecord(f"the packets at offset {group.first} are not a run")
        if run.count != group.count:
            raise BadRecord(f"{run.count} packets instead of {group.count}")
        return [run.payload(index) for index in range(run.count)], Properties()
    if group.count != 1:
        raise BadRecord(f"{group.count} messages in one packet")
    message = group.message()
    return [message.payload], decode_properties(message.properties, 0, len(message.properties), PUBLISH)


def _microseconds(seconds: float) -> int:
    if not 0.0 <= seconds < SECONDS_MAX:
        raise BadRecord(f"a time of {seconds} s")
    return round(seconds * 1e6)

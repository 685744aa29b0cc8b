"""Sends the rows of one partition of a batch to a node, each of them once.

A row's number is its place in the partition. The node publishes what is behind the last row that it knows of this query
and partition, and answers when it is stored: so everything may be sent again, by a task that is tried again and by a
query that begins a batch anew. For that the same rows have to come in the same order.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from brookmq.mqtt import reasons
from brookmq.spark.node_client import NodeClient, RowRefusedError
from brookmq.spark.packet_pieces import shown, topic_of
from brookmq.spark.row_order import sorted_rows
from brookmq.spark.row_packets import BadRow, Encoded, RowPackets
from brookmq.spark.sink_columns import SinkColumns
from brookmq.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("brookmq.spark")

REQUEST_ROWS_MAX: Final = 4_000
REQUEST_BYTES_MAX: Final = 1024 * 1024  # a larger row goes alone
LOGGED_MAX: Final = 10  # bad rows of a partition that are told one by one

_HEAD: Final = struct.Struct(">qq")  # batch and first row, in front of the packets
_COLUMNS_BY_REASON: Final = {
    reasons.TOPIC_NAME_INVALID: "topic",
    reasons.NOT_AUTHORIZED: "topic",
    reasons.PACKET_TOO_LARGE: "payload",
    reasons.RETAIN_NOT_SUPPORTED: "retain",
    reasons.QUOTA_EXCEEDED: "user_properties",
}


class PartitionKey(NamedTuple):
    """What the rows of a partition are known by, with their numbers."""

    query: str
    batch: int
    partition: int


@dataclass(slots=True)
class Counts:
    """What became of rows: ``published`` are stored, now or before."""

    published: int = 0
    expired: int = 0
    bad: int = 0


def send_rows(
    batches: Iterable[pa.RecordBatch], columns: SinkColumns, options: SinkOptions, key: PartitionKey
) -> Counts:
    """Publishes the rows of a partition. ``ValueError`` for one that can't be, unless those are skipped."""
    client = NodeClient(options.servers, options.token, known=key.batch > 0)
    sender = _Sender(client, key, skip_bad_rows=options.skip_bad_rows, payload=columns.payload_name)
    packets = RowPackets(columns, options)
    row = 0
    try:
        for batch in sorted_rows(batches, columns) if options.sort_rows else batches:
            for start in range(0, batch.num_rows, REQUEST_ROWS_MAX):
                some = batch.slice(start, REQUEST_ROWS_MAX)
                if row + some.num_rows - 1 <= sender.stored:
                    sender.counts.published += some.num_rows
                else:
                    sender.send(row, packets.encode(some, time.time()))
                row += some.num_rows
    finally:
        client.close()
    if sender.counts.bad > LOGGED_MAX:
        log.warning("partition %d: %d rows can't be published, and are skipped", key.partition, sender.counts.bad)
    return sender.counts


class _Sender:
    """``stored``: the last row that the node has, as far as it has said so."""

    def __init__(self, client: NodeClient, key: PartitionKey, *, skip_bad_rows: bool, payload: str) -> None:
        self._client = client
        self._key = key
        self._skips = skip_bad_rows
        self._payload = payload
        self.stored = -1
        self.counts = Counts()

    def send(self, first: int, encoded: Encoded) -> None:
        """Rows that follow each other. What stands before a bad row is sent before it is told."""
        missing = sum(packet is None for packet in encoded.packets)
        self.counts.expired += missing - len(encoded.bad)
        bad = sorted(encoded.bad.items(), reverse=True)
        for row, packets in _requests(first, encoded.packets):
            while bad and first + bad[-1][0] < row:
                self._tell_bad(first + bad[-1][0], bad.pop()[1])
            self._publish(row, packets)
        for at, reason in reversed(bad):
            self._tell_bad(first + at, reason)

    def _publish(self, first: int, packets: list[bytes]) -> None:
        while packets:
            try:
                self._post(first, packets)
            except RowRefusedError as refusal:
                at = refusal.row - first
                if not 0 <= at < len(packets):
                    raise
                self._post(first, packets[:at])
                column = _COLUMNS_BY_REASON.get(refusal.code, "topic")
                column = self._payload if column == "payload" else column
                self._tell_bad(refusal.row, BadRow(column, f"{shown(topic_of(packets[at]))}: {refusal.reason}"))
                first, packets = refusal.row + 1, packets[at + 1 :]
            else:
                return

    def _post(self, first: int, packets: list[bytes]) -> None:
        if not packets:
            return
        query, batch, partition = self._key
        reached = self._client.publish_rows(query, partition, _HEAD.pack(batch, first) + b"".join(packets))
        if reached[0] > batch:
            raise ValueError(
                f"brookmq: batch {batch} of the query {query!r} comes, and batch {reached[0]} of it is published "
                "already: its checkpoint is another one or was set back, or two queries write under one name. "
                "Give it a name of its own (option query)."
            )
        self.stored = reached[1]
        self.counts.published += len(packets)

    def _tell_bad(self, row: int, bad: BadRow) -> None:
        what = f"row {row} of partition {self._key.partition} can't be published: column {bad.column}: {bad.reason}"
        if not self._skips:
            raise ValueError(f"brookmq: {what}. The option onBadRow = skip leaves such rows out.")
        self.counts.bad += 1
        if self.counts.bad <= LOGGED_MAX:
            log.warning("%s; it is skipped", what)


def _requests(first: int, packets: Iterable[bytes | None]) -> Iterator[tuple[int, list[bytes]]]:
    """Packets that follow each other without a gap, in portions of bounded size, each with the number of its first."""
    portion: list[bytes] = []
    size = 0
    for row, packet in enumerate(packets, first):
        if portion and (packet is None or size + len(packet) > REQUEST_BYTES_MAX):
            yield row - len(portion), portion
            portion, size = [], 0
        if packet is not None:
            portion.append(packet)
            size += len(packet)
    if portion:
        yield row + 1 - len(portion), portion

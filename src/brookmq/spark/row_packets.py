"""Rows of a frame as MQTT 5 PUBLISH packets.

Column by column, as Arrow has them: each column becomes a list of pieces of packets, and a packet is its pieces one
behind the other. A row in which a piece is missing has no packet: something in it can't be published (``BadRow`` says
what), or it has expired already. It keeps its number all the same, since by that the node knows rows.

What is checked here is what MQTT itself demands. What a node allows beyond that, the node says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.primitives import check_text, varint
from brookmq.spark.node_client import BODY_BYTES_MAX
from brookmq.spark.packet_pieces import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    PACKET_ID,
    RESPONSE_TOPIC,
    TEXT,
    BadValueError,
    check_response_topic,
    expiry,
    expiry_at,
    first_byte,
    is_text,
    joined,
    payload_format,
    sized,
    there,
    topic_name,
    user_properties,
)
from brookmq.spark.sink_columns import SinkColumns
from brookmq.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

PACKET_BYTES_MAX: Final = BODY_BYTES_MAX - 64  # alone in a request, behind what stands in front of the packets
TOPICS_KEPT_MAX: Final = 100_000  # that were checked before; then the memory of them begins anew

Pieces = Iterable[bytes | None]


class BadRow(NamedTuple):
    """Why a row can't be published."""

    column: str
    reason: str


@dataclass(slots=True)
class Encoded:
    """A packet for each row, or None; ``bad`` has the reasons by the row's number in its batch."""

    packets: list[bytes | None] = field(default_factory=list)
    bad: dict[int, BadRow] = field(default_factory=dict)


class RowPackets:
    """Encodes the rows of one write."""

    def __init__(self, columns: SinkColumns, options: SinkOptions) -> None:
        self._columns = columns
        self._topic = None if options.topic is None else sized(options.topic.encode())
        self._qos = options.qos or 0
        self._retain = options.retain or False
        self._topics: dict[bytes, bytes] = {}

    def encode(self, batch: pa.RecordBatch, now: float) -> Encoded:
        """The packets of some rows; ``now`` in unix seconds."""
        done = Encoded()
        parts = zip(
            self._heads(batch, done), self._topic_names(batch, done), self._properties(batch, done, now),
            self._payloads(batch, done), strict=True,
        )  # fmt: skip
        packets = done.packets
        for row, (head, topic, properties, payload) in enumerate(parts):
            if head is None or topic is None or properties is None or payload is None:
                packets.append(None)
                continue
            identified = topic if head[0] & 0x06 == 0 else topic + PACKET_ID
            rest = identified + properties + payload
            if len(rest) > PACKET_BYTES_MAX:
                done.bad[row] = BadRow(
                    self._columns.payload_name, f"with {len(rest)} bytes it is more than fits into a request"
                )
                packets.append(None)
            else:
                packets.append(head + varint(len(rest)) + rest)
        return done

    # The pieces of packets

    def _heads(self, batch: pa.RecordBatch, done: Encoded) -> Pieces:
        """The first bytes: QoS and whether the message is retained."""
        levels = self._values(batch, "qos")
        retained = self._values(batch, "retain")
        if levels is None and retained is None:
            return repeat(first_byte(self._qos, self._retain), batch.num_rows)
        pairs = zip(
            levels or repeat(self._qos, batch.num_rows), retained or repeat(self._retain, batch.num_rows), strict=True
        )
        return _pieces(pairs, lambda pair: first_byte(pair[0] or 0, pair[1] or False), "qos", done)

    def _topic_names(self, batch: pa.RecordBatch, done: Encoded) -> Pieces:
        if self._topic is not None:
            return repeat(self._topic, batch.num_rows)
        return _pieces(bytes_of(self._column(batch, "topic")), self._topic_name, "topic", done)

    def _topic_name(self, topic: bytes | None) -> bytes:
        known = self._topics.get(topic or b"")
        if known is None:
            known = topic_name(topic)
            if len(self._topics) >= TOPICS_KEPT_MAX:
                self._topics.clear()
            self._topics[topic or b""] = known
        return known

    def _payloads(self, batch: pa.RecordBatch, done: Encoded) -> Pieces:
        payloads = bytes_of(self._column(batch, "payload"))
        if None in payloads:
            return _pieces(payloads, there, self._columns.payload_name, done)
        return payloads

    def _properties(self, batch: pa.RecordBatch, done: Encoded, now: float) -> Pieces:
        """The properties with their length in front."""
        lists = [
            pieces
            for pieces in (
                self._formats(batch, done),
                self._expiries(batch, done, now),
                self._strings(batch, "content_type", CONTENT_TYPE, check_text, done),
                self._strings(batch, "response_topic", RESPONSE_TOPIC, check_response_topic, done),
                self._strings(batch, "correlation_data", CORRELATION_DATA, None, done),
                self._user_properties(batch, done),
            )
            if pieces is not None
        ]
        if not lists:
            return repeat(b"\0", batch.num_rows)
        return map(joined, zip(*lists, strict=True))

    def _formats(self, batch: pa.RecordBatch, done: Encoded) -> Pieces | None:
        """A payload that is text says so, unless the row says something itself."""
        given = self._values(batch, "payload_format")
        text = self._text_formats(batch) if self._columns.payload_is_text else None
        if given is None:
            return text
        formats = _pieces(given, payload_format, "payload_format", done)
        if text is None:
            return formats
        return [known if known != b"" else default for known, default in zip(formats, text, strict=True)]

    def _text_formats(self, batch: pa.RecordBatch) -> Pieces:
        """Spark's strings may hold any bytes: what is no UTF-8 does not say that it is."""
        import pyarrow as pa

        column = self._column(batch, "payload")
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return [TEXT if is_text(payload or b"") else b"" for payload in bytes_of(column)]
        return repeat(TEXT, batch.num_rows)

    def _expiries(self, batch: pa.RecordBatch, done: Encoded, now: float) -> Pieces | None:
        """How many seconds a message is good for; none for what is over."""
        given = self._values(batch, "message_expiry")
        until = self._times(batch, "expires_at")
        pieces = None if given is None else _pieces(given, expiry, "message_expiry", done)
        if until is None:
            return pieces
        ends = (b"" if end is None else expiry_at(end, now) for end in until)
        if pieces is None:
            return ends
        return [end if piece == b"" else piece for piece, end in zip(pieces, ends, strict=True)]

    def _strings(
        self,
        batch: pa.RecordBatch,
        name: str,
        identifier: bytes,
        check: Callable[[bytes, str], None] | None,
        done: Encoded,
    ) -> Pieces | None:
        if name not in self._columns.places:
            return None
        column = self._column(batch, name)
        if column.null_count == batch.num_rows:
            return None

        def encoded(value: bytes | None) -> bytes:
            if value is None:
                return b""
            if check is not None:
                check(value, name)
            return identifier + sized(value)

        return _pieces(bytes_of(column), encoded, name, done)

    def _user_properties(self, batch: pa.RecordBatch, done: Encoded) -> Pieces | None:
        if "user_properties" not in self._columns.places:
            return None
        column = self._column(batch, "user_properties")
        if column.offsets[0] == column.offsets[-1]:
            return None
        return _pieces(column, user_properties, "user_properties", done)

    # Columns

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        return batch.column(self._columns.places[name])

    def _values(self, batch: pa.RecordBatch, name: str) -> list[Any] | None:
        """A column of numbers or truth values; None where there is nothing in it."""
        if name not in self._columns.places:
            return None
        column = self._column(batch, name)
        return None if column.null_count == batch.num_rows else list(column.to_pylist())

    def _times(self, batch: pa.RecordBatch, name: str) -> list[int | None] | None:
        """Microseconds since 1970."""
        if name not in self._columns.places:
            return None
        import pyarrow as pa

        column = self._column(batch, name)
        return None if column.null_count == batch.num_rows else list(column.cast(pa.int64()).to_pylist())


def _pieces(
    values: Iterable[Any], encoded: Callable[[Any], bytes | None], name: str, done: Encoded
) -> Iterator[bytes | None]:
    for row, value in enumerate(values):
        try:
            yield encoded(value)
        except (BadValueError, PacketError) as error:
            done.bad.setdefault(row, BadRow(name, str(error)))
            yield None


def bytes_of(column: pa.Array) -> list[bytes | None]:
    """The values of a column of text or binary data, as they are."""
    import pyarrow as pa

    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    elif pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    found: list[bytes | None] = column.to_pylist()
    return found

"""A batch: the groups that one append stores, and its form in the store.

| field   | size    |                                                                                          |
|---------|---------|------------------------------------------------------------------------------------------|
| format  | 1       | 1; a reader refuses others by name                                                       |
| flags   | 1       | 1: the content is an LZ4 block; 2: matched for all                                       |
| base    | varint  | offset of the first message                                                              |
| count   | varint  | messages                                                                                 |
| groups  | varint  | rows in the content                                                                      |
| size    | varint  | bytes of the content before compression; only with flag 1                                |
| content |         | the rows, then ``published_at`` of each group and ``expires_at`` of those that have one, |
|         |         | as IEEE doubles, little endian                                                           |

A row: flags (2 bytes, little endian, the constants below), count (varint), then with a length in front of each: client
id and username (where there is one), origin (where there is one), packets; and between origin and packets the number of
filter ids and the ids. Publisher and filters are left out where they are those of the row before.

Rows with raw packets and not columns of messages: storing a run is a copy of its bytes, and reading it for a session is
one too. Who wants columns (queries over the journal) makes them while reading, where there is time.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence

from brookmq.store.errors import BadRecord
from brookmq.store.journal.compression import compressed, expanded
from brookmq.store.journal.fields import FieldReader, put_bytes, put_varint
from brookmq.store.journal.group import FILTER_ID_BYTES, OVERHEAD_BYTES, Group, topic_of

FORMAT = 1

ROWS_GROUPS_MIN = 8  # a reader of a batch with fewer looks at all of them

OFFSET_MAX = (1 << 48) - 1  # a position is a shard's number and 48 bits of offset

# Flags of a batch
_COMPRESSED = 1
_EVERYTHING = 2

# Flags of a row; the two lowest bits are the QoS
_RETAIN = 1 << 2
_VERSION5 = 1 << 3
_PLAIN = 1 << 4
_CAPTURED = 1 << 5
_KEPT_PUBLISHER = 1 << 6
_EXPIRES = 1 << 7
_USERNAME = 1 << 8
_ORIGIN = 1 << 9
_SAME_PUBLISHER = 1 << 10
_SAME_FILTERS = 1 << 11
_KNOWN_FLAGS = (1 << 12) - 1


class Batch:
    """Groups with dense offsets from ``base`` to ``end``. Nobody changes it once it is made."""

    __slots__ = (
        "_filters", "_rows", "base", "count", "end", "everything", "first_time", "groups", "last_time", "sequence",
        "shard", "size",
    )  # fmt: skip

    def __init__(self, shard: int, base: int, groups: list[Group], everything: bool = False, sequence: int = 0) -> None:
        offset = base
        size = 0
        first_time = last_time = groups[0].published_at if groups else 0.0
        for group in groups:
            group.first = offset
            offset += group.count
            size += group.size() + OVERHEAD_BYTES
            published_at = group.published_at
            if published_at < first_time:
                first_time = published_at
            elif published_at > last_time:
                last_time = published_at
        self.shard = shard
        self.base = base
        self.end = offset
        self.count = offset - base
        self.groups = groups
        self.sequence = sequence  # of its record in the store; 0 while it is not stored
        self.everything = everything  # the table of kept filters was still loading: everybody has to look
        self.first_time = first_time  # the earliest ``published_at``, unix seconds
        self.last_time = last_time
        self.size = size  # bytes in memory, about
        self._filters: tuple[int, ...] | None = None
        self._rows: dict[int, list[int]] | None = None  # filter id → numbers of its groups; made for the first reader

    @property
    def filters(self) -> tuple[int, ...]:
        """The ids of all filters that matched something in it, sorted, each once."""
        if self._filters is None:
            self._filters = _unique_ids(self.groups)
        return self._filters

    def rows_for(self, wanted: frozenset[int] | None) -> Sequence[int]:
        """Numbers of the groups that may hold something for these filter ids (None: any), in order.

        Thousands of sessions that come back at once read the same batches; none of them looks at the others' groups.
        """
        if wanted is None or self.everything or len(self.groups) < ROWS_GROUPS_MIN:
            return range(len(self.groups))
        if self._rows is None:
            self._rows = _rows_by_filter(self.groups)
        rows = self._rows
        if len(wanted) <= len(rows):
            found = [rows[filter_id] for filter_id in wanted if filter_id in rows]
        else:
            found = [numbers for filter_id, numbers in rows.items() if filter_id in wanted]
        if not found:
            return ()
        return found[0] if len(found) == 1 else sorted({number for numbers in found for number in numbers})

    def __repr__(self) -> str:
        return f"Batch(shard {self.shard}, {self.base} to {self.end}, {len(self.groups)} groups)"


def joined_filters(groups: list[Group]) -> bytes:
    """The filter ids of all groups, 4 bytes each; those of one group after another are there once if they are equal."""
    parts: list[bytes] = []
    before = b""
    for group in groups:
        filters = group.filters
        if filters != before:
            parts.append(filters)
            before = filters
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _rows_by_filter(groups: list[Group]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    known: dict[bytes, list[int]] = {}  # ids in one group's filters: most groups have the filters of another one
    for number in range(len(groups)):
        group = groups[number]
        filters = group.filters
        ids = known.get(filters)
        if ids is None:
            # Two filters may have the same id: their group is one row all the same.
            ids = known[filters] = list({
                int.from_bytes(filters[at : at + FILTER_ID_BYTES], "big")
                for at in range(0, len(filters), FILTER_ID_BYTES)
            })  # fmt: skip
        for filter_id in ids:
            numbers = rows.get(filter_id)
            if numbers is None:
                rows[filter_id] = [number]
            else:
                numbers.append(number)
    return rows


def _unique_ids(groups: list[Group]) -> tuple[int, ...]:
    distinct = {group.filters for group in groups}  # most groups of a batch have the filters of another one
    ids = array("I", b"".join(distinct))
    if sys.byteorder == "little":
        ids.byteswap()
    return tuple(sorted(set(ids)))


def encode_batch(batch: Batch) -> bytes:
    """Its record's body."""
    content = _encode_content(batch.groups)
    packed = compressed(content)
    flags = (_EVERYTHING if batch.everything else 0) | (_COMPRESSED if packed else 0)
    out = bytearray((FORMAT, flags))
    put_varint(out, batch.base)
    put_varint(out, batch.count)
    put_varint(out, len(batch.groups))
    if packed:
        put_varint(out, len(content))
        out += packed
    else:
        out += content
    return bytes(out)


def _encode_content(groups: list[Group]) -> bytearray:
    out = bytearray()
    published: list[float] = []
    expiring: list[float] = []
    before = None
    for group in groups:
        flags = group.qos
        if group.retain:
            flags |= _RETAIN
        if group.version5:
            flags |= _VERSION5
        if group.plain:
            flags |= _PLAIN
        if group.captured:
            flags |= _CAPTURED
        if group.kept_publisher:
            flags |= _KEPT_PUBLISHER
        if group.expires_at != 0.0:
            flags |= _EXPIRES
            expiring.append(group.expires_at)
        if group.username is not None:
            flags |= _USERNAME
        if group.origin:
            flags |= _ORIGIN
        if before is not None:
            if group.client_id == before.client_id and group.username == before.username:
                flags |= _SAME_PUBLISHER
            if group.filters == before.filters:
                flags |= _SAME_FILTERS
        published.append(group.published_at)
        before = group

        out.append(flags & 0xFF)
        out.append(flags >> 8)
        put_varint(out, group.count)
        if not flags & _SAME_PUBLISHER:
            put_bytes(out, group.client_id.encode())
            if group.username is not None:
                put_bytes(out, group.username.encode())
        if flags & _ORIGIN:
            put_bytes(out, group.origin)
        if not flags & _SAME_FILTERS:
            put_varint(out, len(group.filters) // FILTER_ID_BYTES)
            out += group.filters
        put_bytes(out, group.packets)
    out += struct.pack(f"<{len(published) + len(expiring)}d", *published, *expiring)
    return out


def decode_batch(shard: int, sequence: int, body: bytes) -> Batch:
    """The batch in a record's body. Raises ``BadRecord`` when this version can't read it."""
    try:
        return _decode(shard, sequence, body)
    except (BadRecord, UnicodeDecodeError) as error:
        raise BadRecord(f"journal_{shard}, the batch at {sequence}: {error}") from None


def decode_filters(shard: int, sequence: int, body: bytes) -> tuple[int, int, bool, bytes]:
    """Base, end, whether it was matched for all, and the filter ids in a record's body, some of them more than once.

    The index reads hundreds of batches again after a crash, and a third of the time is enough without their groups.
    """
    try:
        return _decode_filters(body)
    except BadRecord as error:
        raise BadRecord(f"journal_{shard}, the batch at {sequence}: {error}") from None


def _decode_filters(body: bytes) -> tuple[int, int, bool, bytes]:
    reader, batch_flags, base, count, rows = _decode_head(body)
    distinct: set[bytes] = set()
    for _ in range(rows):
        flags = reader.byte() | reader.byte() << 8
        if flags > _KNOWN_FLAGS:
            raise BadRecord(f"a row with the flags {flags:#06x}")
        reader.varint()
        if not flags & _SAME_PUBLISHER:
            reader.skip(reader.varint())
            if flags & _USERNAME:
                reader.skip(reader.varint())
        if flags & _ORIGIN:
            reader.skip(reader.varint())
        if not flags & _SAME_FILTERS:
            distinct.add(reader.take(reader.varint() * FILTER_ID_BYTES))
        reader.skip(reader.varint())
    return base, base + count, batch_flags & _EVERYTHING != 0, b"".join(distinct)


def _decode_head(body: bytes) -> tuple[FieldReader, int, int, int, int]:
    """Where the rows begin; flags, base, messages, rows."""
    reader = FieldReader(body)
    format_number = reader.byte()
    if format_number != FORMAT:
        raise BadRecord(f"format {format_number} is not known here ({FORMAT} is)")
    flags = reader.byte()
    base = reader.varint()
    count = reader.varint()
    rows = reader.varint()
    if base > OFFSET_MAX or count > OFFSET_MAX - base:
        raise BadRecord(f"offsets from {base} on")
    if flags & _COMPRESSED:
        size = reader.varint()
        reader = FieldReader(expanded(reader.rest(), size))
    return reader, flags, base, count, rows


def _decode(shard: int, sequence: int, body: bytes) -> Batch:
    reader, flags, base, count, rows = _decode_head(body)
    groups: list[Group] = []
    expiring: list[Group] = []
    for _ in range(rows):
        group = _decode_row(reader, groups, expiring)
        groups.append(group)
    _decode_times(reader, groups, expiring)
    batch = Batch(shard, base, groups, flags & _EVERYTHING != 0, sequence)
    if batch.count != count:
        raise BadRecord(f"{batch.count} messages instead of {count}")
    return batch


def _decode_row(reader: FieldReader, groups: list[Group], expiring: list[Group]) -> Group:
    flags = reader.byte() | reader.byte() << 8
    if flags > _KNOWN_FLAGS or (flags & (_SAME_PUBLISHER | _SAME_FILTERS) and not groups):
        raise BadRecord(f"a row with the flags {flags:#06x}")
    before = groups[len(groups) - 1] if groups else None
    count = reader.varint()
    username = None
    if flags & _SAME_PUBLISHER and before is not None:
        client_id, username = before.client_id, before.username
    else:
        client_id = reader.sized().decode()
        if flags & _USERNAME:
            username = reader.sized().decode()
    origin = reader.sized() if flags & _ORIGIN else b""
    if flags & _SAME_FILTERS and before is not None:
        filters = before.filters
    else:
        filters = reader.take(reader.varint() * FILTER_ID_BYTES)
    packets = reader.sized()
    if not 0 < count <= len(packets):
        raise BadRecord(f"{count} messages in {len(packets)} bytes")
    group = Group(
        packets,
        count,
        flags & 3,
        flags & _RETAIN != 0,
        flags & _VERSION5 != 0,
        flags & _PLAIN != 0,
        topic_of(packets),
        client_id,
        username,
        0.0,
        0.0,
        flags & _CAPTURED != 0,
        flags & _KEPT_PUBLISHER != 0,
        origin,
        filters,
    )
    if flags & _EXPIRES:
        expiring.append(group)
    return group


def _decode_times(reader: FieldReader, groups: list[Group], expiring: list[Group]) -> None:
    times = reader.rest()
    number = len(groups) + len(expiring)
    if len(times) != 8 * number:
        raise BadRecord(f"{len(times)} bytes behind its rows instead of {8 * number}")
    moments = struct.unpack(f"<{number}d", times)
    place = 0
    for group in groups:
        group.published_at = moments[place]
        place += 1
    for group in expiring:
        group.expires_at = moments[place]
        place += 1

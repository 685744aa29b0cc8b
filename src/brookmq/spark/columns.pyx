# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Record bodies of the journal, made into Arrow columns on the executor that reads them.

The journal keeps packets as they came (``store/journal/batch.py`` has the layout), Spark wants columns. This is all the
work per message that reading takes, so it makes no Python object for a row: bytes are copied from the packets to the
buffers that Arrow is given. What a group says once (topic, publisher, times) is repeated for its messages. A column that
few messages have costs the others nothing: it is filled up with nulls when one comes, and is one cached array of nulls
in a batch without any.

Nothing here trusts a length in a record: a record that is wrong is a ``BadRecord`` and never a crash, and text is UTF-8
before Spark sees it. ``columns.py`` is the same in plain Python, and ``tests/spark/test_columns.py`` holds both to it.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport rint
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

import lz4.block
import pyarrow as pa

from brookmq.store.errors import BadRecord

COMPILED = True
ROWS_MAX = 10_000  # in a record batch: with fewer each costs Spark more, with more they fall out of the caches
BYTES_MAX = 32 * 1024 * 1024  # of text in a record batch, about: it bounds the memory of a reader
TOPICS_MAX = 100_000  # whose answer of the filter is remembered

cdef enum:
    _FORMAT = 1
    _BATCH_COMPRESSED = 1
    _RETAIN = 1 << 2
    _VERSION5 = 1 << 3
    _PLAIN = 1 << 4
    _CAPTURED = 1 << 5
    _EXPIRES = 1 << 7
    _USERNAME = 1 << 8
    _ORIGIN = 1 << 9
    _SAME_PUBLISHER = 1 << 10
    _SAME_FILTERS = 1 << 11
    _KNOWN_FLAGS = (1 << 12) - 1
    _RUN_COUNT_MAX = 500
    _NAME_BYTES_MAX = 1 << 20
    _CONTENT_BYTES_MAX = 64 * 1024 * 1024

cdef double _SECONDS_MAX = 9.0e12  # more does not fit into microseconds of 64 bits
cdef int64_t _OFFSET_MAX = (<int64_t>1 << 48) - 1


# Memory that grows, and is handed to Arrow as it is


cdef struct Grow:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t room


cdef class Block:
    """Memory that Arrow holds on to."""

    cdef void* _data
    cdef Py_ssize_t _size

    def __cinit__(self):
        self._data = NULL
        self._size = 0

    def __dealloc__(self):
        free(self._data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self._data, self._size, 1, flags)


cdef int _reserve(Grow* grow, Py_ssize_t more) except -1:
    cdef Py_ssize_t room = grow.room
    cdef uint8_t* data
    if grow.size + more <= room:
        return 0
    if room < 1024:
        room = 1024
    while room < grow.size + more:
        room *= 2
    data = <uint8_t*>realloc(grow.data, room)
    if data is NULL:
        raise MemoryError
    grow.data = data
    grow.room = room
    return 0


cdef object _handed_over(Grow* grow):
    """The memory as an Arrow buffer; what comes next goes to new memory of about that size."""
    cdef Block block = Block()
    cdef Py_ssize_t room = grow.room
    if grow.data is NULL:
        _reserve(grow, 1)
    block._data = grow.data
    block._size = grow.size
    grow.data = NULL
    grow.size = 0
    grow.room = 0
    _reserve(grow, room)
    return pa.py_buffer(block)


cdef object _bits(Grow* marks):
    """Bytes of 0 and 1 as the bits that Arrow has instead."""
    cdef Py_ssize_t count = marks.size
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, (count + 7) // 8)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(packed)
    cdef Py_ssize_t i
    memset(out, 0, (count + 7) // 8)
    for i in range(count):
        out[i >> 3] |= marks.data[i] << (i & 7)
    return pa.py_buffer(packed)


cdef Py_ssize_t _ones(Grow* marks) noexcept:
    cdef Py_ssize_t found = 0
    cdef Py_ssize_t i
    for i in range(marks.size):
        found += marks.data[i]
    return found


# Columns


cdef enum:
    _TOPIC, _PAYLOAD, _QOS, _RETAINED, _CLIENT_ID, _USER, _CONTENT_TYPE, _RESPONSE_TOPIC, _CORRELATION_DATA
    _PAYLOAD_FORMAT, _EXPIRES_AT, _PUBLISHED_AT, _OFFSET
    _PAIRS, _NAMES, _VALUES  # user properties: where those of a row end, and their names and values
    _COLUMN_COUNT

cdef dict _NUMBERS = {
    "topic": _TOPIC, "payload": _PAYLOAD, "qos": _QOS, "retain": _RETAINED, "client_id": _CLIENT_ID, "username": _USER,
    "content_type": _CONTENT_TYPE, "response_topic": _RESPONSE_TOPIC, "correlation_data": _CORRELATION_DATA,
    "payload_format": _PAYLOAD_FORMAT, "expires_at": _EXPIRES_AT, "published_at": _PUBLISHED_AT, "offset": _OFFSET,
    "user_properties": _PAIRS,
}


cdef struct Column:
    Grow values  # numbers, or where each text ends
    Grow text
    Grow valid  # a byte for each row; only of columns with nulls
    Py_ssize_t rows
    bint wanted


cdef void _release(Column* column) noexcept:
    free(column.values.data)
    free(column.text.data)
    free(column.valid.data)


cdef int _mark(Column* column, Py_ssize_t count, uint8_t valid) except -1:
    _reserve(&column.valid, count)
    memset(column.valid.data + column.valid.size, valid, count)
    column.valid.size += count
    return 0


cdef int _begin_text(Column* column) except -1:
    if column.values.size == 0:
        _reserve(&column.values, sizeof(int32_t))
        (<int32_t*>column.values.data)[0] = 0
        column.values.size = sizeof(int32_t)
    return 0


cdef int _repeat_text(Column* column, const uint8_t* text, Py_ssize_t size, Py_ssize_t count) except -1:
    """The same text in the next rows."""
    cdef int32_t* ends
    cdef int32_t at
    cdef uint8_t* out
    cdef Py_ssize_t i
    _begin_text(column)
    _reserve(&column.values, count * sizeof(int32_t))
    _reserve(&column.text, count * size)
    ends = <int32_t*>(column.values.data + column.values.size)
    at = <int32_t>column.text.size
    out = column.text.data + column.text.size
    for i in range(count):
        memcpy(out, text, size)
        out += size
        at += <int32_t>size
        ends[i] = at
    column.values.size += count * sizeof(int32_t)
    column.text.size += count * size
    column.rows += count
    return 0


cdef int _skip_text(Column* column, Py_ssize_t row) except -1:
    """Nulls up to a row."""
    cdef Py_ssize_t count = row - column.rows
    if count > 0:
        _repeat_text(column, NULL, 0, count)
        _mark(column, count, 0)
    return 0


cdef int _put_text(Column* column, Py_ssize_t row, const uint8_t* text, Py_ssize_t size, Py_ssize_t count) except -1:
    """Text in some rows of a column with nulls."""
    _skip_text(column, row)
    _repeat_text(column, text, size, count)
    _mark(column, count, 1)
    return 0


cdef int _repeat32(Column* column, int32_t value, Py_ssize_t count) except -1:
    cdef int32_t* out
    cdef Py_ssize_t i
    _reserve(&column.values, count * sizeof(int32_t))
    out = <int32_t*>(column.values.data + column.values.size)
    for i in range(count):
        out[i] = value
    column.values.size += count * sizeof(int32_t)
    column.rows += count
    return 0


cdef int _repeat64(Column* column, int64_t value, Py_ssize_t count, int64_t step) except -1:
    cdef int64_t* out
    cdef Py_ssize_t i
    _reserve(&column.values, count * sizeof(int64_t))
    out = <int64_t*>(column.values.data + column.values.size)
    for i in range(count):
        out[i] = value
        value += step
    column.values.size += count * sizeof(int64_t)
    column.rows += count
    return 0


# Reading a record


cdef struct Group:
    int flags
    Py_ssize_t count
    const uint8_t* client
    Py_ssize_t client_size
    const uint8_t* user
    Py_ssize_t user_size
    const uint8_t* packets
    Py_ssize_t packets_size
    const uint8_t* topic
    Py_ssize_t topic_size


cdef int _bad(str reason) except -1:
    raise BadRecord(reason)


cdef int64_t _varint(const uint8_t** at, const uint8_t* end) except -1:
    cdef int64_t value = 0
    cdef int shift = 0
    cdef const uint8_t* p = at[0]
    while p < end and shift < 63:
        value |= (<int64_t>(p[0] & 0x7F)) << shift
        if p[0] < 0x80:
            at[0] = p + 1
            return value
        p += 1
        shift += 7
    _bad("a number that does not end")


cdef const uint8_t* _sized(const uint8_t** at, const uint8_t* end, Py_ssize_t* size) except NULL:
    """Bytes with their length in front."""
    cdef int64_t length = _varint(at, end)
    cdef const uint8_t* found = at[0]
    if length > end - found:
        _bad(f"{end - found} of {length} bytes")
    at[0] = found + length
    size[0] = length
    return found


cdef int _check_text(const uint8_t* text, Py_ssize_t size) except -1:
    cdef Py_ssize_t i
    cdef uint8_t seen = 0
    for i in range(size):
        seen |= text[i]
    if seen >= 0x80:
        try:
            PyUnicode_DecodeUTF8(<char*>text, size, NULL)
        except UnicodeDecodeError as error:
            raise BadRecord(f"text that is not UTF-8: {error}") from None
    return 0


cdef const uint8_t* _frame(const uint8_t* p, const uint8_t* end, const uint8_t** stop) except NULL:
    """Where the body of the packet at ``p`` begins; ``stop`` is where it ends."""
    cdef const uint8_t* at = p + 1
    cdef Py_ssize_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while at < end and shift < 28:
        byte = at[0]
        value |= (<Py_ssize_t>(byte & 0x7F)) << shift
        at += 1
        if byte < 0x80:
            if value > end - at:
                break
            stop[0] = at + value
            return at
        shift += 7
    _bad("a packet that does not end")


cdef const uint8_t* _find_topic(const uint8_t* p, const uint8_t* end, Py_ssize_t* size) except NULL:
    """The topic in the packet at ``p``."""
    cdef const uint8_t* stop = NULL
    cdef const uint8_t* body = _frame(p, end, &stop)
    if stop - body < 2:
        _bad("a packet without a topic")
    size[0] = (<Py_ssize_t>body[0] << 8) | body[1]
    if size[0] > stop - body - 2:
        _bad("a topic that is longer than its packet")
    _check_text(body + 2, size[0])
    return body + 2


cdef int64_t _microseconds(double seconds) except -1:
    if not 0.0 <= seconds < _SECONDS_MAX:
        _bad(f"a time of {seconds} s")
    return <int64_t>rint(seconds * 1e6)


def extent(bytes record, Py_ssize_t position):
    """The first offset of a record whose body begins at ``position``, and the one behind its last."""
    cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(record)
    cdef const uint8_t* end = start + PyBytes_GET_SIZE(record)
    cdef const uint8_t* at = start + position
    if end - at < 2 or at < start:
        raise BadRecord("it has no content")
    if at[0] != _FORMAT:
        raise BadRecord(f"format {at[0]} is not known here ({_FORMAT} is)")
    at += 2
    cdef int64_t base = _varint(&at, end)
    cdef int64_t count = _varint(&at, end)
    if base > _OFFSET_MAX or count > _OFFSET_MAX - base:
        raise BadRecord(f"offsets from {base} on")
    return base, base + count


cdef const uint8_t* _string(const uint8_t** at, const uint8_t* end, Py_ssize_t* size) except NULL:
    """Bytes with their length in front as MQTT writes it."""
    cdef const uint8_t* found
    if end - at[0] < 2:
        _bad("a property that does not end")
    size[0] = (<Py_ssize_t>at[0][0] << 8) | at[0][1]
    found = at[0] + 2
    if size[0] > end - found:
        _bad("a property that does not end")
    at[0] = found + size[0]
    return found


cdef int _skip32(Column* column, Py_ssize_t row) except -1:
    """Nulls up to a row, in a column of numbers."""
    cdef Py_ssize_t count = row - column.rows
    if count > 0:
        _repeat32(column, 0, count)
        _mark(column, count, 0)
    return 0


cdef int _skip64(Column* column, Py_ssize_t row) except -1:
    cdef Py_ssize_t count = row - column.rows
    if count > 0:
        _repeat64(column, 0, count, 0)
        _mark(column, count, 0)
    return 0


cdef int _skip_pairs(Column* column, Py_ssize_t row, Py_ssize_t end) except -1:
    """Lists up to a row, the first of which ends there and the others are empty; none of them counts yet."""
    cdef Py_ssize_t count = row - column.rows
    if count > 0:
        _begin_text(column)
        _repeat32(column, <int32_t>end, count)
        _mark(column, count, 0)
    return 0


cdef class Columns:
    """Messages of one shard as columns: those that are captured and that ``accepts`` takes (None: any topic)."""

    cdef readonly Py_ssize_t rows  # that wait for the next batch
    cdef Column _columns[_COLUMN_COUNT]
    cdef Group* _groups  # of the record that is read
    cdef Py_ssize_t _groups_room
    cdef bytes _content  # the same record's, which its groups point into
    cdef bint _wants_properties
    cdef Py_ssize_t _rows_max, _bytes_max
    cdef object _schema, _accepts, _shard, _node
    cdef dict _answers  # of ``accepts``, by topic
    cdef dict _same  # arrays with the same value in all rows, by column

    def __cinit__(self):
        self._groups = NULL
        self._groups_room = 0
        memset(self._columns, 0, sizeof(self._columns))

    def __init__(
        self, schema, int shard, str node, accepts=None, Py_ssize_t rows_max=ROWS_MAX, Py_ssize_t bytes_max=BYTES_MAX
    ):
        self.rows = 0
        self._content = b""
        self._schema = schema
        self._shard = pa.scalar(shard, pa.int32())
        self._node = pa.scalar(node, pa.string())
        self._accepts = accepts
        self._answers = {}
        self._same = {}
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        for name in schema.names:
            if name in _NUMBERS:
                self._columns[<int>_NUMBERS[name]].wanted = True
        self._wants_properties = (
            self._columns[_PAIRS].wanted or self._columns[_CONTENT_TYPE].wanted
            or self._columns[_RESPONSE_TOPIC].wanted or self._columns[_CORRELATION_DATA].wanted
            or self._columns[_PAYLOAD_FORMAT].wanted
        )

    def __dealloc__(self):
        cdef int number
        free(self._groups)
        for number in range(_COLUMN_COUNT):
            _release(&self._columns[number])

    def add(self, bytes record, Py_ssize_t position, int64_t first, int64_t last):
        """Takes what has offsets from ``first`` to before ``last`` in a record whose body begins at ``position``.

        Returns the batches that are full. After ``BadRecord`` the columns are of no use any more.
        """
        cdef const uint8_t* times = NULL
        cdef const uint8_t* expiring
        cdef Py_ssize_t i
        cdef Group* group
        cdef double published_at, expires_at
        cdef int64_t skip, end
        cdef list full = []
        cdef int64_t offset = extent(record, position)[0]
        cdef Py_ssize_t count = self._scan(record, position, &times)
        expiring = times + 8 * count
        for i in range(count):
            group = &self._groups[i]
            memcpy(&published_at, times + 8 * i, 8)
            expires_at = 0.0
            if group.flags & _EXPIRES:
                memcpy(&expires_at, expiring, 8)
                expiring += 8
            skip = first - offset if offset < first else 0
            end = group.count if group.count < last - offset else last - offset
            if skip < end and group.flags & _CAPTURED and (self._accepts is None or self._takes(group)):
                self._take(group, skip, end, offset, published_at, expires_at)
                if self.rows >= self._rows_max or self._text_bytes() >= self._bytes_max:
                    full.append(self.finish())
            offset += group.count
        return full

    def finish(self):
        """The rows that wait, as a batch; None when there are none."""
        cdef Py_ssize_t rows = self.rows
        if rows == 0:
            return None
        arrays = [self._array(field) for field in self._schema]
        self.rows = 0
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    # Reading

    cdef Py_ssize_t _scan(self, bytes record, Py_ssize_t position, const uint8_t** times) except -1:
        """Finds the groups of a record, and where their times are; ``extent`` has checked the head."""
        cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(record)
        cdef const uint8_t* end = at + PyBytes_GET_SIZE(record)
        cdef int batch_flags
        cdef int64_t messages, count, size, found
        cdef Py_ssize_t i, expiring
        at += position
        batch_flags = at[1]
        at += 2
        _varint(&at, end)
        messages = _varint(&at, end)
        count = _varint(&at, end)
        if batch_flags & _BATCH_COMPRESSED:
            size = _varint(&at, end)
            if size > _CONTENT_BYTES_MAX:
                _bad(f"a content of {size} bytes, at most {_CONTENT_BYTES_MAX}")
            packed = memoryview(record)[at - <const uint8_t*>PyBytes_AS_STRING(record):]
            try:
                self._content = lz4.block.decompress(packed, uncompressed_size=size)
            except lz4.block.LZ4BlockError as error:
                raise BadRecord(f"it can't be unpacked: {error}") from None
            if PyBytes_GET_SIZE(self._content) != size:
                _bad(f"{len(self._content)} bytes were unpacked instead of {size}")
            at = <const uint8_t*>PyBytes_AS_STRING(self._content)
            end = at + size
        else:
            self._content = record
        if count > (end - at) // 4:  # flags, count and packets of a group are more
            _bad(f"{count} groups in {end - at} bytes")
        self._make_room(count)
        found = 0
        expiring = 0
        for i in range(count):
            self._scan_group(&at, end, i)
            found += self._groups[i].count
            if self._groups[i].flags & _EXPIRES:
                expiring += 1
        if found != messages:
            _bad(f"{found} messages instead of {messages}")
        if end - at != 8 * (count + expiring):
            _bad(f"{end - at} bytes behind its rows instead of {8 * (count + expiring)}")
        times[0] = at
        return count

    cdef int _make_room(self, Py_ssize_t count) except -1:
        cdef Group* groups
        if count > self._groups_room:
            groups = <Group*>realloc(self._groups, 2 * count * sizeof(Group))
            if groups is NULL:
                raise MemoryError
            self._groups = groups
            self._groups_room = 2 * count
        return 0

    cdef int _scan_group(self, const uint8_t** at, const uint8_t* end, Py_ssize_t number) except -1:
        cdef Group* group = &self._groups[number]
        cdef int64_t count
        cdef Py_ssize_t size = 0
        if end - at[0] < 2:
            _bad("it ends in the middle of a field")
        group.flags = at[0][0] | at[0][1] << 8
        at[0] += 2
        if group.flags > _KNOWN_FLAGS or (group.flags & (_SAME_PUBLISHER | _SAME_FILTERS) and number == 0):
            _bad(f"a row with the flags {group.flags:#06x}")
        count = _varint(at, end)
        if group.flags & _SAME_PUBLISHER:
            group.client, group.client_size = self._groups[number - 1].client, self._groups[number - 1].client_size
            group.user, group.user_size = self._groups[number - 1].user, self._groups[number - 1].user_size
        else:
            group.client = _sized(at, end, &group.client_size)
            group.user = NULL
            group.user_size = 0
            if group.flags & _USERNAME:
                group.user = _sized(at, end, &group.user_size)
            if group.client_size > _NAME_BYTES_MAX or group.user_size > _NAME_BYTES_MAX:
                _bad("a publisher with a name of more than a megabyte")
            _check_text(group.client, group.client_size)
            _check_text(group.user, group.user_size)
        if group.flags & _ORIGIN:
            _sized(at, end, &size)
        if not group.flags & _SAME_FILTERS:
            count_ids = _varint(at, end)
            if count_ids > (end - at[0]) // 4:
                _bad(f"{count_ids} filters in {end - at[0]} bytes")
            at[0] += 4 * <Py_ssize_t>count_ids
        group.packets = _sized(at, end, &group.packets_size)
        if not 0 < count <= group.packets_size or count > (_RUN_COUNT_MAX if group.flags & _PLAIN else 1):
            _bad(f"{count} messages in {group.packets_size} bytes")
        group.count = count
        group.topic = _find_topic(group.packets, group.packets + group.packets_size, &group.topic_size)
        return 0

    cdef bint _takes(self, Group* group) except -1:
        cdef bytes topic = PyBytes_FromStringAndSize(<char*>group.topic, group.topic_size)
        answer = self._answers.get(topic)
        if answer is None:
            if len(self._answers) >= TOPICS_MAX:
                self._answers.clear()
            answer = self._answers[topic] = bool(self._accepts(topic))
        return answer

    # Taking over

    cdef int _take(
        self, Group* group, Py_ssize_t first, Py_ssize_t last, int64_t offset, double published_at, double expires_at
    ) except -1:
        """The messages of a group from number ``first`` to before ``last``."""
        cdef Column* columns = self._columns
        cdef Py_ssize_t count = last - first
        cdef Py_ssize_t row = self.rows
        if columns[_PAYLOAD].wanted or self._wants_properties:
            if group.flags & _PLAIN:
                self._take_payloads(group, first, last)
            else:
                self._take_packet(group)
        if columns[_TOPIC].wanted:
            _repeat_text(&columns[_TOPIC], group.topic, group.topic_size, count)
        if columns[_CLIENT_ID].wanted:
            _repeat_text(&columns[_CLIENT_ID], group.client, group.client_size, count)
        if columns[_USER].wanted and group.user is not NULL:
            _put_text(&columns[_USER], row, group.user, group.user_size, count)
        if columns[_QOS].wanted:
            _repeat32(&columns[_QOS], group.flags & 3, count)
        if columns[_RETAINED].wanted:
            _mark(&columns[_RETAINED], count, 1 if group.flags & _RETAIN else 0)
        if columns[_PUBLISHED_AT].wanted:
            _repeat64(&columns[_PUBLISHED_AT], _microseconds(published_at), count, 0)
        if columns[_OFFSET].wanted:
            _repeat64(&columns[_OFFSET], offset + first, count, 1)
        if columns[_EXPIRES_AT].wanted and expires_at != 0.0:
            _skip64(&columns[_EXPIRES_AT], row)
            _repeat64(&columns[_EXPIRES_AT], _microseconds(expires_at), count, 0)
            _mark(&columns[_EXPIRES_AT], count, 1)
        self.rows += count
        return 0

    cdef int _take_payloads(self, Group* group, Py_ssize_t first, Py_ssize_t last) except -1:
        """Of packets that have no properties."""
        cdef Column* column = &self._columns[_PAYLOAD]
        cdef const uint8_t* at = group.packets
        cdef const uint8_t* end = at + group.packets_size
        cdef const uint8_t* stop = NULL
        cdef const uint8_t* body
        cdef int32_t* ends
        cdef uint8_t* out
        cdef Py_ssize_t i, size, head
        if not column.wanted:
            return 0
        head = 2 + group.topic_size + (2 if at[0] & 0x06 else 0) + (1 if group.flags & _VERSION5 else 0)
        _begin_text(column)
        _reserve(&column.values, (last - first) * sizeof(int32_t))
        _reserve(&column.text, group.packets_size)
        ends = <int32_t*>(column.values.data + column.values.size)
        out = column.text.data + column.text.size
        for i in range(last):
            if at >= end:
                _bad(f"{i} packets instead of {group.count}")
            body = _frame(at, end, &stop)
            size = stop - body - head
            if size < 0:
                _bad("a packet that is shorter than what stands before its payload")
            if i >= first:
                memcpy(out, body + head, size)
                out += size
                ends[i - first] = <int32_t>(out - column.text.data)
            at = stop
        column.values.size += (last - first) * sizeof(int32_t)
        column.text.size = out - column.text.data
        column.rows += last - first
        return 0

    cdef int _take_packet(self, Group* group) except -1:
        """Of a packet that may have properties."""
        cdef const uint8_t* end = group.packets + group.packets_size
        cdef const uint8_t* stop = NULL
        cdef const uint8_t* at = _frame(group.packets, end, &stop)
        cdef Py_ssize_t head = 2 + group.topic_size + (2 if group.flags & 3 else 0)
        cdef int64_t size
        if stop != end or head > end - at:
            _bad(f"a packet that is not {group.packets_size} bytes long")
        at += head
        if group.flags & _VERSION5:
            size = _varint(&at, end)
            if size > end - at:
                _bad("properties that are longer than their packet")
            if self._wants_properties:
                self._take_properties(at, at + <Py_ssize_t>size)
            at += <Py_ssize_t>size
        if self._columns[_PAYLOAD].wanted:
            _repeat_text(&self._columns[_PAYLOAD], at, end - at, 1)
        return 0

    cdef int _take_properties(self, const uint8_t* at, const uint8_t* end) except -1:
        cdef Column* columns = self._columns
        cdef int identifier
        cdef const uint8_t* value
        cdef const uint8_t* name
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t name_size = 0
        cdef Py_ssize_t row = self.rows
        cdef Py_ssize_t pairs = columns[_NAMES].rows
        while at < end:
            identifier = at[0]
            at += 1
            if identifier == 0x26:
                name = _string(&at, end, &name_size)
                value = _string(&at, end, &size)
                _check_text(name, name_size)
                _check_text(value, size)
                if columns[_PAIRS].wanted:
                    _repeat_text(&columns[_NAMES], name, name_size, 1)
                    _repeat_text(&columns[_VALUES], value, size, 1)
            elif identifier == 0x03 or identifier == 0x08:
                value = _string(&at, end, &size)
                _check_text(value, size)
                self._put_once(_CONTENT_TYPE if identifier == 0x03 else _RESPONSE_TOPIC, row, value, size)
            elif identifier == 0x09:
                value = _string(&at, end, &size)
                self._put_once(_CORRELATION_DATA, row, value, size)
            elif identifier == 0x01:
                if at == end:
                    _bad("a property that does not end")
                if columns[_PAYLOAD_FORMAT].wanted and columns[_PAYLOAD_FORMAT].rows <= row:
                    _skip32(&columns[_PAYLOAD_FORMAT], row)
                    _repeat32(&columns[_PAYLOAD_FORMAT], at[0], 1)
                    _mark(&columns[_PAYLOAD_FORMAT], 1, 1)
                at += 1
            else:
                _bad(f"a property {identifier:#04x}")
        if columns[_NAMES].rows > pairs:
            _skip_pairs(&columns[_PAIRS], row, pairs)
            _skip_pairs(&columns[_PAIRS], row + 1, columns[_NAMES].rows)
            columns[_PAIRS].valid.data[row] = 1
        return 0

    cdef int _put_once(self, int number, Py_ssize_t row, const uint8_t* value, Py_ssize_t size) except -1:
        """A property that stands in a packet at most once; of others the first one counts."""
        cdef Column* column = &self._columns[number]
        if column.wanted and column.rows <= row:
            _put_text(column, row, value, size, 1)
        return 0

    cdef Py_ssize_t _text_bytes(self) noexcept:
        cdef Py_ssize_t size = 0
        cdef int number
        for number in range(_COLUMN_COUNT):
            size += self._columns[number].text.size
        return size

    # Handing out

    cdef object _array(self, field):
        name = field.name
        if name == "partition":
            return self._repeated(name, field.type, self._shard)
        if name == "node":
            return self._repeated(name, field.type, self._node)
        cdef int number = _NUMBERS[name]
        cdef Column* column = &self._columns[number]
        if number == _TOPIC or number == _PAYLOAD or number == _CLIENT_ID:
            return self._text_array(column, field.type, False)
        if number == _RETAINED:
            bits = _bits(&column.valid)
            column.valid.size = 0
            return pa.Array.from_buffers(field.type, self.rows, [None, bits], 0)
        if number == _QOS or number == _PUBLISHED_AT or number == _OFFSET:
            return self._number_array(column, field.type, False)
        if column.rows == 0:
            return self._repeated(name, field.type, None)
        if number == _EXPIRES_AT:
            _skip64(column, self.rows)
            return self._number_array(column, field.type, True)
        if number == _PAYLOAD_FORMAT:
            _skip32(column, self.rows)
            return self._number_array(column, field.type, True)
        if number == _PAIRS:
            return self._pairs_array(field.type)
        _skip_text(column, self.rows)
        return self._text_array(column, field.type, True)

    cdef object _repeated(self, str name, type_, value):
        """The same value in all rows: made once, for as many as were asked for, and then a part of it."""
        known = self._same.get(name)
        if known is None or len(known) < self.rows:
            rows = max(self.rows, self._rows_max + _RUN_COUNT_MAX)
            known = pa.nulls(rows, type_) if value is None else pa.repeat(value, rows)
            self._same[name] = known
        return known if len(known) == self.rows else known.slice(0, self.rows)

    cdef tuple _validity(self, Column* column, bint nullable):
        if not nullable:
            return None, 0
        cdef Py_ssize_t nulls = column.valid.size - _ones(&column.valid)
        bits = _bits(&column.valid) if nulls else None
        column.valid.size = 0
        return bits, nulls

    cdef object _text_array(self, Column* column, type_, bint nullable):
        cdef Py_ssize_t rows = column.rows
        bits, nulls = self._validity(column, nullable)
        column.rows = 0
        buffers = [bits, _handed_over(&column.values), _handed_over(&column.text)]
        return pa.Array.from_buffers(type_, rows, buffers, nulls)

    cdef object _number_array(self, Column* column, type_, bint nullable):
        cdef Py_ssize_t rows = column.rows
        bits, nulls = self._validity(column, nullable)
        column.rows = 0
        return pa.Array.from_buffers(type_, rows, [bits, _handed_over(&column.values)], nulls)

    cdef object _pairs_array(self, type_):
        cdef Column* lists = &self._columns[_PAIRS]
        cdef Py_ssize_t pairs = self._columns[_NAMES].rows
        _skip_pairs(lists, self.rows, pairs)
        bits, nulls = self._validity(lists, True)
        lists.rows = 0
        names = self._text_array(&self._columns[_NAMES], pa.string(), False)
        values = self._text_array(&self._columns[_VALUES], pa.string(), False)
        structs = pa.Array.from_buffers(type_.value_type, pairs, [None], 0, children=[names, values])
        ends = _handed_over(&lists.values)
        return pa.Array.from_buffers(type_, self.rows, [bits, ends], nulls, children=[structs])

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The part of the codec that works on pointers: runs of PUBLISH packets and runs of acknowledgements.

A publisher that sends many messages sends them back to back, to one topic, with the same flags. Such a *run* is found,
checked and forwarded as one slice of bytes; per message there remain a few comparisons. ``kernel.py`` is the same in
plain Python, and ``tests/mqtt/test_kernel.py`` holds both to the same answers.

A packet is *plain* when it can go out as it came in: not a duplicate, not retained, no properties, a topic that is not
empty. Everything else takes the way through ``codec``.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

COMPILED = True
# Messages in one run: bounds the arrays below, the work between two looks at the outlets, and what one run can add to the
# queue of a session (half of its default length, so that its publishers can be slowed down before it is full).
RUN_COUNT_MAX = 500

cdef enum:
    _RUN_COUNT_MAX = 500


cdef inline Py_ssize_t _frame(const unsigned char* p, Py_ssize_t pos, Py_ssize_t end, Py_ssize_t* body) noexcept nogil:
    """The end of the packet at ``pos``: 0 when it is not all there yet, -1 when its length is malformed. [MQTT-1.5.5-1]"""
    cdef Py_ssize_t at = pos + 1
    cdef Py_ssize_t value = 0
    cdef int shift = 0
    cdef unsigned char byte
    while True:
        if at >= end:
            return 0
        byte = p[at]
        at += 1
        value |= (<Py_ssize_t>(byte & 0x7F)) << shift
        if byte < 0x80:
            if byte == 0 and shift > 0:
                return -1  # longer than needed [MQTT-1.5.5-1]
            break
        shift += 7
        if shift > 21:
            return -1
    body[0] = at
    return at + value


cpdef tuple frame(bytes data, Py_ssize_t pos):
    """``(body, end)`` of the packet at ``pos``. ``end`` lies beyond the data when the packet is not all there yet; it is 0
    when even the length is not there, -1 when the length is malformed."""
    cdef Py_ssize_t body = 0
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef Py_ssize_t stop = _frame(<const unsigned char*>PyBytes_AS_STRING(data), pos, size, &body)
    return body, stop


cdef inline Py_ssize_t _put_length(unsigned char* out, Py_ssize_t value) noexcept nogil:
    cdef Py_ssize_t n = 0
    while value >= 0x80:
        out[n] = <unsigned char>((value & 0x7F) | 0x80)
        value >>= 7
        n += 1
    out[n] = <unsigned char>value
    return n + 1


cdef class Run:
    """Consecutive plain PUBLISH packets of one topic and one QoS inside ``data[start:end]``."""

    def __cinit__(self):
        self.data = b""
        self.count = 0

    cpdef Py_ssize_t scan(self, bytes data, Py_ssize_t pos, bint version5, Py_ssize_t packet_size_max):
        """Take the run that begins at ``pos``. Returns its end, or 0 when the packet there is not plain, not complete or
        not well formed (the slow way finds out which)."""
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        cdef unsigned char head = p[pos]
        cdef int qos = (head >> 1) & 3
        cdef Py_ssize_t topic_size, topic_at, body, stop, at
        cdef Py_ssize_t largest = 0
        cdef const unsigned char* topic
        cdef int n = 0
        cdef Py_ssize_t fixed = (2 if qos else 0) + (1 if version5 else 0)
        if head & 0xF9 != 0x30 or qos == 3:
            return 0
        self.start = pos
        topic = NULL
        topic_size = 0
        topic_at = 0
        while n < _RUN_COUNT_MAX and pos < size and p[pos] == head:
            stop = _frame(p, pos, size, &body)
            if stop <= 0 or stop > size or stop - pos > packet_size_max or stop - body < 2:
                break
            at = body + 2
            if topic == NULL:
                topic_size = (p[body] << 8) | p[body + 1]
                if topic_size == 0 or at + topic_size + fixed > stop:
                    break
                topic = p + at
                topic_at = at
            elif (
                p[body] != (topic_size >> 8)
                or p[body + 1] != (topic_size & 0xFF)
                or at + topic_size + fixed > stop
                or memcmp(p + at, topic, topic_size) != 0
            ):
                break
            at += topic_size
            if qos and p[at] == 0 and p[at + 1] == 0:
                break  # packet id 0: the slow way answers it [MQTT-2.2.1-2]
            if version5 and p[at + fixed - 1] != 0:
                break
            self.rest_at[n] = <int>at
            self.end_at[n] = <int>stop
            if stop - pos > largest:
                largest = stop - pos
            n += 1
            pos = stop
        if n == 0:
            return 0
        self.data = data
        self.end = pos
        self.count = n
        self.qos = qos
        self.version5 = version5
        self.fixed = <int>fixed
        self.largest = largest
        self.topic_at = topic_at
        self.topic_size = topic_size
        self.qos0_v3 = None
        self.qos0_v5 = None
        return pos

    cpdef bint has_topic(self, bytes topic):
        """True when its topic is the given one."""
        return PyBytes_GET_SIZE(topic) == self.topic_size and memcmp(
            PyBytes_AS_STRING(topic), PyBytes_AS_STRING(self.data) + self.topic_at, self.topic_size
        ) == 0

    cpdef bytes topic(self):
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.data) + self.topic_at, self.topic_size)

    cpdef bytes ids(self):
        """The packet ids as they stand in the packets, two bytes each."""
        cdef bytes result = PyBytes_FromStringAndSize(NULL, 2 * self.count)
        cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(result)
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(self.data)
        cdef int i
        for i in range(self.count):
            out[2 * i] = p[self.rest_at[i]]
            out[2 * i + 1] = p[self.rest_at[i] + 1]
        return result

    cpdef bytes payload(self, int index):
        cdef Py_ssize_t at = self.rest_at[index] + self.fixed
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.data) + at, self.end_at[index] - at)

    cpdef bytes qos0(self, bint version5):
        """All its messages as QoS 0 packets for one protocol version, made once for all receivers."""
        cdef bytes result = self.qos0_v5 if version5 else self.qos0_v3
        if result is not None:
            return result
        if self.qos == 0 and self.version5 == version5:
            if self.start == 0 and self.end == PyBytes_GET_SIZE(self.data):
                result = self.data
            else:
                result = PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.data) + self.start, self.end - self.start)
        else:
            result = self._encode(version5, 0, b"", 0, self.count)
        if version5:
            self.qos0_v5 = result
        else:
            self.qos0_v3 = result
        return result

    cpdef bytes with_ids(self, bint version5, int qos, bytes ids, int first):
        """The messages from ``first`` on, as many as there are ids, as packets of this QoS with these packet ids."""
        cdef int count = <int>(PyBytes_GET_SIZE(ids) // 2)
        cdef Py_ssize_t start, shift
        cdef bytes result
        cdef unsigned char* out
        cdef const unsigned char* given
        cdef int i
        if qos != self.qos or version5 != self.version5:
            return self._encode(version5, qos, ids, first, count)
        start = self.start if first == 0 else self.end_at[first - 1]
        result = PyBytes_FromStringAndSize(
            PyBytes_AS_STRING(self.data) + start, self.end_at[first + count - 1] - start
        )
        out = <unsigned char*>PyBytes_AS_STRING(result)
        given = <const unsigned char*>PyBytes_AS_STRING(ids)
        for i in range(count):
            shift = self.rest_at[first + i] - start
            out[shift] = given[2 * i]
            out[shift + 1] = given[2 * i + 1]
        return result

    cdef bytes _encode(self, bint version5, int qos, bytes ids, int first, int count):
        """The general way: another protocol version or QoS, so lengths change."""
        cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(self.data)
        cdef const unsigned char* given = <const unsigned char*>PyBytes_AS_STRING(ids)
        cdef Py_ssize_t fixed = (2 if qos else 0) + (1 if version5 else 0)
        cdef Py_ssize_t total = 0
        cdef Py_ssize_t payload_at, payload_size, length
        cdef unsigned char scratch[4]
        cdef int i
        for i in range(first, first + count):
            length = 2 + self.topic_size + fixed + self.end_at[i] - self.rest_at[i] - self.fixed
            total += 1 + _put_length(scratch, length) + length
        cdef bytes result = PyBytes_FromStringAndSize(NULL, total)
        cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(result)
        for i in range(first, first + count):
            payload_at = self.rest_at[i] + self.fixed
            payload_size = self.end_at[i] - payload_at
            out[0] = <unsigned char>(0x30 | (qos << 1))
            out += 1
            out += _put_length(out, 2 + self.topic_size + fixed + payload_size)
            memcpy(out, p + self.topic_at - 2, 2 + self.topic_size)
            out += 2 + self.topic_size
            if qos:
                out[0] = given[2 * (i - first)]
                out[1] = given[2 * (i - first) + 1]
                out += 2
            if version5:
                out[0] = 0
                out += 1
            memcpy(out, p + payload_at, payload_size)
            out += payload_size
        return result


cpdef bytes ack_ids(bytes data, Py_ssize_t pos):
    """The packet ids of the acknowledgements of one type in their shortest form (four bytes each) from ``pos`` on. Empty
    when the packet there has another form."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef unsigned char head = p[pos]
    cdef Py_ssize_t at = pos
    cdef Py_ssize_t count = 0
    while at + 4 <= size and p[at] == head and p[at + 1] == 2 and (p[at + 2] != 0 or p[at + 3] != 0):
        count += 1
        at += 4
    cdef bytes result = PyBytes_FromStringAndSize(NULL, 2 * count)
    cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(result)
    cdef Py_ssize_t i
    for i in range(count):
        out[2 * i] = p[pos + 4 * i + 2]
        out[2 * i + 1] = p[pos + 4 * i + 3]
    return result


cpdef bytes acks(int head, bytes ids):
    """Acknowledgements in their shortest form, one for each packet id. ``head`` is their first byte."""
    cdef Py_ssize_t count = PyBytes_GET_SIZE(ids) // 2
    cdef bytes result = PyBytes_FromStringAndSize(NULL, 4 * count)
    cdef unsigned char* out = <unsigned char*>PyBytes_AS_STRING(result)
    cdef const unsigned char* given = <const unsigned char*>PyBytes_AS_STRING(ids)
    cdef Py_ssize_t i
    for i in range(count):
        out[4 * i] = <unsigned char>head
        out[4 * i + 1] = 2
        out[4 * i + 2] = given[2 * i]
        out[4 * i + 3] = given[2 * i + 1]
    return result

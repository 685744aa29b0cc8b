# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The bytes of the load tool, handled on pointers so that the tool is not what gets measured.

A load generator written packet by packet in Python would be slower than the brokers that it is meant to load. Here the
three things that happen once per message are compiled: patching packet ids, timestamps and topic serials into a prepared
block of PUBLISH packets, walking over what came in (counting it and building the run of acknowledgements that it asks
for), and the same on the side of the null broker. ``frames_plain`` says the same in plain Python; a test feeds both.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

STAMP_BYTES = 8

cdef enum:
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    FAILURE = 0x80
    STAMP = 8

# A latency above this is no latency: the payload did not begin with one of our timestamps.
cdef int64_t LATENCY_NS_MAX = 3600 * 1000000000


cdef inline Py_ssize_t bucket_of(int64_t nanoseconds) noexcept nogil:
    """Log-linear: 64 buckets for every power of two, so a value is known to 1.6 %."""
    cdef Py_ssize_t shift = 0
    cdef int64_t rest
    if nanoseconds < 0:
        return 0
    rest = nanoseconds
    while rest >= 1 << 19:
        rest >>= 13
        shift += 13
    while rest >= 128:
        rest >>= 1
        shift += 1
    shift = 64 * shift + rest
    return shift if shift < BUCKETS else BUCKETS - 1


cdef inline Py_ssize_t body_of(const unsigned char *packet, Py_ssize_t at, Py_ssize_t end,
                               Py_ssize_t *length) except -2:
    """Where the packet's variable header begins and how long the rest is; -1 while the fixed header is incomplete."""
    cdef Py_ssize_t value = packet[at + 1]
    cdef Py_ssize_t shift = 7
    at += 2
    if value < 128:
        length[0] = value
        return at
    value &= 127
    while at < end:
        value |= <Py_ssize_t>(packet[at] & 127) << shift
        if packet[at] < 128:
            length[0] = value
            return at + 1
        at += 1
        shift += 7
        if shift > 21:
            raise ValueError("a remaining length of more than four bytes")
    return -1


cdef inline unsigned char *answer(unsigned char *out, unsigned char head, const unsigned char *packet_id) noexcept nogil:
    out[0] = head
    out[1] = 2
    out[2] = packet_id[0]
    out[3] = packet_id[1]
    return out + 4


cdef class Latencies:
    """How often each latency was seen, in buckets: constant memory for any number of messages."""

    def __cinit__(self):
        self.clear()

    def clear(self):
        cdef Py_ssize_t i
        for i in range(BUCKETS):
            self.buckets[i] = 0
        self.highest = 0

    cpdef void record(self, int64_t nanoseconds, int64_t times):
        self.buckets[bucket_of(nanoseconds)] += times
        if nanoseconds > self.highest:
            self.highest = nanoseconds

    def counts(self):
        return [self.buckets[i] for i in range(BUCKETS)]


cdef class Inbox:
    """What one client of the tool has received: counters, and the unfinished packet at the end."""

    def __cinit__(self, int version, Latencies latencies not None):
        self.version = version
        self.latencies = latencies
        self.closed_with = -1
        self.rest = b""

    cpdef Py_ssize_t restore(self, bytearray buffer):
        """Put what was left over to the front of the shared buffer; the next read goes behind it."""
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self.rest)
        if length:
            memcpy(PyByteArray_AS_STRING(buffer), PyBytes_AS_STRING(self.rest), length)
        return length

    cpdef bytes feed(self, bytearray buffer, Py_ssize_t end, int64_t now):
        """Take the packets in ``buffer[:end]``; the bytes to answer with, in the order of arrival, or None."""
        cdef const unsigned char *packet = <const unsigned char *>PyByteArray_AS_STRING(buffer)
        cdef Py_ssize_t at = 0, body, stop, length = 0, last_bucket = 0
        cdef int64_t last_stamp = -1
        cdef int kind
        cdef bytes answers = None
        # An answer has four bytes and answers a packet of at least four.
        cdef unsigned char *out = <unsigned char *>malloc(end + 4)
        cdef unsigned char *cursor = out
        if out is NULL:
            raise MemoryError
        try:
            while end - at >= 2:
                body = body_of(packet, at, end, &length)
                if body < 0 or body + length > end:
                    break
                stop = body + length
                kind = packet[at] >> 4
                if kind == PUBLISH:
                    self.count_message(packet, at, stop, now, &last_stamp, &last_bucket)
                    if packet[at] & 6:
                        body += 2 + (packet[body] << 8 | packet[body + 1])
                        cursor = answer(cursor, PUBACK << 4 if packet[at] & 2 else PUBREC << 4, packet + body)
                elif PUBACK <= kind <= PUBCOMP:
                    if length < 2:
                        raise ValueError("an acknowledgement without a packet id")
                    if kind == PUBREL:
                        cursor = answer(cursor, PUBCOMP << 4, packet + body)
                    elif length > 2 and packet[body + 2] >= FAILURE:
                        self.refused += 1
                        self.acknowledged += 1
                    elif kind == PUBREC:
                        cursor = answer(cursor, PUBREL << 4 | 2, packet + body)
                    else:
                        self.acknowledged += 1
                elif kind == CONNACK:
                    self.connack = packet[body:stop]
                elif kind == SUBACK:
                    self.count_grants(packet, body, stop)
                elif kind == PINGRESP:
                    self.pings += 1
                elif kind == DISCONNECT:
                    self.closed_with = packet[body] if length else 0
                at = stop
            self.rest = packet[at:end] if at < end else b""
            if cursor != out:
                answers = PyBytes_FromStringAndSize(<char *>out, cursor - out)
        finally:
            free(out)
        return answers

    cdef void count_message(self, const unsigned char *packet, Py_ssize_t at, Py_ssize_t stop, int64_t now,
                            int64_t *last_stamp, Py_ssize_t *last_bucket) except *:
        cdef Py_ssize_t length = 0, i
        cdef Py_ssize_t payload = body_of(packet, at, stop, &length)
        cdef int64_t stamp = 0
        if stop - payload < 2:
            raise ValueError("a PUBLISH without a topic")
        payload += 2 + (packet[payload] << 8 | packet[payload + 1])
        if packet[at] & 6:
            payload += 2
        if self.version == 5:
            if payload >= stop:
                raise ValueError("a PUBLISH without properties")
            # The byte before the property length stands where body_of expects the packet type.
            payload = body_of(packet, payload - 1, stop, &length)
            payload = payload + length if payload >= 0 else stop + 1
        if payload > stop:
            raise ValueError("a PUBLISH that ends before its payload")
        self.received += 1
        self.received_bytes += stop - payload
        if packet[at] & 8:
            self.duplicates += 1
        if stop - payload < STAMP:
            return
        for i in range(STAMP):
            stamp = stamp << 8 | packet[payload + i]
        if stamp != last_stamp[0]:
            if stamp > now or now - stamp > LATENCY_NS_MAX or stamp <= 0:
                return
            last_stamp[0] = stamp
            last_bucket[0] = bucket_of(now - stamp)
            if now - stamp > self.latencies.highest:
                self.latencies.highest = now - stamp
        self.latencies.buckets[last_bucket[0]] += 1

    cdef void count_grants(self, const unsigned char *packet, Py_ssize_t at, Py_ssize_t stop) except *:
        cdef Py_ssize_t length = 0
        if stop - at < 3:
            raise ValueError("a SUBACK without a reason code")
        at += 2
        if self.version == 5:
            at = body_of(packet, at - 1, stop, &length)
            if at < 0:
                raise ValueError("a SUBACK that ends in its properties")
            at += length
        while at < stop:
            if packet[at] >= FAILURE:
                self.denied += 1
            else:
                self.granted += 1
            at += 1


cdef void write_digits(unsigned char *where, Py_ssize_t width, int64_t value) noexcept nogil:
    while width > 0:
        width -= 1
        where[width] = 48 + value % 10
        value //= 10


cdef class PublishBlock:
    """Copies of one PUBLISH packet in a row, patched in place before each write.

    ``id_offset`` and ``stamp_offset`` are places inside the packet, -1 for none. ``first`` and ``second`` are decimal
    numbers in the topic, as (offset, width, modulus, stride): packet number *n* shows ``n * stride % modulus``.
    """

    def __cinit__(self, bytes packet not None, Py_ssize_t capacity, Py_ssize_t id_offset=-1,
                  Py_ssize_t stamp_offset=-1, tuple first=None, tuple second=None):
        self.data = bytearray(packet * capacity)
        self.packet_length = len(packet)
        self.capacity = capacity
        self.id_offset = id_offset
        self.stamp_offset = stamp_offset
        self.first_offset = self.second_offset = -1
        if first is not None:
            self.first_offset, self.first_width, self.first_modulus, self.first_stride = first
        if second is not None:
            self.second_offset, self.second_width, self.second_modulus, _ = second
        self.next_id = 1

    cpdef Py_ssize_t fill(self, Py_ssize_t count, int64_t stamp):
        """Make the first ``count`` packets new ones; how many bytes they are."""
        cdef unsigned char *packet = <unsigned char *>PyByteArray_AS_STRING(self.data)
        cdef Py_ssize_t i, k
        cdef int64_t rest
        if count < 0 or count > self.capacity:
            raise ValueError("more packets than the block holds")
        for i in range(count):
            if self.id_offset >= 0:
                packet[self.id_offset] = self.next_id >> 8
                packet[self.id_offset + 1] = self.next_id & 255
                self.next_id = self.next_id + 1 if self.next_id < 65535 else 1
            if self.stamp_offset >= 0:
                rest = stamp
                for k in range(STAMP):
                    packet[self.stamp_offset + STAMP - 1 - k] = rest & 255
                    rest >>= 8
            if self.first_offset >= 0:
                write_digits(packet + self.first_offset, self.first_width,
                             self.serial * self.first_stride % self.first_modulus)
            if self.second_offset >= 0:
                write_digits(packet + self.second_offset, self.second_width, self.serial % self.second_modulus)
            self.serial += 1
            packet += self.packet_length
        return count * self.packet_length


cdef class NullInbox:
    """One connection of the null broker: says yes to everything and forwards nothing."""

    def __cinit__(self):
        self.rest = b""
        self.version = 4

    cpdef Py_ssize_t restore(self, bytearray buffer):
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self.rest)
        if length:
            memcpy(PyByteArray_AS_STRING(buffer), PyBytes_AS_STRING(self.rest), length)
        return length

    cpdef bytes feed(self, bytearray buffer, Py_ssize_t end):
        cdef const unsigned char *packet = <const unsigned char *>PyByteArray_AS_STRING(buffer)
        cdef Py_ssize_t at = 0, body, stop, length = 0
        cdef int kind
        cdef bytes answers = None
        cdef unsigned char *out = <unsigned char *>malloc(end + 16)
        cdef unsigned char *cursor = out
        if out is NULL:
            raise MemoryError
        try:
            while end - at >= 2:
                body = body_of(packet, at, end, &length)
                if body < 0 or body + length > end:
                    break
                stop = body + length
                kind = packet[at] >> 4
                if kind == PUBLISH:
                    self.received += 1
                    if packet[at] & 6:
                        body += 2 + (packet[body] << 8 | packet[body + 1])
                        if body + 2 > stop:
                            raise ValueError("a PUBLISH without a packet id")
                        cursor = answer(cursor, PUBACK << 4 if packet[at] & 2 else PUBREC << 4, packet + body)
                elif kind == PUBREL and length >= 2:
                    cursor = answer(cursor, PUBCOMP << 4, packet + body)
                elif kind == CONNECT and length >= 10:
                    self.version = packet[body + 2 + packet[body + 1]]
                    answer(cursor, CONNACK << 4, b"\0\0")
                    if self.version == 5:
                        cursor[1] = 3
                        cursor[4] = 0
                    cursor += 2 + cursor[1]
                elif kind == SUBSCRIBE:
                    # Granted for the first filter only: the tool's own self-test asks for no more.
                    answer(cursor, SUBACK << 4, packet + body)
                    cursor[1] = 4 if self.version == 5 else 3
                    cursor[4] = cursor[5] = 0
                    cursor += 2 + cursor[1]
                elif kind == PINGREQ:
                    cursor[0] = PINGRESP << 4
                    cursor[1] = 0
                    cursor += 2
                at = stop
            self.rest = packet[at:end] if at < end else b""
            if cursor != out:
                answers = PyBytes_FromStringAndSize(<char *>out, cursor - out)
        finally:
            free(out)
        return answers

from libc.stdint cimport int64_t

cdef enum:
    BUCKETS = 2304

cdef class Latencies:
    cdef int64_t buckets[BUCKETS]
    cdef readonly int64_t highest
    cpdef void record(self, int64_t nanoseconds, int64_t times)

cdef class Inbox:
    cdef readonly int version
    cdef readonly Latencies latencies
    cdef readonly int64_t received
    cdef readonly int64_t received_bytes
    cdef readonly int64_t duplicates
    cdef readonly int64_t acknowledged
    cdef readonly int64_t refused
    cdef readonly int64_t granted
    cdef readonly int64_t denied
    cdef readonly int64_t pings
    cdef readonly int closed_with
    cdef public bytes connack
    cdef bytes rest
    cpdef Py_ssize_t restore(self, bytearray buffer)
    cpdef bytes feed(self, bytearray buffer, Py_ssize_t end, int64_t now)
    cdef void count_message(self, const unsigned char *packet, Py_ssize_t at, Py_ssize_t stop, int64_t now,
                            int64_t *last_stamp, Py_ssize_t *last_bucket) except *
    cdef void count_grants(self, const unsigned char *packet, Py_ssize_t at, Py_ssize_t stop) except *

cdef class PublishBlock:
    cdef readonly bytearray data
    cdef readonly Py_ssize_t packet_length
    cdef readonly Py_ssize_t capacity
    cdef Py_ssize_t id_offset
    cdef Py_ssize_t stamp_offset
    cdef Py_ssize_t first_offset
    cdef Py_ssize_t first_width
    cdef int64_t first_modulus
    cdef int64_t first_stride
    cdef Py_ssize_t second_offset
    cdef Py_ssize_t second_width
    cdef int64_t second_modulus
    cdef int next_id
    cdef public int64_t serial
    cpdef Py_ssize_t fill(self, Py_ssize_t count, int64_t stamp)

cdef class NullInbox:
    cdef int version
    cdef readonly int64_t received
    cdef bytes rest
    cpdef Py_ssize_t restore(self, bytearray buffer)
    cpdef bytes feed(self, bytearray buffer, Py_ssize_t end)

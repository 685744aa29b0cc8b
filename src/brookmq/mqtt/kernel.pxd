cpdef tuple frame(bytes data, Py_ssize_t pos)

cdef class Run:
    cdef readonly bytes data
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly int count
    cdef readonly int qos
    cdef readonly bint version5
    cdef readonly Py_ssize_t largest
    cdef readonly Py_ssize_t topic_size
    cdef Py_ssize_t topic_at
    cdef int fixed
    cdef bytes qos0_v3
    cdef bytes qos0_v5
    cdef int rest_at[500]
    cdef int end_at[500]

    cpdef Py_ssize_t scan(self, bytes data, Py_ssize_t pos, bint version5, Py_ssize_t packet_size_max)
    cpdef bint has_topic(self, bytes topic)
    cpdef bytes topic(self)
    cpdef bytes ids(self)
    cpdef bytes payload(self, int index)
    cpdef bytes qos0(self, bint version5)
    cpdef bytes with_ids(self, bint version5, int qos, bytes ids, int first)
    cdef bytes _encode(self, bint version5, int qos, bytes ids, int first, int count)

cpdef bytes ack_ids(bytes data, Py_ssize_t pos)
cpdef bytes acks(int head, bytes ids)

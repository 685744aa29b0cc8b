cdef class ShardLimits:
    cdef public double linger_s
    cdef public Py_ssize_t batch_bytes
    cdef public Py_ssize_t batch_bytes_max
    cdef public Py_ssize_t group_bytes_max
    cdef public Py_ssize_t pending_bytes_max
    cdef public Py_ssize_t recent_bytes_max

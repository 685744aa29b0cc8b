cdef class Message:
    cdef public bytes topic
    cdef public bytes payload
    cdef public int qos
    cdef public bint retain
    cdef public bytes properties
    cdef public double expires_at
    cdef public double published_at
    cdef public str client_id
    cdef public object username
    cpdef Py_ssize_t size(self)
    cpdef bint expired(self, double now)

cimport cython

from brookmq.base.message cimport Message
from brookmq.mqtt.kernel cimport Run, frame

@cython.freelist(64)
cdef class Group:
    cdef public bytes packets
    cdef public int count
    cdef public int qos
    cdef public bint retain
    cdef public bint version5
    cdef public bint plain
    cdef public bytes topic
    cdef public str client_id
    cdef public object username
    cdef public double published_at
    cdef public double expires_at
    cdef public bint captured
    cdef public bint kept_publisher
    cdef public bytes origin
    cdef public bytes filters
    cdef public long long first

    cpdef Py_ssize_t size(self)
    @cython.locals(body=Py_ssize_t, end=Py_ssize_t, at=Py_ssize_t, length=Py_ssize_t, properties=bytes)
    cpdef Message message(self)
    @cython.locals(run=Run, at=Py_ssize_t)
    cpdef bytes packet_ids(self)

@cython.locals(size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t)
cpdef bytes topic_of(bytes packets)
@cython.locals(value=Py_ssize_t, shift=cython.int, byte=cython.int)
cdef tuple _property_length(bytes packet, Py_ssize_t at)

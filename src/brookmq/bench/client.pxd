cimport cython
from libc.stdint cimport int64_t

from brookmq.bench.frames cimport Inbox, PublishBlock

cdef class Client:
    cdef public bytes opening
    cdef public Inbox inbox
    cdef public list subscriptions
    cdef int64_t _filters_asked
    cdef public object sock
    cdef bint _layered
    cdef public object epoll
    cdef public bint was_ready
    cdef public int state
    cdef public bytearray pending
    cdef public str failure
    cdef public int64_t started_at
    cdef public PublishBlock block
    cdef list _views
    cdef public Flow publishing
    cdef public Flow receiving
    cdef public int qos
    cdef public int64_t in_flight_max
    cdef public int64_t packets_per_write
    cdef public int64_t sent
    cdef public int64_t allowance
    cdef public int64_t budget
    cdef public int64_t due_at

    cpdef start(self, object sock, object epoll, int64_t now)
    @cython.locals(taken=Py_ssize_t)
    cpdef write(self, object content)
    cdef bint _is_stuck(self)
    cdef Py_ssize_t _send(self, object content)
    cdef _watch(self, int events)
    cpdef flush(self)
    @cython.locals(start=Py_ssize_t, length=Py_ssize_t, before=int64_t)
    cpdef bint receive(self, bytearray buffer, object view, int64_t now)
    cpdef bint proceed(self)
    cpdef fail(self, object error)
    cpdef allow(self, int64_t count, int64_t now)
    @cython.locals(count=int64_t, free=int64_t)
    cpdef int64_t publish_some(self, int64_t room, int64_t stamp)

cdef class Flow:
    cdef public list publishers
    cdef public int64_t copies
    cdef public int64_t limit
    cdef public int64_t sent
    cdef public int64_t received
    cdef Py_ssize_t _cursor

    cpdef int64_t room(self)
    cpdef int64_t outstanding(self)
    @cython.locals(count=Py_ssize_t, idle=Py_ssize_t, steps=Py_ssize_t, room=int64_t, client=Client, published=int64_t)
    cpdef bint step(self, int64_t now)

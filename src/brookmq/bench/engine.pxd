cimport cython
from libc.stdint cimport int64_t

from brookmq.bench.client cimport Client, Flow

cdef class Engine:
    cdef public object connector
    cdef public object epoll
    cdef public bytearray buffer
    cdef public object view
    cdef public dict clients
    cdef public list flows
    cdef public list waking
    cdef public int events_per_turn
    cdef public int64_t opens_per_turn
    cdef public object waiting
    cdef public int64_t opening
    cdef public int64_t opening_max
    cdef public int64_t opened
    cdef public int64_t failed
    cdef public int64_t dropped
    cdef public str first_failure
    cdef public object connect_latencies
    cdef public int64_t connect_interval_ns
    cdef public int64_t next_connect_at
    cdef public list paced
    cdef public double pace_ns
    cdef public int64_t pace_count
    cdef public double pace_next
    cdef public Py_ssize_t pace_cursor
    cdef public int64_t ping_interval_ns
    cdef public int64_t ping_next_at
    cdef public list ping_queue
    cdef public object on_ready
    cdef public object on_dropped

    @cython.locals(now=int64_t)
    cpdef bint run(self, int64_t until, object done=*)
    @cython.locals(waking=list, flow=Flow)
    cpdef turn(self, int64_t now, int64_t until)
    @cython.locals(pause=double)
    cdef list _wait(self, int64_t now, int64_t until)
    @cython.locals(client=Client, flow=Flow)
    cdef _handle(self, int fd, int events, int64_t now)
    @cython.locals(client=Client, left=int64_t)
    cdef _open_some(self, int64_t now)
    @cython.locals(client=Client, flow=Flow)
    cdef _make_due(self, int64_t now)

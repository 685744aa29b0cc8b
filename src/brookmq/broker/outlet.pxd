cimport cython

from brookmq.base.counters cimport Counters

cdef class Turn:
    cdef public object call_soon
    cdef public Counters counters
    cdef public list dirty
    cdef public list pressed
    cdef public bint scheduled
    cdef public bint tables_full
    cdef public double now

    cpdef add(self, Outlet outlet)
    @cython.locals(dirty=list, outlet=Outlet)
    cpdef flush(self)

cdef class Outlet:
    cdef public Turn turn
    cdef public object transport
    cdef public Py_ssize_t limit
    cdef public Py_ssize_t high
    cdef public Py_ssize_t size
    cdef public bytes chunk
    cdef public list more
    cdef public long long bytes_sent
    cdef public bint dirty
    cdef public bint blocked
    cdef public bint closed
    cdef public int state
    cdef public double patience
    cdef public double patience_at
    cdef public double patience_max
    cdef public long long credit
    cdef public long long taken
    cdef public list waiters
    cdef public object when_drained

    cpdef put(self, bytes data)
    cpdef overfull(self)
    cpdef press(self)
    cpdef relieve(self)
    cpdef bint overflows(self)
    @cython.locals(pieces=Py_ssize_t)
    cpdef flush(self)
    @cython.locals(chunk=bytes)
    cpdef _write(self)
    cpdef _join(self)
    cpdef finish(self)
    cpdef block(self)
    cpdef unblock(self)
    cpdef _drained(self)
    cpdef _open(self)
    cpdef fall_behind(self)
    cpdef tick(self, double now)
    @cython.locals(taken=longlong, left=double)
    cpdef _reckon(self, double now)
    cpdef _lag(self)
    cpdef wait(self, object waiter)
    cpdef release(self)
    cpdef close(self)

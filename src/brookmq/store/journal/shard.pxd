cimport cython

from brookmq.store.journal.batch cimport Batch, encode_batch
from brookmq.store.journal.group cimport Group
from brookmq.store.journal.limits cimport ShardLimits
from brookmq.store.journal.recent cimport RecentBatches
from brookmq.store.journal.waiting cimport Waiting, settle_all


cdef class Shard:
    cdef readonly int number
    cdef readonly ShardLimits limits
    cdef readonly long long head
    cdef readonly long long stored
    cdef public bint everything
    cdef readonly object failed
    cdef public object on_failed
    cdef readonly Py_ssize_t pending_bytes
    cdef readonly RecentBatches recent
    cdef readonly long long batches_appended
    cdef readonly long long messages_appended
    cdef readonly long long bytes_appended
    cdef readonly long long messages_given_up
    cdef readonly Batch under_way
    cdef Waiting _taken
    cdef Waiting _waiting
    cdef object _append
    cdef object _call_later
    cdef object _clock
    cdef object _on_stored
    cdef list _refused
    cdef object _pressed
    cdef double _last_began
    cdef bint _soon
    cdef bint _timer

    @cython.locals(size=Py_ssize_t, waiting=Waiting)
    cpdef add(self, Group group, object ticket)
    cpdef wait(self, object callback)
    @cython.locals(since=double, tickets=list, gone=Waiting)
    cpdef overdue(self, double now, double wait_s)
    @cython.locals(pause=double)
    cdef double _pause(self) except -1.0
    @cython.locals(pause=double)
    cdef _arm(self)
    cdef _arm_soon(self)
    cdef _send_or_arm(self)
    @cython.locals(taken=Waiting, batch=Batch, body=bytes)
    cdef _send(self)
    cdef _let_in(self)
    @cython.locals(taken=Waiting, waiting=Waiting)
    cdef _fail(self, object error)

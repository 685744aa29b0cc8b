cimport cython

from brookmq.store.journal.batch cimport Batch, encode_batch
from brookmq.store.journal.group cimport Group
from brookmq.store.journal.limits cimport ShardLimits
from brookmq.store.journal.recent cimport RecentBatches


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
    cdef readonly Batch under_way
    cdef Py_ssize_t under_way_bytes
    cdef list under_way_tickets
    cdef list under_way_times
    cdef object _append
    cdef object _call_later
    cdef object _clock
    cdef object _on_stored
    cdef list _groups
    cdef list _tickets
    cdef list _times
    cdef Py_ssize_t _waiting_bytes
    cdef bint _everything
    cdef list _refused
    cdef object _waiters
    cdef double _last_began
    cdef bint _soon
    cdef bint _timer

    @cython.locals(size=Py_ssize_t)
    cpdef add(self, Group group, object ticket)
    cpdef wait(self, object callback)
    @cython.locals(since=double, tickets=list, count=Py_ssize_t, size=Py_ssize_t, group=Group)
    cpdef overdue(self, double now, double wait_s)
    @cython.locals(pause=double)
    cdef _arm(self)
    cdef _arm_soon(self)
    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, batch=Batch, body=bytes)
    cdef _send(self)
    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, more=Py_ssize_t, group=Group)
    cdef tuple _cut(self)
    cdef _forget(self, Py_ssize_t count, Py_ssize_t size)
    @cython.locals(tickets=list)
    cdef _settle(self, int reason)
    cdef _let_in(self)

@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _older(list times, double since) except -1
cdef list _take_overdue(list tickets, list times, double since)

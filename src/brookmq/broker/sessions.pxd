cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.client_table cimport ClientTable
from brookmq.broker.dispatch cimport Dispatcher
from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport SessionLimits, Settings

cdef class Sessions:
    cdef public Settings settings
    cdef public SessionLimits limits
    cdef public object subscriptions
    cdef public Dispatcher dispatcher
    cdef public object timers
    cdef public Counters counters
    cdef public object hooks
    cdef public object keeper
    cdef public object wills
    cdef public ClientTable by_client_id
    cdef public Py_ssize_t connected_count
    cdef public long long connect_count

    @cython.locals(session=Session, present=bint, discarded=bint)
    cpdef tuple open(self, object client, object channel, bint clean_start, double now)
    cpdef close(self, Session session, object channel, bint with_will, int reason, double now)
    cpdef end(self, Session session, int reason, double now)

cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.inflight cimport OpenIds, Window
from brookmq.broker.outlet cimport Outlet
from brookmq.broker.publication cimport Delivery
from brookmq.broker.settings cimport SessionLimits

cdef class ClientState:
    cdef public str client_id
    cdef public object username
    cdef public SessionLimits limits
    cdef public Counters counters
    cdef public int version
    cdef public bint version5
    cdef public double expiry
    cdef public bint kept
    cdef public long long connect_number
    cdef public double created_at
    cdef public double disconnected_at
    cdef public object last_client
    cdef public int keep_alive
    cdef public bint clean_start
    cdef public double connected_at
    cdef public long generation
    cdef public object channel
    cdef public object will
    cdef public dict subscriptions
    cdef public Outlet outlet
    cdef public bint plain
    cdef public object intercept
    cdef public bytes mount
    cdef public Py_ssize_t packet_size_max
    cdef public int alias_max
    cdef public dict aliases
    cdef public Window window
    cdef public int window_limit
    cdef public dict held
    cdef public dict via
    cdef public list sharing
    cdef public object to_resend
    cdef public object queue
    cdef public list replays
    cdef public Py_ssize_t queue_bytes
    cdef public OpenIds open_ids
    cdef public object keeper
    cdef public bint live
    cdef public bint strict
    cdef public int sending
    cdef public bint moved
    cdef public bint loading
    cdef public list cursors
    cdef public list dup_below
    cdef public object wanted
    cdef public dict matching
    cdef public dict open_at
    cdef public object doubtful_ids
    cdef public list released
    cdef public dict storing
    cdef public long long sent_count
    cdef public long long received_count
    cdef public long long dropped_count

    cpdef note_moved(self)
    @cython.locals(window=Window, moved=int)
    cpdef int acknowledged(self, bytes ids, int state) except -1
    @cython.locals(window=Window, held=dict, moved=int, i=Py_ssize_t, packet_id=int)
    cpdef int received(self, bytes ids) except -1
    cpdef finish_taken(self, bytes ids, int qos)
    @cython.locals(window=Window, held=dict, via=dict, i=Py_ssize_t, packet_id=int)
    cpdef _let_go(self, bytes ids)
    @cython.locals(size=Py_ssize_t, limits=SessionLimits)
    cpdef enqueue(self, Delivery delivery)
    cpdef bint full(self)
    cpdef bint waits(self)
    @cython.locals(i=Py_ssize_t, step=int)
    cpdef opened(self, bytes ids, long long position)
    @cython.locals(i=Py_ssize_t)
    cpdef store_ids(self, bytes ids, object ticket)
    @cython.locals(storing=dict, i=Py_ssize_t)
    cpdef stored_ids(self, bytes ids)

cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.dispatch cimport Dispatcher
from brookmq.broker.journaling cimport Journaling
from brookmq.broker.outlet cimport Outlet, Turn
from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport Settings
from brookmq.broker.topics cimport Audience, TopicIndex

cdef class ChannelState:
    cdef public object broker
    cdef public Turn turn
    cdef public Settings settings
    cdef public Counters counters
    cdef public TopicIndex index
    cdef public Dispatcher dispatcher
    cdef public Journaling journaling
    cdef public object host
    cdef public Outlet outlet
    cdef public str listener
    cdef public str address
    cdef public str mount_template
    cdef public object certificate
    cdef public object client
    cdef public Session session
    cdef public int state
    cdef public int version
    cdef public bint version5
    cdef public bint suspended
    cdef public bint singly
    cdef public bint guarded
    cdef public dict decisions
    cdef public bytearray partial
    cdef public Py_ssize_t need
    cdef public long long bytes_received
    cdef public double last_seen
    cdef public double silence_max
    cdef public bytes last_topic
    cdef public int last_qos
    cdef public Audience last_audience
    cdef public dict aliases
    cdef public bint problem_information
    cdef public Py_ssize_t peer_packet_size_max
    cdef public str method
    cdef public object authentication
    cdef public object unsettled
    cdef public Py_ssize_t unsettled_bytes
    cdef public bint stalled
    cdef public object obstacle
    cdef object __weakref__

    cpdef bint overdue(self, double monotonic)
    cpdef connected(self)
    cpdef heard(self, double now)
    cpdef left(self, bint with_will, int reason)
    cpdef lost(self)
    @cython.locals(session=Session)
    cpdef ended(self, bint with_will, int reason)

cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.acknowledging cimport Acknowledgement
from brookmq.broker.dispatch cimport Dispatcher
from brookmq.broker.inflight cimport OpenIds
from brookmq.broker.journaling cimport Journaling
from brookmq.broker.outlet cimport Outlet, Turn
from brookmq.broker.publication cimport Publication
from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport Settings
from brookmq.broker.topics cimport Audience, TopicIndex
from brookmq.mqtt.kernel cimport Run, ack_ids, acks, frame

cdef class Channel:
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
    cdef object __weakref__

    cpdef receive(self, bytes data, double monotonic)
    @cython.locals(size=Py_ssize_t, pos=Py_ssize_t, singly_until=Py_ssize_t, singles=int, head=int, kind=int, run=Run, end=Py_ssize_t,
                   body=Py_ssize_t, taken=int, ids=bytes)
    cpdef _consume(self, bytes data, double now)
    @cython.locals(publication=Publication, run=Run, audience=Audience, full=Outlet, session=Session, count=int, qos=int,
                   counters=Counters, ids=bytes, journaled=bint)
    cpdef int _take_run(self, double now) except -1
    @cython.locals(run=Run, qos=int, ticket=Acknowledgement)
    cpdef _journal_run(self, Audience audience, Publication publication, Session session, bytes ids)
    @cython.locals(ticket=Acknowledgement)
    cpdef Acknowledgement ticket(self, int head, bytes ids, Py_ssize_t size)
    cpdef acknowledge(self, int head, bytes ids, int reason)
    @cython.locals(ticket=Acknowledgement)
    cpdef settled(self)
    cpdef _put_acknowledgement(self, int head, bytes ids, int reason)
    @cython.locals(topic=bytes, audience=Audience)
    cpdef Audience _find_audience(self, Run run)
    @cython.locals(session=Session)
    cpdef bint _overwhelms(self, Run run) except -1
    @cython.locals(session=Session, count=Py_ssize_t)
    cpdef bint _take_acks(self, int head, bytes ids, double now) except -1
    cpdef Py_ssize_t _unread(self)
    cpdef _take_packet(self, int head, bytes body, double now)
    cpdef bint overdue(self, double monotonic)

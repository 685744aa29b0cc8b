cimport cython

from brookmq.base.counters cimport Counters
from brookmq.base.message cimport Message
from brookmq.broker.inflight cimport OpenIds, Window
from brookmq.broker.outlet cimport Outlet
from brookmq.mqtt.kernel cimport Run, acks
from brookmq.mqtt.publish cimport alias_property, encode_publish, expiry_property

cdef class SessionLimits:
    cdef public int inflight_max
    cdef public Py_ssize_t queue_count_max
    cdef public Py_ssize_t queue_bytes_max
    cdef public bint drop_oldest

cdef class Delivery:
    cdef public Message message
    cdef public int qos
    cdef public bint retain
    cdef public bytes identifiers
    cdef public object group
    cdef public int packet_id
    cdef public bint dup
    cdef public bint again

cdef class Publication:
    cdef public Run run
    cdef public bytes topic
    cdef public str client_id
    cdef public object username
    cdef public double now
    cdef public list messages

    @cython.locals(message=Message, run=Run)
    cpdef Message message(self, int index)

cdef class Session:
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

    @cython.locals(outlet=Outlet, run=Run, window=Window, room=int, fit=int, ids=bytes, index=int)
    cpdef send_run(self, Publication publication, int qos, int first, int count, object group)
    @cython.locals(held=dict, i=Py_ssize_t)
    cpdef _hold(self, Publication publication, int qos, int first, bytes ids, object group)
    @cython.locals(outlet=Outlet, window=Window, fit=int, ids=bytes, packets=bytes)
    cpdef int take_run(self, Publication publication, int qos, int first, int count, long long position, object group) except -1
    cpdef _came_by(self, bytes ids, object group)
    @cython.locals(outlet=Outlet, window=Window, ids=bytes, delivery=Delivery)
    cpdef bint take_message(self, Message message, int qos, bint retain, bytes identifiers, object group, long long position,
                            bint dup, double now) except -1
    @cython.locals(outlet=Outlet, window=Window, ids=bytes, packet_id=int, packet=bytes, position=cython.longlong)
    cpdef send_taken(self, Delivery delivery, double now)
    cpdef finish_taken(self, bytes ids, int qos)
    cpdef send(self, Message message, int qos, bint retain, bytes identifiers, object group, double now)
    @cython.locals(outlet=Outlet, delivery=Delivery)
    cpdef send_judged(self, Message message, int qos, bint retain, bytes identifiers, object group, double now)
    @cython.locals(outlet=Outlet, qos=int, window=Window, ids=bytes)
    cpdef bint _deliver(self, Delivery delivery, double now) except -1
    @cython.locals(outlet=Outlet, packet=bytes)
    cpdef bint _write(self, Delivery delivery, double now) except -1
    @cython.locals(message=Message, qos=int, dup=bint, properties=bytes, topic=bytes, name=bytes, expires_at=double, alias=int,
                   head=int, packet=bytes)
    cpdef bytes _encode(self, Delivery delivery, double now)
    cpdef int _alias(self, bytes topic)
    @cython.locals(size=Py_ssize_t, limits=SessionLimits)
    cpdef enqueue(self, Delivery delivery)
    @cython.locals(delivery=Delivery)
    cpdef pump(self, double now)
    cpdef bint full(self)
    @cython.locals(window=Window, moved=int)
    cpdef int acknowledged(self, bytes ids, int state) except -1
    @cython.locals(window=Window, held=dict, via=dict, i=Py_ssize_t, packet_id=int)
    cpdef _let_go(self, bytes ids)
    @cython.locals(window=Window, held=dict, moved=int, i=Py_ssize_t, packet_id=int)
    cpdef int received(self, bytes ids) except -1
    @cython.locals(i=Py_ssize_t, step=int)
    cpdef opened(self, bytes ids, long long position)
    @cython.locals(storing=dict, i=Py_ssize_t)
    cpdef stored_ids(self, bytes ids)
    @cython.locals(i=Py_ssize_t)
    cpdef store_ids(self, bytes ids, object ticket)
    cpdef bint waits(self)

cimport cython

from brookmq.base.message cimport Message
from brookmq.broker.client_state cimport ClientState
from brookmq.broker.encoding cimport encode_delivery
from brookmq.broker.inflight cimport Window
from brookmq.broker.outlet cimport Outlet
from brookmq.broker.publication cimport Delivery, Publication
from brookmq.mqtt.kernel cimport Run, acks

cdef class Session(ClientState):
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
    cpdef send(self, Message message, int qos, bint retain, bytes identifiers, object group, double now)
    @cython.locals(outlet=Outlet, delivery=Delivery)
    cpdef send_judged(self, Message message, int qos, bint retain, bytes identifiers, object group, double now)
    @cython.locals(outlet=Outlet, qos=int, window=Window, ids=bytes)
    cpdef bint _deliver(self, Delivery delivery, double now) except -1
    @cython.locals(outlet=Outlet, packet=bytes)
    cpdef bint _write(self, Delivery delivery, double now) except -1
    @cython.locals(delivery=Delivery)
    cpdef pump(self, double now)

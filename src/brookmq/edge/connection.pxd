cimport cython

from brookmq.broker.channel cimport Channel
from brookmq.broker.outlet cimport Outlet
from brookmq.edge.context cimport ListenerContext
from brookmq.edge.hub cimport Hub
from brookmq.edge.peer cimport Peer

cdef class Connection:
    cdef public Hub hub
    cdef public ListenerContext context
    cdef public Peer peer
    cdef public object transport
    cdef public Channel channel
    cdef public Outlet outlet
    cdef public bint closing
    cdef public double closing_at
    cdef public long long slot
    cdef object __weakref__

    @cython.locals(hub=Hub, peer=Peer, outlet=Outlet, channel=Channel)
    cpdef connection_made(self, object transport)
    cpdef connection_lost(self, object error)
    cpdef close(self)

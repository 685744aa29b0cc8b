cimport cython

from brookmq.broker.channel cimport Channel
from brookmq.broker.outlet cimport Outlet

cdef class Connection:
    cdef public object hub
    cdef public object context
    cdef public object peer
    cdef public object transport
    cdef public Channel channel
    cdef public Outlet outlet
    cdef public bint closing
    cdef public double closing_at
    cdef public long long slot
    cdef object __weakref__

    @cython.locals(outlet=Outlet, channel=Channel)
    cpdef connection_made(self, object transport)
    cpdef connection_lost(self, object error)
    cpdef close(self)

cimport cython

from brookmq.edge.connection cimport Connection

cdef class Watch:
    cdef dict _slots
    cdef long long _done

    @cython.locals(slot=cython.longlong, waiting=set)
    cpdef look_again(self, Connection connection, double at)
    @cython.locals(waiting=set)
    cpdef forget(self, Connection connection)

from brookmq.broker.outlet cimport Turn

cdef class Admission:
    cdef public Turn turn
    cdef public int steps_in_a_turn
    cdef public object waiting
    cdef public int taken
    cdef bint _scheduled

    cpdef bint free(self) except -1
    cpdef run(self, object step)
    cpdef _schedule(self)

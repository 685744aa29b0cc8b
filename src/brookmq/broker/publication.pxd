cimport cython

from brookmq.base.message cimport Message
from brookmq.mqtt.kernel cimport Run

cdef class Publication:
    cdef public Run run
    cdef public bytes topic
    cdef public str client_id
    cdef public object username
    cdef public double now
    cdef public list messages

    @cython.locals(message=Message, run=Run)
    cpdef Message message(self, int index)

cdef class Delivery:
    cdef public Message message
    cdef public int qos
    cdef public bint retain
    cdef public bytes identifiers
    cdef public object group
    cdef public int packet_id
    cdef public bint dup
    cdef public bint again

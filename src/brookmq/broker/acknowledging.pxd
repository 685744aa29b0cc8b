cimport cython

from brookmq.broker.session cimport Session
from brookmq.store.journal.group cimport Group

cdef class Ticket:
    cdef public bytes ids
    cdef public int waits
    cdef public int reason
    cdef public Group group
    cdef public int shard

    cpdef settle(self, int reason)
    cpdef count_down(self, int reason)
    cpdef done(self)

cdef class Settlement(Ticket):
    cdef public object settled

cdef class Patient(Settlement):
    cdef public list given_up

cdef class Acknowledgement(Ticket):
    cdef public object channel
    cdef public Session session
    cdef public int head
    cdef public Py_ssize_t size
    cdef public list followers

    @cython.locals(told=bint)
    cpdef _note_answer(self)

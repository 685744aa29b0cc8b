cimport cython

from brookmq.broker.session cimport Session
from brookmq.store.journal.group cimport Group

cdef class Countdown:
    cdef public bytes ids
    cdef public int waits
    cdef public int reason
    cdef public Group group
    cdef public int shard

    cpdef bint is_last(self, int reason) except -1

cdef class Settlement(Countdown):
    cdef public object settled

    cpdef settle(self, int reason)
    cpdef count_down(self, int reason)

cdef class Patient(Settlement):
    cdef public list given_up

cdef class Acknowledgement(Countdown):
    cdef public object channel
    cdef public Session session
    cdef public int head
    cdef public Py_ssize_t size
    cdef public list followers

    cpdef settle(self, int reason)
    cpdef count_down(self, int reason)
    cpdef _done(self)
    @cython.locals(told=bint)
    cpdef _note_answer(self)

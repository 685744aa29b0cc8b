cimport cython

from brookmq.store.journal.group cimport Group


cdef class Waiting:
    cdef public list groups
    cdef public list tickets
    cdef public list times
    cdef public Py_ssize_t bytes
    cdef public Py_ssize_t messages
    cdef public bint everything

    cpdef add(self, Group group, object ticket, double now)
    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, group=Group)
    cpdef Waiting cut(self, Py_ssize_t bytes_max)
    cpdef Waiting overdue(self, double since)
    @cython.locals(count=Py_ssize_t, tickets=list)
    cpdef list overdue_tickets(self, double since)
    @cython.locals(tickets=list)
    cpdef settle(self, int reason)
    @cython.locals(half=Py_ssize_t)
    cpdef swap(self)
    @cython.locals(taken=Waiting, group=Group)
    cdef Waiting _first(self, Py_ssize_t count)

cpdef settle_all(list tickets, int reason)
@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _older(list times, double since) except -1

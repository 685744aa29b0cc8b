cimport cython

from brookmq.store.journal.batch cimport Batch


cdef class RecentBatches:
    cdef readonly list batches
    cdef readonly Py_ssize_t bytes
    cdef readonly Py_ssize_t bytes_max

    @cython.locals(excess=Py_ssize_t, oldest=Batch)
    cpdef add(self, Batch batch)
    cpdef clear(self)
    @cython.locals(place=Py_ssize_t)
    cpdef Batch find(self, long long offset)
    @cython.locals(batches=list, count=Py_ssize_t, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, first=Batch, last=Batch, at=Batch)
    cpdef Py_ssize_t place(self, long long offset) except -2

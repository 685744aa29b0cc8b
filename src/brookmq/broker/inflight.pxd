cimport cython

cdef class Window:
    cdef public int limit
    cdef public int count
    cdef public Py_ssize_t cursor
    cdef public bytearray states
    cdef public object positions
    cdef public object serials
    cdef public long long serial

    cpdef int room(self)
    @cython.locals(states=bytearray, size=Py_ssize_t, at=Py_ssize_t, ids=bytearray, i=Py_ssize_t)
    cpdef bytes take(self, int count, int state)
    @cython.locals(states=bytearray, size=Py_ssize_t, at=Py_ssize_t, moved=int, i=Py_ssize_t)
    cpdef int move(self, bytes ids, int expected, int state)
    cpdef int state(self, int packet_id)
    @cython.locals(positions="long long[::1]", serials="long long[::1]", serial=cython.longlong, step=int, at=Py_ssize_t,
                   i=Py_ssize_t)
    cpdef place(self, bytes ids, long long position)

cdef class OpenIds:
    cdef public bytearray bits
    cdef public int count

    @cython.locals(bits=bytearray, n=Py_ssize_t, i=Py_ssize_t, at=Py_ssize_t)
    cpdef int open(self, bytes ids)
    cpdef bint is_open(self, int packet_id)
    @cython.locals(bits=bytearray, n=Py_ssize_t, i=Py_ssize_t, at=Py_ssize_t)
    cpdef int release(self, bytes ids)

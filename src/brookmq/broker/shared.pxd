import cython

cdef int ROUND_ROBIN
cdef int RANDOM
cdef int STICKY
cdef int HASH_CLIENT
cdef int HASH_TOPIC

cdef class SharedGroup:
    cdef readonly str name
    cdef readonly str filter
    cdef readonly str strategy
    cdef readonly list members
    cdef public Py_ssize_t kept_count
    cdef public object reader
    cdef int _kind
    cdef object _random
    cdef Py_ssize_t _next
    cdef set _present
    cdef dict _stuck
    cpdef void add(self, object member) except *
    cpdef bint remove(self, object member) except -1
    @cython.locals(count=Py_ssize_t, index=Py_ssize_t)
    cpdef object pick(self, str publisher_client_id, bytes topic, object exclude=*)
    @cython.locals(index=Py_ssize_t)
    cdef object _pick_sticky(self, str publisher_client_id, object exclude)
    @cython.locals(members=list, count=Py_ssize_t, away=Py_ssize_t, step=Py_ssize_t, index=Py_ssize_t)
    cdef Py_ssize_t _search(self, Py_ssize_t start, object exclude) except -2

cimport cython

cdef int _SLASH, _PLUS, _HASH, _DOLLAR
cdef str _SHARE

cpdef check_name(bytes topic, Py_ssize_t levels_max=*)
@cython.locals(at=Py_ssize_t, level=str)
cpdef check_filter(str filter, Py_ssize_t levels_max=*)
cpdef bint is_shared(str filter)
@cython.locals(group=str, slash=str, rest=str)
cpdef parse_subscription(str filter, Py_ssize_t levels_max=*)
@cython.locals(
    f=Py_ssize_t, t=Py_ssize_t, filter_size=Py_ssize_t, topic_size=Py_ssize_t, byte=cython.int,
)
cpdef bint matches(bytes filter, bytes topic) except -1

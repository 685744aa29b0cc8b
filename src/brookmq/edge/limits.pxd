cdef class Capacity:
    cdef public Py_ssize_t in_use
    cdef public Py_ssize_t maximum

cdef class Subscription:
    cdef public object session
    cdef public bytes filter
    cdef public int qos
    cdef public bint no_local
    cdef public bint retain_as_published
    cdef public int retain_handling
    cdef public tuple identifiers
    cdef public bytes properties
    cdef public object group
    cdef public bint ended
    cdef public bint plain
    cdef public bint counted
    cdef public bint replaying
    cdef public list since

cpdef Subscription merged(Subscription first, Subscription second)

cdef class ClientTable:
    cdef public list parts
    cdef public Py_ssize_t count
    cdef str _last_id
    cdef dict _last_part

    cpdef dict part_of(self, str client_id)
    cpdef get(self, str client_id)

cdef class ClientInfo:
    cdef readonly str client_id
    cdef readonly str username
    cdef readonly str address
    cdef readonly int protocol_version
    cdef readonly str listener
    cdef readonly object certificate
    cdef readonly bint superuser

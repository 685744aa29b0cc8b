cdef class Peer:
    cdef public str address
    cdef public int port
    cdef public str local_address
    cdef public str listener
    cdef public str transport
    cdef public double accepted_at
    cdef public object certificate

cpdef str join_host_port(str host, int port)

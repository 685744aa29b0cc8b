from brookmq.edge.limits cimport Capacity

cdef class ListenerContext:
    cdef public str name
    cdef public str kind
    cdef public str mountpoint
    cdef Capacity _capacity
    cdef public Py_ssize_t connections
    cdef public long long accepted
    cdef public long long refused
    cdef public long long paused_by_rate
    cdef public long long proxy_failures
    cdef public long long tls_failures
    cdef public long long websocket_failures

    cpdef opened(self)
    cpdef closed(self)

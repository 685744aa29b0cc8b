from brookmq.base.counters cimport Counters
from brookmq.broker.admission cimport Admission
from brookmq.broker.broker cimport Broker
from brookmq.broker.outlet cimport Turn
from brookmq.broker.settings cimport Settings
from brookmq.edge.connection cimport Connection
from brookmq.edge.watch cimport Watch

cdef class Hub:
    cdef public Broker broker
    cdef public Turn turn
    cdef public Settings settings
    cdef public Counters counters
    cdef public object loop
    cdef public dict connections
    cdef public Watch watch
    cdef public Admission closings
    cdef public set tasks
    cdef public object empty

    cpdef opened(self, Connection connection, double began)
    cpdef lost(self, Connection connection)
    cpdef closing(self, Connection connection)

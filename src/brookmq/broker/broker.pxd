from brookmq.base.counters cimport Counters
from brookmq.broker.admission cimport Admission
from brookmq.broker.dispatch cimport Dispatcher
from brookmq.broker.journaling cimport Journaling
from brookmq.broker.outlet cimport Turn
from brookmq.broker.sessions cimport Sessions
from brookmq.broker.settings cimport Settings
from brookmq.broker.topics cimport TopicIndex

cdef class Broker:
    cdef public Settings settings
    cdef public Counters counters
    cdef public Turn turn
    cdef public object hooks
    cdef public object retained
    cdef public object delayed
    cdef public object rewriter
    cdef public object random
    cdef public object authentication
    cdef public dict mechanisms
    cdef public object new_client_id
    cdef public double wall
    cdef public double now
    cdef public bint accepting
    cdef public list auto_subscriptions
    cdef public object intercept
    cdef public object replays
    cdef public TopicIndex index
    cdef public Dispatcher dispatcher
    cdef public object timers
    cdef public Journaling journaling
    cdef public object keeper
    cdef public object subscriptions
    cdef public object waits
    cdef public object wills
    cdef public list given_up
    cdef public Sessions sessions
    cdef public Admission admission
    cdef public object restoring
    cdef public object values
    cdef public list _regaining
    cdef public list _unkept
    cdef public list _held
    cdef public list _looked_for
    cdef public set _begun_clean
    cdef object __weakref__

    cpdef bint knows(self, str client_id, bint clean) except -1

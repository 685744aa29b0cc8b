cimport cython

from brookmq.base.counters cimport Counters
from brookmq.base.message cimport Message
from brookmq.broker.outlet cimport Outlet, Turn
from brookmq.broker.publication cimport Publication
from brookmq.broker.session cimport Session
from brookmq.broker.shared cimport SharedGroup
from brookmq.broker.subscription cimport Subscription
from brookmq.broker.topics cimport Audience
from brookmq.mqtt.kernel cimport Run

cdef class Dispatcher:
    cdef public Turn turn
    cdef public Counters counters
    cdef public Publication publication

    @cython.locals(subscription=Subscription, member=Subscription, session=Session, group=SharedGroup)
    cpdef Outlet full_receiver(self, Audience audience, Session publisher)
    @cython.locals(outlet=Outlet)
    cpdef bint _has_to_be_waited_for(self, Session session)
    @cython.locals(publication=Publication, run=Run, run_qos=int, largest=Py_ssize_t, subscription=Subscription,
                   session=Session, qos=int)
    cpdef send_run(self, Audience audience, Session publisher)
    @cython.locals(run=Run, outlet=Outlet)
    cpdef _send_qos0(self, Session session)
    @cython.locals(publication=Publication, session=Session, qos=int, index=int)
    cpdef _one_by_one(self, Subscription subscription, Session publisher)
    @cython.locals(publication=Publication, run=Run, group=SharedGroup, member=Subscription, session=Session, qos=int,
                   step=int, first=int, index=int)
    cpdef _send_to_groups(self, list groups, bytes topic)
    @cython.locals(subscription=Subscription, session=Session, group=SharedGroup, retain=bint, qos=int, count=int)
    cpdef int send(self, Message message, Audience audience, Session publisher, double now)
    @cython.locals(member=Subscription, session=Session, retain=bint, qos=int)
    cpdef int send_to_group(self, SharedGroup group, Message message, double now)

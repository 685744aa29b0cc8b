cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.acknowledging cimport Acknowledgement
from brookmq.broker.answering cimport acknowledge, ticket_for
from brookmq.broker.channel_state cimport ChannelState
from brookmq.broker.inflight cimport OpenIds
from brookmq.broker.outlet cimport Outlet
from brookmq.broker.publication cimport Publication
from brookmq.broker.session cimport Session
from brookmq.broker.topics cimport Audience
from brookmq.mqtt.kernel cimport Run, acks

@cython.locals(publication=Publication, run=Run, audience=Audience, full=Outlet, session=Session, count=int, qos=int,
               counters=Counters, ids=bytes, journaled=bint)
cpdef int take_run(ChannelState channel, double now) except -1
@cython.locals(session=Session)
cpdef bint _overwhelms(ChannelState channel, Run run) except -1
@cython.locals(topic=bytes, audience=Audience)
cpdef Audience _find_audience(ChannelState channel, Run run)
@cython.locals(run=Run, qos=int, ticket=Acknowledgement)
cpdef _journal_run(ChannelState channel, Audience audience, Publication publication, Session session, bytes ids)
@cython.locals(ticket=Acknowledgement)
cpdef _store_open_ids(ChannelState channel, Session session, bytes ids)
@cython.locals(session=Session, count=Py_ssize_t)
cpdef bint take_acks(ChannelState channel, int head, bytes ids, double now) except -1

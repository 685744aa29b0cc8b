cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.publication cimport Publication
from brookmq.broker.session cimport Session
from brookmq.broker.shared cimport SharedGroup
from brookmq.broker.subscription cimport Subscription
from brookmq.broker.topics cimport Audience, TopicIndex
from brookmq.mqtt.kernel cimport Run
from brookmq.store.journal.batch cimport Batch
from brookmq.store.journal.group cimport Group

cdef class Journaling:
    cdef public TopicIndex index
    cdef public Counters counters
    cdef public Publication publication
    cdef public object early
    cdef public list shards
    cdef public list followers
    cdef public double now

    cpdef object shard_of(self, Audience audience)
    @cython.locals(run=Run, number=Py_ssize_t, group=Group)
    cpdef add_run(self, Audience audience, Publication publication, bint version5, Session publisher, object ticket)
    @cython.locals(number=Py_ssize_t)
    cpdef add(self, Audience audience, Group group, object ticket)
    @cython.locals(shard=Py_ssize_t, group=Group, audience=Audience)
    cpdef stored(self, Batch batch)
    @cython.locals(scanned=bint, run=Run, subscription=Subscription, session=Session, qos=int, taken=int)
    cpdef _hand_on(self, Py_ssize_t shard, Group group, Audience audience)
    @cython.locals(publication=Publication)
    cpdef Publication open(self, Group group)
    @cython.locals(publication=Publication, qos=int, retain=bint, dup_below=cython.longlong, index=int, offset=cython.longlong)
    cpdef int one_by_one(self, Session session, Subscription subscription, Py_ssize_t shard, Group group, int first, object via) except -1
    cpdef fall_behind(self, Session session, Py_ssize_t shard, long long offset)
    @cython.locals(shared=SharedGroup)
    cpdef _to_groups(self, Py_ssize_t shard, Group group, Audience audience)

cimport cython

from brookmq.base.counters cimport Counters
from brookmq.broker.subscription cimport Subscription

cdef class Entry:
    cdef public bytes filter
    cdef public bytes filter_id
    cdef public Py_ssize_t kept
    cdef public dict subscriptions
    cdef public dict groups
    cdef public list targets

    cpdef list everyone(self)
    cpdef bint empty(self)

cdef class Node:
    cdef public dict children
    cdef public Node plus
    cdef public Entry here
    cdef public Entry below

    cpdef bint unused(self)

cdef class Audience:
    cdef public bytes topic
    cdef public list targets
    cdef public list groups
    cdef public list at_once
    cdef public list stored
    cdef public list stored_groups
    cdef public bint durable
    cdef public bint awaited
    cdef public bint captured
    cdef public bint everything
    cdef public bytes filters
    cdef public unsigned long shard
    cdef public long long epoch

cdef class TopicIndex:
    cdef public Counters counters
    cdef public long long epoch
    cdef public Py_ssize_t entry_count
    cdef public dict exact
    cdef public Node root
    cdef public dict audiences
    cdef public object changes
    cdef public list capture
    cdef public bint complete

    cpdef Entry find(self, bytes filter)
    cpdef Audience audience(self, bytes topic)
    @cython.locals(missed=cython.longlong, i=cython.longlong)
    cpdef bint _still_right(self, Audience audience)
    @cython.locals(entries=list, groups=list, entry=Entry, best=dict, subscription=Subscription)
    cpdef Audience _gather(self, bytes topic)
    @cython.locals(entry=Entry, subscription=Subscription, ids=bytes)
    cpdef Audience _sort(self, Audience audience, list entries)
    @cython.locals(entry=Entry, subscription=Subscription, found=Subscription)
    cpdef Subscription subscription_of(self, object session, bytes topic)
    @cython.locals(found=list, entry=Entry, root=Node, levels=list, child=Node)
    cpdef list match(self, bytes topic)

@cython.locals(child=Node)
cdef _walk(Node node, list levels, Py_ssize_t depth, list found)

cimport cython

from brookmq.broker.answering cimport put_settled
from brookmq.broker.channel_state cimport ChannelState
from brookmq.broker.run_taking cimport take_acks, take_run
from brookmq.broker.session cimport Session
from brookmq.mqtt.kernel cimport Run, ack_ids, frame

cdef class Channel(ChannelState):
    cpdef receive(self, bytes data, double monotonic)
    @cython.locals(size=Py_ssize_t, pos=Py_ssize_t, singly_until=Py_ssize_t, singles=int, head=int, kind=int, run=Run, end=Py_ssize_t,
                   body=Py_ssize_t, taken=int, ids=bytes)
    cpdef _consume(self, bytes data, double now)
    cpdef Py_ssize_t _unread(self)
    cpdef _take_packet(self, int head, bytes body, double now)
    cpdef settled(self)

cimport cython

from brookmq.broker.acknowledging cimport Acknowledgement
from brookmq.broker.channel_state cimport ChannelState
from brookmq.mqtt.kernel cimport acks

@cython.locals(ticket=Acknowledgement)
cpdef Acknowledgement ticket_for(ChannelState channel, int head, bytes ids, Py_ssize_t size)
@cython.locals(ticket=Acknowledgement)
cpdef acknowledge(ChannelState channel, int head, bytes ids, int reason)
@cython.locals(ticket=Acknowledgement)
cpdef bint put_settled(ChannelState channel) except -1
cpdef _put(ChannelState channel, int head, bytes ids, int reason)

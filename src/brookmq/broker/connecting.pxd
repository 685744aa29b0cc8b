cimport cython

from brookmq.broker.admitting cimport admit
from brookmq.broker.broker cimport Broker
from brookmq.broker.channel_state cimport ChannelState
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect

@cython.locals(broker=Broker, settings=Settings, client_id=str)
cpdef _take_connect(ChannelState channel, Connect packet, double now)
cpdef _ask(ChannelState channel, Connect packet, object client, double now, object data=*)
@cython.locals(mounted=bytes)
cpdef _decided(ChannelState channel, Connect packet, object client, object decision, double now, object data)
cpdef take_packet(ChannelState channel, int head, bytes body, double now)

from brookmq.broker.channel_state cimport ChannelState
from brookmq.mqtt.packets cimport Disconnect

cpdef take_packet(ChannelState channel, int head, bytes body, double now)
cpdef _take_disconnect(ChannelState channel, Disconnect packet)

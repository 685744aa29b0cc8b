cimport cython

from brookmq.broker.channel_state cimport ChannelState
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect
from brookmq.mqtt.properties cimport Properties

@cython.locals(settings=Settings, given=Properties, properties=Properties)
cpdef bytes accepted(ChannelState channel, Connect packet, object client, object expiry, int keep_alive, object data)

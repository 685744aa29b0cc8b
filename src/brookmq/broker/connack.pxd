cimport cython

from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect
from brookmq.mqtt.properties cimport Properties

@cython.locals(settings=Settings, given=Properties, properties=Properties)
cpdef bytes accepted(object channel, Connect packet, object client, object expiry, int keep_alive, object data)

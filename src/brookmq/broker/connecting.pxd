cimport cython

from brookmq.broker.admitting cimport admit
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect

@cython.locals(settings=Settings, client_id=str)
cpdef _take_connect(object channel, Connect packet, double now)
cpdef _ask(object channel, Connect packet, object client, double now, object data=*)
@cython.locals(mounted=bytes)
cpdef _decided(object channel, Connect packet, object client, object decision, double now, object data)

cimport cython

from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect
from brookmq.mqtt.properties cimport Properties

@cython.locals(settings=Settings, client_id=str)
cpdef _take_connect(object channel, Connect packet, double now)
cpdef _ask(object channel, Connect packet, object client, double now, object data=*)
@cython.locals(mounted=bytes)
cpdef _decided(object channel, Connect packet, object client, object decision, double now, object data)
@cython.locals(settings=Settings, given=Properties, keep_alive=int, connack=bytes, session=Session, present=bint)
cpdef _open_session(object channel, Connect packet, object client, bytes mounted, double now, object data)
@cython.locals(settings=Settings, given=Properties, properties=Properties)
cpdef bytes _connack(object channel, Connect packet, object client, object expiry, int keep_alive, object data)

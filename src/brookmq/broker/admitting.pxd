cimport cython

from brookmq.broker.connack cimport accepted
from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect
from brookmq.mqtt.properties cimport Properties

cpdef admit(object channel, Connect packet, object client, bytes mounted, double now, object data)
@cython.locals(settings=Settings, given=Properties, keep_alive=int, connack=bytes, session=Session, present=bint)
cpdef _open_session(object channel, Connect packet, object client, bytes mounted, double now, object data)

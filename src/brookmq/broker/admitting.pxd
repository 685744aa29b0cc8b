cimport cython

from brookmq.broker.admission cimport Admission
from brookmq.broker.broker cimport Broker
from brookmq.broker.channel_state cimport ChannelState
from brookmq.broker.connack cimport accepted
from brookmq.broker.session cimport Session
from brookmq.broker.settings cimport Settings
from brookmq.mqtt.packets cimport Connect
from brookmq.mqtt.properties cimport Properties

@cython.locals(admission=Admission)
cpdef admit(ChannelState channel, Connect packet, object client, bytes mounted, double now, object data)
@cython.locals(broker=Broker, settings=Settings, given=Properties, keep_alive=int, connack=bytes, session=Session, present=bint)
cpdef _open_session(ChannelState channel, Connect packet, object client, bytes mounted, double now, object data)
cpdef tuple _expiry(Connect packet, double expiry_max)
@cython.locals(broker=Broker)
cpdef _begin(ChannelState channel, Session session, object client, bint present, bytes connack, double now)

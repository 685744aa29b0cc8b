cimport cython

from brookmq.base.message cimport Message
from brookmq.broker.client_state cimport ClientState
from brookmq.broker.publication cimport Delivery
from brookmq.mqtt.publish cimport alias_property, encode_publish, expiry_property

@cython.locals(message=Message, qos=int, dup=bint, properties=bytes, topic=bytes, name=bytes, expires_at=double, alias=int,
               head=int, packet=bytes)
cpdef bytes encode_delivery(ClientState session, Delivery delivery, double now)
cpdef int _alias(ClientState session, bytes topic) except? -1

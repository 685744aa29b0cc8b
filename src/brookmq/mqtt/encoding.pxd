cimport cython

from brookmq.mqtt.packets cimport (
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from brookmq.mqtt.primitives cimport put_binary, put_string, put_uint16, varint
from brookmq.mqtt.properties cimport Properties, encode_properties

cdef int AUTH, CONNACK, CONNECT, DISCONNECT, PUBLISH, PUBREL, SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE
cdef int UNSPECIFIED_ERROR
cdef bytes _NO_PROPERTIES
cdef dict _ENCODERS

cpdef bytes encode(Packet packet, int version)
cdef bytes _framed(int first_byte, bytearray body)
@cython.locals(out=bytearray, present=cython.int)
cpdef bytes encode_connack(bint session_present, int reason, Properties properties, int version)
@cython.locals(out=bytearray, encoded=bytes, first_byte=cython.int)
cpdef bytes encode_ack(int type, int packet_id, int reason, Properties properties, int version)
@cython.locals(out=bytearray)
cpdef bytes encode_suback(int packet_id, object reasons, Properties properties, int version)
@cython.locals(out=bytearray)
cpdef bytes encode_unsuback(int packet_id, object reasons, Properties properties, int version)
@cython.locals(out=bytearray, encoded=bytes)
cpdef bytes encode_disconnect(int reason, Properties properties, int version)
cdef _put_will(bytearray out, Will will, int version)
@cython.locals(out=bytearray, version=cython.int, flags=cython.int, will=Will)
cpdef bytes _connect(Connect packet, int _version)
@cython.locals(out=bytearray, qos=cython.int)
cpdef bytes _publish(Publish packet, int version)
@cython.locals(out=bytearray, request=SubscriptionRequest, options=cython.int)
cpdef bytes _subscribe(Subscribe packet, int version)
@cython.locals(out=bytearray, filter_=str)
cpdef bytes _unsubscribe(Unsubscribe packet, int version)
@cython.locals(out=bytearray, encoded=bytes)
cpdef bytes _auth(Auth packet, int version)
cpdef bytes _connack(Connack packet, int version)
cpdef bytes _ack(Ack packet, int version)
cpdef bytes _suback(Suback packet, int version)
cpdef bytes _unsuback(Unsuback packet, int version)
cpdef bytes _disconnect(Disconnect packet, int version)
cpdef bytes _pingreq(Pingreq _packet, int _version)
cpdef bytes _pingresp(Pingresp _packet, int _version)

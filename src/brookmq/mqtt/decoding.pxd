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
from brookmq.mqtt.primitives cimport Reader
from brookmq.mqtt.properties cimport Properties, decode_properties
from brookmq.mqtt.topics cimport check_name, is_shared

cdef int AUTH, CONNACK, CONNECT, DISCONNECT, PINGREQ, PINGRESP, PUBACK, PUBCOMP, PUBLISH
cdef int SUBACK, SUBSCRIBE, UNSUBACK, UNSUBSCRIBE, WILL, UNSPECIFIED_ERROR
cdef int _RESERVED, _CLEAN_START, _WILL_FLAG, _WILL_RETAIN, _PASSWORD, _USER_NAME, _NO_LOCAL, _RETAIN_AS_PUBLISHED
cdef bytes _FLAGS
cdef tuple ALLOWED

@cython.locals(packet_type=cython.int)
cpdef Packet decode(int first_byte, bytes body, int version)

cdef int _check_flags(int flags, int expected, int version) except -1
cdef int _packet_id(Reader reader) except -1
@cython.locals(end=Py_ssize_t)
cdef Properties _properties(Reader reader, int packet_type, int version)
@cython.locals(reason=cython.int)
cdef int _reason(Reader reader, int packet_type) except -1
@cython.locals(name=bytes, version=cython.int)
cdef int _connect_version(Reader reader) except -1
cdef int _check_connect_flags(int flags, int version) except -1
cdef Will _will(Reader reader, int flags, int version)
@cython.locals(options=cython.int, qos=cython.int, no_local=bint, filter_=str)
cdef SubscriptionRequest _subscription(Reader reader, int version)

cdef int _return_code(Reader reader) except -1
cdef Packet _decode(int packet_type, int flags, Reader reader, int version)
@cython.locals(version=cython.int, connect_flags=cython.int, keep_alive=cython.int, properties=Properties)
cdef Packet _connect(int flags, Reader reader)
@cython.locals(acknowledge=cython.int, reason=cython.int, properties=Properties, session_present=bint)
cdef Packet _connack(Reader reader, int version)
@cython.locals(qos=cython.int, dup=bint, packet_id=cython.int, topic=bytes, properties=Properties)
cdef Packet _publish(int flags, Reader reader, int version)
@cython.locals(packet_id=cython.int, reason=cython.int)
cdef Packet _ack(int packet_type, Reader reader, int version)
@cython.locals(packet_id=cython.int, properties=Properties, subscriptions=list)
cdef Packet _subscribe(Reader reader, int version)
@cython.locals(packet_id=cython.int, properties=Properties, reasons=list, reason=cython.int)
cdef Packet _suback(Reader reader, int version)
@cython.locals(packet_id=cython.int, properties=Properties, filters=list)
cdef Packet _unsubscribe(Reader reader, int version)
@cython.locals(packet_id=cython.int, properties=Properties, reasons=list)
cdef Packet _unsuback(Reader reader, int version)
@cython.locals(reason=cython.int)
cdef Packet _disconnect(Reader reader, int version)
@cython.locals(reason=cython.int, properties=Properties)
cdef Packet _auth(Reader reader)

from brookmq.mqtt.properties cimport Properties


cdef class Packet:
    pass


cdef class Will(Packet):
    cdef public bytes topic
    cdef public bytes payload
    cdef public int qos
    cdef public bint retain
    cdef public Properties properties
    cdef public unsigned int delay


cdef class Connect(Packet):
    cdef public int version
    cdef public str client_id
    cdef public bint clean_start
    cdef public int keep_alive
    cdef public str username
    cdef public bytes password
    cdef public Will will
    cdef public Properties properties


cdef class Connack(Packet):
    cdef public bint session_present
    cdef public int reason
    cdef public Properties properties


cdef class Publish(Packet):
    cdef public bytes topic
    cdef public bytes payload
    cdef public int qos
    cdef public bint retain
    cdef public bint dup
    cdef public int packet_id
    cdef public Properties properties


cdef class Ack(Packet):
    cdef public int type
    cdef public int packet_id
    cdef public int reason
    cdef public Properties properties


cdef class SubscriptionRequest(Packet):
    cdef public str filter
    cdef public int qos
    cdef public bint no_local
    cdef public bint retain_as_published
    cdef public int retain_handling


cdef class Subscribe(Packet):
    cdef public int packet_id
    cdef public list subscriptions
    cdef public Properties properties


cdef class Suback(Packet):
    cdef public int packet_id
    cdef public list reasons
    cdef public Properties properties


cdef class Unsubscribe(Packet):
    cdef public int packet_id
    cdef public list filters
    cdef public Properties properties


cdef class Unsuback(Packet):
    cdef public int packet_id
    cdef public list reasons
    cdef public Properties properties


cdef class Disconnect(Packet):
    cdef public int reason
    cdef public Properties properties


cdef class Auth(Packet):
    cdef public int reason
    cdef public Properties properties


cdef class Pingreq(Packet):
    pass


cdef class Pingresp(Packet):
    pass

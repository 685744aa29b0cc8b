cimport cython
from libc.stdint cimport int64_t, uint64_t

from brookmq.mqtt.primitives cimport Reader

cdef int FLAG, UINT16, UINT32, VARINT, STRING, BINARY, STRING_PAIR
cdef int FORBIDDEN, IDENTIFIERS, NOT_ZERO, REPEATS, TYPE_MASK
cdef int _MESSAGE_EXPIRY_INTERVAL, _RESPONSE_TOPIC, _SUBSCRIPTION_IDENTIFIER, _TOPIC_ALIAS, _USER_PROPERTY
cdef tuple NAMES, RULES


@cython.freelist(16)
cdef class Properties:
    cdef public object payload_format_indicator
    cdef public object message_expiry_interval
    cdef public str content_type
    cdef public str response_topic
    cdef public bytes correlation_data
    cdef public tuple subscription_identifiers
    cdef public object session_expiry_interval
    cdef public str assigned_client_identifier
    cdef public object server_keep_alive
    cdef public str authentication_method
    cdef public bytes authentication_data
    cdef public object request_problem_information
    cdef public object will_delay_interval
    cdef public object request_response_information
    cdef public str response_information
    cdef public str server_reference
    cdef public str reason_string
    cdef public object receive_maximum
    cdef public object topic_alias_maximum
    cdef public object topic_alias
    cdef public object maximum_qos
    cdef public object retain_available
    cdef public tuple user_properties
    cdef public object maximum_packet_size
    cdef public object wildcard_subscription_available
    cdef public object subscription_identifier_available
    cdef public object shared_subscription_available

    cpdef bytes forwardable(self)


cdef int _rule_of(bytes rules, int identifier, uint64_t seen) except -1
@cython.locals(kind=cython.int, value=int64_t)
cdef int64_t _number(Reader reader, int identifier, int rule) except -1
cdef str _text(Reader reader, int identifier)

@cython.locals(
    reader=Reader, rules=bytes, seen=uint64_t, bit=uint64_t, identifier=cython.int, rule=cython.int, kind=cython.int,
)
cpdef Properties decode_properties(bytes data, Py_ssize_t start, Py_ssize_t end, int packet_type)

@cython.locals(
    reader=Reader, rules=bytes, seen=uint64_t, bit=uint64_t, identifier=cython.int, rule=cython.int, kind=cython.int,
    number=int64_t, at=Py_ssize_t, kept_up_to=Py_ssize_t, kept=bytearray, payload_format=cython.int,
)
cpdef tuple forwardable(bytes data, Py_ssize_t start, Py_ssize_t end)

cdef _put_flag(bytearray out, int identifier, object value)
cdef _put_uint16(bytearray out, int identifier, object value)
cdef _put_uint32(bytearray out, int identifier, object value)
cdef _put_string(bytearray out, int identifier, str value)
cdef _put_binary(bytearray out, int identifier, bytes value)
cdef _put_forwardable(bytearray out, Properties properties)
@cython.locals(out=bytearray)
cpdef bytes encode_properties(Properties properties)

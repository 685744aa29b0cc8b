"""From the bytes of one packet to its value, with every check that needs nothing but the packet. [chapter 3]

What depends on the state of the connection is the channel's: who may send which packet and when, empty client
identifiers, topic aliases, limits, and whether a topic filter is well formed (each filter of a SUBSCRIBE gets an
answer of its own).

Errors carry the MQTT 5 reason code in every version: "malformed" for what cannot be read, "protocol error" for what
can be read and is not allowed; a server of MQTT 3 just closes. [section 4.13]
"""

from __future__ import annotations

from typing import Final

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PACKET_NAMES,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
    WILL,
)
from brookmq.mqtt.packets import (
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
from brookmq.mqtt.primitives import Reader, malformed
from brookmq.mqtt.properties import Properties, decode_properties
from brookmq.mqtt.reasons import (
    ALLOWED,
    PROTOCOL_ERROR,
    UNSPECIFIED_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    reason_of_connack_v3,
)
from brookmq.mqtt.topics import check_name, is_shared

# What the lower half of the first byte must be, by packet type; in PUBLISH it has a meaning. [section 2.1.3]
_FLAGS: Final = bytes((0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 2, 0, 0, 0, 0, 0))

# Bits of the connect flags [section 3.1.2.3]
_RESERVED: Final = 0x01
_CLEAN_START: Final = 0x02
_WILL_FLAG: Final = 0x04
_WILL_RETAIN: Final = 0x20
_PASSWORD: Final = 0x40
_USER_NAME: Final = 0x80

# Bits of the subscription options [section 3.8.3.1]
_NO_LOCAL: Final = 0x04
_RETAIN_AS_PUBLISHED: Final = 0x08


def _protocol_error(message: str) -> PacketError:
    return PacketError(PROTOCOL_ERROR, message)


def decode(first_byte: int, body: bytes, version: int) -> Packet:
    """The packet with this first byte and this body (all that follows the fixed header). ``version`` is the protocol
    version of the connection; a CONNECT says its own."""
    packet_type = first_byte >> 4
    try:
        return _decode(packet_type, first_byte & 0x0F, Reader(body, 0, len(body)), version)
    except PacketError as error:
        error.args = (f"{PACKET_NAMES[packet_type]}: {error}",)
        raise


def _decode(packet_type: int, flags: int, reader: Reader, version: int) -> Packet:
    if packet_type == PUBLISH:
        return _publish(flags, reader, version)
    if packet_type == CONNECT:
        return _connect(flags, reader)
    _check_flags(flags, _FLAGS[packet_type], version)
    if PUBACK <= packet_type <= PUBCOMP:
        return _ack(packet_type, reader, version)
    if packet_type == SUBSCRIBE:
        return _subscribe(reader, version)
    if packet_type == UNSUBSCRIBE:
        return _unsubscribe(reader, version)
    if packet_type == DISCONNECT:
        return _disconnect(reader, version)
    if packet_type == AUTH and version == 5:
        return _auth(reader)
    if packet_type == CONNACK:
        return _connack(reader, version)
    if packet_type == SUBACK:
        return _suback(reader, version)
    if packet_type == UNSUBACK:
        return _unsuback(reader, version)
    if packet_type == PINGREQ:
        reader.finish()
        return Pingreq()
    if packet_type == PINGRESP:
        reader.finish()
        return Pingresp()
    raise malformed("not a packet of this protocol version")


def _check_flags(flags: int, expected: int, version: int) -> None:
    # [MQTT-2.1.3-1, MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1, MQTT-3.14.1-1, MQTT-3.15.1-1] In MQTT 3.1 these bits
    # are "not used", and SUBSCRIBE, UNSUBSCRIBE and PUBREL have a real DUP flag.
    if flags != expected and version != 3:
        raise malformed(f"flags 0x{flags:X} in the fixed header instead of 0x{expected:X}")


def _packet_id(reader: Reader) -> int:
    packet_id = reader.uint16("packet identifier")
    if packet_id == 0:
        raise _protocol_error("packet identifier: 0")  # [MQTT-2.2.1-3, MQTT-2.2.1-4]
    return packet_id


def _properties(reader: Reader, packet_type: int, version: int) -> Properties:
    if version != 5:
        return Properties()
    end = reader.properties_end()
    properties = decode_properties(reader.data, reader.position, end, packet_type)
    reader.position = end
    return properties


def _reason(reader: Reader, packet_type: int) -> int:
    reason = reader.uint8("reason code")
    if reason not in ALLOWED[packet_type]:
        raise _protocol_error(f"reason code: 0x{reason:02X} is none of this packet")
    return reason


def _connect_version(reader: Reader) -> int:
    name = reader.binary("protocol name")
    version = reader.uint8("protocol version")
    if name == b"MQTT" and (version == 4 or version == 5):
        return version
    if name == b"MQIsdp" and version == 3:
        return version
    # [MQTT-3.1.2-1, MQTT-3.1.2-2]
    raise PacketError(UNSUPPORTED_PROTOCOL_VERSION, f"protocol {name[:16]!r} version {version} is not supported")


def _check_connect_flags(flags: int, version: int) -> None:
    if flags & _RESERVED and version != 3:
        raise malformed("connect flags: reserved bit set")  # [MQTT-3.1.2-3]
    if not flags & _WILL_FLAG:
        if flags & (0x18 | _WILL_RETAIN):
            raise malformed("connect flags: will QoS or will retain without a will")  # [MQTT-3.1.2-11, MQTT-3.1.2-13]
    elif flags & 0x18 == 0x18:
        raise malformed("connect flags: will QoS 3")  # [MQTT-3.1.2-12]
    if flags & _PASSWORD and not flags & _USER_NAME and version != 5:
        raise malformed("connect flags: password without user name")  # 3.1.1: [MQTT-3.1.2-22]


def _will(reader: Reader, flags: int, version: int) -> Will:
    properties = _properties(reader, WILL, version)
    topic = reader.binary("will topic")
    check_name(topic, 0)  # [MQTT-3.1.3-11]
    payload = reader.binary("will payload")
    delay = properties.will_delay_interval
    return Will(topic, payload, flags >> 3 & 3, (flags & _WILL_RETAIN) != 0, properties, 0 if delay is None else delay)


def _connect(flags: int, reader: Reader) -> Packet:
    version = _connect_version(reader)
    _check_flags(flags, 0, version)
    connect_flags = reader.uint8("connect flags")
    _check_connect_flags(connect_flags, version)
    keep_alive = reader.uint16("keep alive")
    properties = _properties(reader, CONNECT, version)
    if properties.authentication_data is not None and properties.authentication_method is None:
        raise _protocol_error("authentication_data: without a method")  # [section 3.1.2.11.10]
    client_id = reader.string("client identifier")  # [MQTT-3.1.3-3, MQTT-3.1.3-4]
    will = None
    if connect_flags & _WILL_FLAG:
        will = _will(reader, connect_flags, version)  # [MQTT-3.1.2-9]
    username = password = None
    # In MQTT 3.1 the flags promise less: when the packet ends before them, user name and password are absent.
    if connect_flags & _USER_NAME and (version != 3 or reader.position < reader.end):
        username = reader.string("user name")  # [MQTT-3.1.2-17, MQTT-3.1.3-12]
    if connect_flags & _PASSWORD and (version != 3 or reader.position < reader.end):
        password = reader.binary("password")  # [MQTT-3.1.2-19]
    reader.finish()  # [MQTT-3.1.2-16, MQTT-3.1.2-18]
    return Connect(
        version, client_id, (connect_flags & _CLEAN_START) != 0, keep_alive, username, password, will, properties
    )


def _return_code(reader: Reader) -> int:
    code = reader.uint8("return code")
    reason = reason_of_connack_v3(code)
    if reason is None:
        raise _protocol_error(f"return code: {code} does not exist")
    return reason


def _connack(reader: Reader, version: int) -> Packet:
    acknowledge = reader.uint8("acknowledge flags")
    if acknowledge > 1 and version != 3:
        raise malformed("acknowledge flags: reserved bits set")  # [MQTT-3.2.2-1]
    reason = _reason(reader, CONNACK) if version == 5 else _return_code(reader)  # [MQTT-3.2.2-8]
    properties = _properties(reader, CONNACK, version)
    reader.finish()
    session_present = acknowledge == 1 and version != 3
    if session_present and reason != 0:
        raise _protocol_error("session present in a refusal")  # [MQTT-3.2.2-6]
    return Connack(session_present, reason, properties)


def _publish(flags: int, reader: Reader, version: int) -> Packet:
    qos = flags >> 1 & 3
    dup = (flags & 8) != 0
    if qos == 3:
        raise malformed("QoS 3")  # [MQTT-3.3.1-4]
    if dup and qos == 0 and version != 3:
        raise malformed("DUP at QoS 0")  # [MQTT-3.3.1-2]
    topic = reader.binary("topic name")
    packet_id = _packet_id(reader) if qos else 0  # [MQTT-2.2.1-2]
    properties = _properties(reader, PUBLISH, version)
    if topic or version != 5:
        check_name(topic, 0)
    elif properties.topic_alias is None:
        raise _protocol_error("topic name: empty without a topic alias")  # [section 3.3.2.1]
    return Publish(topic, reader.rest(), qos, (flags & 1) != 0, dup, packet_id, properties)


def _ack(packet_type: int, reader: Reader, version: int) -> Packet:
    packet_id = _packet_id(reader)
    reason = 0
    properties: Properties | None = None
    if version == 5 and reader.position < reader.end:
        reason = _reason(reader, packet_type)  # [MQTT-3.4.2-1, MQTT-3.5.2-1, MQTT-3.6.2-1, MQTT-3.7.2-1]
        if reader.position < reader.end:
            properties = _properties(reader, packet_type, version)
    reader.finish()
    return Ack(packet_type, packet_id, reason, properties)


def _subscription(reader: Reader, version: int) -> SubscriptionRequest:
    filter_ = reader.string("topic filter")  # [MQTT-3.8.3-1]
    options = reader.uint8("subscription options")
    qos = options & 3
    if qos == 3:
        raise _protocol_error("subscription options: QoS 3")
    if version != 5:
        if options > 3:
            raise malformed("subscription options: reserved bits set")  # 3.1.1: [MQTT-3.8.3-4]
        return SubscriptionRequest(filter_, qos)
    if options & 0xC0:
        raise malformed("subscription options: reserved bits set")  # [MQTT-3.8.3-5]
    if options & 0x30 == 0x30:
        raise _protocol_error("subscription options: retain handling 3")
    no_local = (options & _NO_LOCAL) != 0
    if no_local and is_shared(filter_):
        raise _protocol_error("subscription options: no local in a shared subscription")  # [MQTT-3.8.3-4]
    return SubscriptionRequest(filter_, qos, no_local, (options & _RETAIN_AS_PUBLISHED) != 0, options >> 4)


def _subscribe(reader: Reader, version: int) -> Packet:
    packet_id = _packet_id(reader)
    properties = _properties(reader, SUBSCRIBE, version)
    subscriptions = []
    while reader.position < reader.end:
        subscriptions.append(_subscription(reader, version))
    if not subscriptions:
        raise _protocol_error("no topic filter")  # [MQTT-3.8.3-2]
    return Subscribe(packet_id, subscriptions, properties)


def _suback(reader: Reader, version: int) -> Packet:
    packet_id = _packet_id(reader)
    properties = _properties(reader, SUBACK, version)
    reasons = []
    while reader.position < reader.end:
        reason = _reason(reader, SUBACK)  # [MQTT-3.9.3-2]
        if version != 5 and reason > UNSPECIFIED_ERROR:
            raise _protocol_error(f"return code: 0x{reason:02X} does not exist")  # 3.1.1: [MQTT-3.9.3-2]
        reasons.append(reason)
    if not reasons:
        raise _protocol_error("no reason code")
    return Suback(packet_id, reasons, properties)


def _unsubscribe(reader: Reader, version: int) -> Packet:
    packet_id = _packet_id(reader)
    properties = _properties(reader, UNSUBSCRIBE, version)
    filters = []
    while reader.position < reader.end:
        filters.append(reader.string("topic filter"))  # [MQTT-3.10.3-1]
    if not filters:
        raise _protocol_error("no topic filter")  # [MQTT-3.10.3-2]
    return Unsubscribe(packet_id, filters, properties)


def _unsuback(reader: Reader, version: int) -> Packet:
    packet_id = _packet_id(reader)
    properties = _properties(reader, UNSUBACK, version)
    reasons: list[int] = []
    if version == 5:
        while reader.position < reader.end:
            reasons.append(_reason(reader, UNSUBACK))  # [MQTT-3.11.3-2]
        if not reasons:
            raise _protocol_error("no reason code")
    reader.finish()
    return Unsuback(packet_id, reasons, properties)


def _disconnect(reader: Reader, version: int) -> Packet:
    reason = 0
    properties: Properties | None = None
    if version == 5 and reader.position < reader.end:
        reason = _reason(reader, DISCONNECT)  # [MQTT-3.14.2-1]
        if reader.position < reader.end:
            properties = _properties(reader, DISCONNECT, version)
    reader.finish()
    return Disconnect(reason, properties)


def _auth(reader: Reader) -> Packet:
    if reader.position == reader.end:
        return Auth()  # [section 3.15.2.1] success without properties
    reason = _reason(reader, AUTH)  # [MQTT-3.15.2-1]
    properties = _properties(reader, AUTH, 5)
    if properties.authentication_method is None:
        raise _protocol_error("authentication_method: missing")  # [section 3.15.2.2.2]
    reader.finish()
    return Auth(reason, properties)

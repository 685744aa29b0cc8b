"""From a packet to its bytes, in the form of the connection's protocol version. [chapter 3]

MQTT 3 has neither properties nor most reason codes: they are left out or mapped here, so that the code that makes a
packet need not know the version. What a version cannot say at all (AUTH before MQTT 5) is our own bug.

The packets that a broker sends most have a function of their own that needs no packet object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from brookmq.base.errors import CallerError
from brookmq.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PUBLISH,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
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
    Unsuback,
    Unsubscribe,
    Will,
)
from brookmq.mqtt.primitives import put_binary, put_string, put_uint16, varint
from brookmq.mqtt.properties import Properties, encode_properties
from brookmq.mqtt.reasons import UNSPECIFIED_ERROR, connack_v3

PINGREQ_BYTES: Final = b"\xc0\x00"
PINGRESP_BYTES: Final = b"\xd0\x00"
_NO_PROPERTIES: Final = b"\x00"


def encode(packet: Packet, version: int) -> bytes:
    """The whole packet, fixed header included."""
    encoder = _ENCODERS.get(type(packet))
    if encoder is None:
        raise CallerError(f"{type(packet).__name__} is not a packet")
    return encoder(packet, version)


def _framed(first_byte: int, body: bytearray) -> bytes:
    return bytes((first_byte,)) + varint(len(body)) + body


def encode_connack(session_present: bool, reason: int, properties: Properties | None, version: int) -> bytes:
    """``properties`` None is the quickest way to say that there are none."""
    present = 1 if session_present and reason == 0 else 0  # [MQTT-3.2.2-6]
    if version != 5:
        # MQTT 3.1 has no session present flag: the byte is reserved there
        return bytes((CONNACK << 4, 2, present if version == 4 else 0, connack_v3(reason)))
    out = bytearray((present, reason))
    out += _NO_PROPERTIES if properties is None else encode_properties(properties)
    return _framed(CONNACK << 4, out)


def encode_ack(type: int, packet_id: int, reason: int, properties: Properties | None, version: int) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP: four bytes when all went well."""
    first_byte = type << 4 | (2 if type == PUBREL else 0)  # [MQTT-3.6.1-1]
    encoded = _NO_PROPERTIES if properties is None or version != 5 else encode_properties(properties)
    if len(encoded) == 1:
        if reason == 0 or version != 5:
            return bytes((first_byte, 2, packet_id >> 8, packet_id & 0xFF))
        return bytes((first_byte, 3, packet_id >> 8, packet_id & 0xFF, reason))
    out = bytearray((packet_id >> 8, packet_id & 0xFF, reason))
    out += encoded
    return _framed(first_byte, out)


def encode_suback(packet_id: int, reasons: Iterable[int], properties: Properties | None, version: int) -> bytes:
    out = bytearray()
    put_uint16(out, packet_id)
    if version == 5:
        out += _NO_PROPERTIES if properties is None else encode_properties(properties)
        out += bytes(reasons)
    else:
        for reason in reasons:
            out.append(min(reason, UNSPECIFIED_ERROR))  # [MQTT-3.9.3-2 of 3.1.1]
    return _framed(SUBACK << 4, out)


def encode_unsuback(packet_id: int, reasons: Iterable[int], properties: Properties | None, version: int) -> bytes:
    out = bytearray()
    put_uint16(out, packet_id)
    if version == 5:
        out += _NO_PROPERTIES if properties is None else encode_properties(properties)
        out += bytes(reasons)
    return _framed(UNSUBACK << 4, out)


def encode_disconnect(reason: int, properties: Properties | None, version: int) -> bytes:
    if version != 5:
        return b"\xe0\x00"
    encoded = _NO_PROPERTIES if properties is None else encode_properties(properties)
    if len(encoded) == 1:
        return b"\xe0\x00" if reason == 0 else bytes((DISCONNECT << 4, 1, reason))
    out = bytearray((reason,))
    out += encoded
    return _framed(DISCONNECT << 4, out)


def _put_will(out: bytearray, will: Will, version: int) -> None:
    if version == 5:
        delay = will.properties.will_delay_interval
        if will.delay != (0 if delay is None else delay):
            raise CallerError(f"will: delay {will.delay} differs from its property {delay}")
        out += encode_properties(will.properties)
    put_binary(out, will.topic)
    put_binary(out, will.payload)


def _connect(packet: Connect, _version: int) -> bytes:
    version = packet.version  # a CONNECT says its own
    will = packet.will
    flags = 0x02 if packet.clean_start else 0
    if will is not None:
        flags |= 0x04 | will.qos << 3 | (0x20 if will.retain else 0)
    if packet.password is not None:
        if packet.username is None and version != 5:
            raise CallerError("CONNECT: password without user name before MQTT 5")  # 3.1.1: [MQTT-3.1.2-22]
        flags |= 0x40
    if packet.username is not None:
        flags |= 0x80
    out = bytearray()
    put_binary(out, b"MQIsdp" if version == 3 else b"MQTT")
    out.append(version)
    out.append(flags)
    put_uint16(out, packet.keep_alive)
    if version == 5:
        out += encode_properties(packet.properties)
    put_string(out, packet.client_id)  # [MQTT-3.1.3-1] from here on in this order
    if will is not None:
        _put_will(out, will, version)
    if packet.username is not None:
        put_string(out, packet.username)
    if packet.password is not None:
        put_binary(out, packet.password)
    return _framed(CONNECT << 4, out)


def _publish(packet: Publish, version: int) -> bytes:
    qos = packet.qos
    out = bytearray()
    put_binary(out, packet.topic)
    if qos:
        put_uint16(out, packet.packet_id)
    if version == 5:
        out += encode_properties(packet.properties)
    out += packet.payload
    return _framed(PUBLISH << 4 | (8 if packet.dup else 0) | qos << 1 | (1 if packet.retain else 0), out)


def _subscribe(packet: Subscribe, version: int) -> bytes:
    out = bytearray()
    put_uint16(out, packet.packet_id)
    if version == 5:
        out += encode_properties(packet.properties)
    for request in packet.subscriptions:
        put_string(out, request.filter)
        options = request.qos
        if version == 5:
            options |= (4 if request.no_local else 0) | (8 if request.retain_as_published else 0)
            options |= request.retain_handling << 4
        out.append(options)
    return _framed(SUBSCRIBE << 4 | 2, out)


def _unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    out = bytearray()
    put_uint16(out, packet.packet_id)
    if version == 5:
        out += encode_properties(packet.properties)
    for filter_ in packet.filters:
        put_string(out, filter_)
    return _framed(UNSUBSCRIBE << 4 | 2, out)


def _auth(packet: Auth, version: int) -> bytes:
    if version != 5:
        raise CallerError("AUTH does not exist before MQTT 5")
    encoded = encode_properties(packet.properties)
    if packet.reason == 0 and len(encoded) == 1:
        return b"\xf0\x00"
    out = bytearray((packet.reason,))
    out += encoded
    return _framed(AUTH << 4, out)


def _connack(packet: Connack, version: int) -> bytes:
    return encode_connack(packet.session_present, packet.reason, packet.properties, version)


def _ack(packet: Ack, version: int) -> bytes:
    return encode_ack(packet.type, packet.packet_id, packet.reason, packet.properties, version)


def _suback(packet: Suback, version: int) -> bytes:
    return encode_suback(packet.packet_id, packet.reasons, packet.properties, version)


def _unsuback(packet: Unsuback, version: int) -> bytes:
    return encode_unsuback(packet.packet_id, packet.reasons, packet.properties, version)


def _disconnect(packet: Disconnect, version: int) -> bytes:
    return encode_disconnect(packet.reason, packet.properties, version)


def _pingreq(_packet: Pingreq, _version: int) -> bytes:
    return PINGREQ_BYTES


def _pingresp(_packet: Pingresp, _version: int) -> bytes:
    return PINGRESP_BYTES


_ENCODERS: Final[dict[type[Packet], Callable[[Any, int], bytes]]] = {
    Connect: _connect,
    Connack: _connack,
    Publish: _publish,
    Ack: _ack,
    Subscribe: _subscribe,
    Suback: _suback,
    Unsubscribe: _unsubscribe,
    Unsuback: _unsuback,
    Pingreq: _pingreq,
    Pingresp: _pingresp,
    Disconnect: _disconnect,
    Auth: _auth,
}

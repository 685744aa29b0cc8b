"""Sets of MQTT 5 properties, as values and as bytes. [section 2.2.2]

A set is a `Properties` object with an attribute for each property, None where it is absent. Only two properties may
repeat, and they are tuples: user properties, whose order and repeated names are kept [MQTT-3.3.2-18, MQTT-3.1.3-10],
and subscription identifiers. Every set that is decoded is checked against the table: what may stand in this packet,
how often, and in which range.

A message that is passed on needs less: `forwardable` takes the bytes that go on unaltered out of the bytes that came
in, checked by the same rules but without a `Properties` in between.
"""

from __future__ import annotations

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.packet_types import PUBLISH, WILL
from brookmq.mqtt.primitives import Reader, malformed, put_binary, put_string, put_uint16, put_uint32, varint
from brookmq.mqtt.property_table import (
    BINARY,
    FLAG,
    FORBIDDEN,
    IDENTIFIERS,
    NAMES,
    NOT_ZERO,
    PROPERTIES,
    REPEATS,
    RULES,
    STRING,
    STRING_PAIR,
    TYPE_MASK,
    UINT16,
    UINT32,
    VARINT,
    Property,
)
from brookmq.mqtt.reasons import PROTOCOL_ERROR, TOPIC_ALIAS_INVALID

__all__ = [
    "PROPERTIES",
    "WILL",
    "Properties",
    "Property",
    "decode_properties",
    "encode_properties",
    "forwardable",
]


_MESSAGE_EXPIRY_INTERVAL = 0x02
_RESPONSE_TOPIC = 0x08
_SUBSCRIPTION_IDENTIFIER = 0x0B
_TOPIC_ALIAS = 0x23
_USER_PROPERTY = 0x26


class Properties:
    """A set of properties. An attribute per property, named as in the specification; None means absent."""

    __slots__ = (
        "assigned_client_identifier",
        "authentication_data",
        "authentication_method",
        "content_type",
        "correlation_data",
        "maximum_packet_size",
        "maximum_qos",
        "message_expiry_interval",
        "payload_format_indicator",
        "reason_string",
        "receive_maximum",
        "request_problem_information",
        "request_response_information",
        "response_information",
        "response_topic",
        "retain_available",
        "server_keep_alive",
        "server_reference",
        "session_expiry_interval",
        "shared_subscription_available",
        "subscription_identifier_available",
        "subscription_identifiers",
        "topic_alias",
        "topic_alias_maximum",
        "user_properties",
        "wildcard_subscription_available",
        "will_delay_interval",
    )

    def __init__(self) -> None:
        self.payload_format_indicator: int | None = None
        self.message_expiry_interval: int | None = None  # seconds
        self.content_type: str | None = None
        self.response_topic: str | None = None
        self.correlation_data: bytes | None = None
        self.subscription_identifiers: tuple[int, ...] = ()
        self.session_expiry_interval: int | None = None  # seconds, 0xFFFFFFFF = never
        self.assigned_client_identifier: str | None = None
        self.server_keep_alive: int | None = None  # seconds
        self.authentication_method: str | None = None
        self.authentication_data: bytes | None = None
        self.request_problem_information: int | None = None
        self.will_delay_interval: int | None = None  # seconds
        self.request_response_information: int | None = None
        self.response_information: str | None = None
        self.server_reference: str | None = None
        self.reason_string: str | None = None
        self.receive_maximum: int | None = None
        self.topic_alias_maximum: int | None = None
        self.topic_alias: int | None = None
        self.maximum_qos: int | None = None
        self.retain_available: int | None = None
        self.user_properties: tuple[tuple[str, str], ...] = ()
        self.maximum_packet_size: int | None = None  # bytes
        self.wildcard_subscription_available: int | None = None
        self.subscription_identifier_available: int | None = None
        self.shared_subscription_available: int | None = None

    def present(self) -> dict[str, object]:
        """The properties that are there, by name, in the order of their identifiers."""
        values = ((row.name, getattr(self, row.name)) for row in PROPERTIES.values())
        return {name: value for name, value in values if value is not None and value != ()}

    def forwardable(self) -> bytes:
        """What a server passes on unaltered with the message, encoded, without the length in front: for wills and for
        messages that do not come from a packet. The counterpart of `forwardable` for bytes."""
        out = bytearray()
        _put_forwardable(out, self)
        return bytes(out)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Properties):
            return NotImplemented
        return self.present() == other.present()

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __repr__(self) -> str:
        return f"Properties({', '.join(f'{name}={value!r}' for name, value in self.present().items())})"


def _rule_of(rules: bytes, identifier: int, seen: int) -> int:
    """The rule for a property that was just met, when it may stand here. ``seen`` has a bit for each one met before."""
    rule = rules[identifier] if identifier < IDENTIFIERS else FORBIDDEN
    if rule == FORBIDDEN:
        # [section 2.2.2.2] an identifier that is unknown or not valid for its packet is a malformed packet
        name = NAMES[identifier] if identifier < IDENTIFIERS else ""
        raise malformed(f"{name}: not allowed here" if name else f"property 0x{identifier:02X} does not exist")
    if not rule & REPEATS and seen >> identifier & 1:
        raise PacketError(PROTOCOL_ERROR, f"{NAMES[identifier]}: more than once")
    return rule


def _number(reader: Reader, identifier: int, rule: int) -> int:
    """The value of a property that is a number, within its range."""
    name = NAMES[identifier]
    kind = rule & TYPE_MASK
    if kind == UINT32:
        value = reader.uint32(name)
    elif kind == UINT16:
        value = reader.uint16(name)
    elif kind == VARINT:
        value = reader.varint(name)
    else:
        value = reader.uint8(name)
        if value > 1:
            raise PacketError(PROTOCOL_ERROR, f"{name}: {value} is neither 0 nor 1")
    if value == 0 and rule & NOT_ZERO:
        # [MQTT-3.3.2-8] a topic alias of 0 has a reason code of its own
        reason = TOPIC_ALIAS_INVALID if identifier == _TOPIC_ALIAS else PROTOCOL_ERROR
        raise PacketError(reason, f"{name}: must not be 0")
    return value


def _text(reader: Reader, identifier: int) -> str:
    """The value of a property that is one string."""
    text = reader.string(NAMES[identifier])
    if identifier == _RESPONSE_TOPIC and (not text or "+" in text or "#" in text):
        raise PacketError(PROTOCOL_ERROR, "response_topic: empty or with wildcards")  # [MQTT-3.3.2-14]
    return text


def decode_properties(data: bytes, start: int, end: int, packet_type: int) -> Properties:
    """The set in ``data[start:end]``, without the length in front. ``packet_type`` is that of the packet, or WILL."""
    properties = Properties()
    if start == end:
        return properties
    reader = Reader(data, start, end)
    rules = RULES[packet_type]
    seen = 0  # a bit for each identifier
    bit = 1
    user_properties: list[tuple[str, str]] = []
    subscription_identifiers: list[int] = []
    while reader.position < end:
        identifier = reader.uint8("property")
        rule = _rule_of(rules, identifier, seen)
        seen |= bit << identifier
        kind = rule & TYPE_MASK
        if kind == STRING_PAIR:
            name = reader.string("user property name")
            user_properties.append((name, reader.string("user property value")))
        elif kind == STRING:
            setattr(properties, NAMES[identifier], _text(reader, identifier))
        elif kind == BINARY:
            setattr(properties, NAMES[identifier], reader.binary(NAMES[identifier]))
        elif kind == VARINT:
            subscription_identifiers.append(_number(reader, identifier, rule))
        else:
            setattr(properties, NAMES[identifier], _number(reader, identifier, rule))
    if user_properties:
        properties.user_properties = tuple(user_properties)
    if subscription_identifiers:
        properties.subscription_identifiers = tuple(subscription_identifiers)
    return properties


def forwardable(data: bytes, start: int, end: int) -> tuple[bytes, int | None, int | None, int, bool]:
    """The properties of a PUBLISH in ``data[start:end]`` (without the length in front), for passing the message on:

    ``(properties, message_expiry, topic_alias, payload_format, has_subscription_identifier)``

    ``properties`` are the bytes of those that go on unaltered and in their order: payload format, content type,
    response topic, correlation data, user properties [MQTT-3.3.2-4, -15, -16, -17, -18, -20]. Whether a subscription
    identifier is an error depends on who sent it: a client must not [MQTT-3.3.4-6].
    """
    if start == end:
        return b"", None, None, 0, False
    reader = Reader(data, start, end)
    rules = RULES[PUBLISH]
    seen = 0  # a bit for each identifier
    bit = 1
    message_expiry: int | None = None
    topic_alias: int | None = None
    payload_format = 0
    kept: bytearray | None = None  # None as long as nothing had to be left out
    kept_up_to = start
    while reader.position < end:
        at = reader.position
        identifier = reader.uint8("property")
        rule = _rule_of(rules, identifier, seen)
        seen |= bit << identifier
        kind = rule & TYPE_MASK
        if kind == STRING_PAIR:
            reader.string("user property name")
            reader.string("user property value")
        elif kind == STRING:
            _text(reader, identifier)
        elif kind == BINARY:
            reader.skip_sized(NAMES[identifier])
        elif kind == FLAG:
            payload_format = _number(reader, identifier, rule)
        else:
            number = _number(reader, identifier, rule)
            if identifier == _MESSAGE_EXPIRY_INTERVAL:
                message_expiry = number
            elif identifier == _TOPIC_ALIAS:
                topic_alias = number
            if kept is None:
                kept = bytearray()
            kept += data[kept_up_to:at]
            kept_up_to = reader.position
    identified = (seen >> _SUBSCRIPTION_IDENTIFIER & 1) == 1
    if kept is None:
        return data[start:end], message_expiry, topic_alias, payload_format, identified
    kept += data[kept_up_to:end]
    return bytes(kept), message_expiry, topic_alias, payload_format, identified


def _put_flag(out: bytearray, identifier: int, value: int | None) -> None:
    if value is not None:
        out.append(identifier)
        out.append(value)


def _put_uint16(out: bytearray, identifier: int, value: int | None) -> None:
    if value is not None:
        out.append(identifier)
        put_uint16(out, value)


def _put_uint32(out: bytearray, identifier: int, value: int | None) -> None:
    if value is not None:
        out.append(identifier)
        put_uint32(out, value)


def _put_string(out: bytearray, identifier: int, value: str | None) -> None:
    if value is not None:
        out.append(identifier)
        put_string(out, value)


def _put_binary(out: bytearray, identifier: int, value: bytes | None) -> None:
    if value is not None:
        out.append(identifier)
        put_binary(out, value)


def _put_forwardable(out: bytearray, properties: Properties) -> None:
    _put_flag(out, 0x01, properties.payload_format_indicator)
    _put_string(out, 0x03, properties.content_type)
    _put_string(out, 0x08, properties.response_topic)
    _put_binary(out, 0x09, properties.correlation_data)
    for name, value in properties.user_properties:
        out.append(_USER_PROPERTY)
        put_string(out, name)
        put_string(out, value)


def encode_properties(properties: Properties) -> bytes:
    """The set as bytes, with its length in front. [MQTT-2.2.2-1]"""
    out = bytearray()
    _put_forwardable(out, properties)
    _put_uint32(out, 0x02, properties.message_expiry_interval)
    for number in properties.subscription_identifiers:
        out.append(_SUBSCRIPTION_IDENTIFIER)
        out += varint(number)
    _put_uint32(out, 0x11, properties.session_expiry_interval)
    _put_string(out, 0x12, properties.assigned_client_identifier)
    _put_uint16(out, 0x13, properties.server_keep_alive)
    _put_string(out, 0x15, properties.authentication_method)
    _put_binary(out, 0x16, properties.authentication_data)
    _put_flag(out, 0x17, properties.request_problem_information)
    _put_uint32(out, 0x18, properties.will_delay_interval)
    _put_flag(out, 0x19, properties.request_response_information)
    _put_string(out, 0x1A, properties.response_information)
    _put_string(out, 0x1C, properties.server_reference)
    _put_string(out, 0x1F, properties.reason_string)
    _put_uint16(out, 0x21, properties.receive_maximum)
    _put_uint16(out, 0x22, properties.topic_alias_maximum)
    _put_uint16(out, 0x23, properties.topic_alias)
    _put_flag(out, 0x24, properties.maximum_qos)
    _put_flag(out, 0x25, properties.retain_available)
    _put_uint32(out, 0x27, properties.maximum_packet_size)
    _put_flag(out, 0x28, properties.wildcard_subscription_available)
    _put_flag(out, 0x29, properties.subscription_identifier_available)
    _put_flag(out, 0x2A, properties.shared_subscription_available)
    return varint(len(out)) + out

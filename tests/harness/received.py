"""The strict reader of what a node sends: every packet that a test receives is checked against the specification.

A node that sends a reserved flag, a property that does not belong to the packet, a reason code that the packet does
not have, a length that is not minimal or text that is not UTF-8 fails the test that received it, whatever it was
looking for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.harness.wire import BINARY, BYTE, FOUR_BYTES, PAIR, TEXT, TWO_BYTES, Kind, Property, Value

REASONS: dict[Kind, frozenset[int]] = {
    # Table 3-1 [MQTT-3.2.2-8]
    Kind.CONNACK: frozenset(
        {0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90}
        | {0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F}
    ),
    # [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1]
    Kind.PUBACK: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    Kind.PUBREC: frozenset({0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}),
    Kind.PUBREL: frozenset({0x00, 0x92}),
    Kind.PUBCOMP: frozenset({0x00, 0x92}),
    # [MQTT-3.9.3-2] [MQTT-3.11.3-2]
    Kind.SUBACK: frozenset({0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2}),
    Kind.UNSUBACK: frozenset({0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91}),
    # what a server may send of table 3-10 [MQTT-3.14.2-1]
    Kind.DISCONNECT: frozenset(
        {0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96}
        | {0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2}
    ),
    # [MQTT-3.15.2-1]
    Kind.AUTH: frozenset({0x00, 0x18}),
}
EXPLANATION = {Property.REASON_STRING, Property.USER_PROPERTY}
PROPERTIES: dict[Kind, set[Property]] = {
    Kind.CONNACK: EXPLANATION
    | {
        Property.SESSION_EXPIRY, Property.RECEIVE_MAXIMUM, Property.MAXIMUM_QOS, Property.RETAIN_AVAILABLE,
        Property.MAXIMUM_PACKET_SIZE, Property.ASSIGNED_CLIENT_ID, Property.TOPIC_ALIAS_MAXIMUM,
        Property.WILDCARD_AVAILABLE, Property.SUBSCRIPTION_ID_AVAILABLE, Property.SHARED_AVAILABLE,
        Property.SERVER_KEEP_ALIVE, Property.RESPONSE_INFORMATION, Property.SERVER_REFERENCE,
        Property.AUTH_METHOD, Property.AUTH_DATA,
    },
    Kind.PUBLISH: {
        Property.PAYLOAD_FORMAT, Property.MESSAGE_EXPIRY, Property.TOPIC_ALIAS, Property.RESPONSE_TOPIC,
        Property.CORRELATION_DATA, Property.USER_PROPERTY, Property.SUBSCRIPTION_ID, Property.CONTENT_TYPE,
    },
    Kind.PUBACK: EXPLANATION,
    Kind.PUBREC: EXPLANATION,
    Kind.PUBREL: EXPLANATION,
    Kind.PUBCOMP: EXPLANATION,
    Kind.SUBACK: EXPLANATION,
    Kind.UNSUBACK: EXPLANATION,
    Kind.DISCONNECT: EXPLANATION | {Property.SERVER_REFERENCE},  # never Session Expiry [MQTT-3.14.2-2]
    Kind.AUTH: EXPLANATION | {Property.AUTH_METHOD, Property.AUTH_DATA},
}  # fmt: skip
MAY_REPEAT = {Property.USER_PROPERTY, Property.SUBSCRIPTION_ID}


class MalformedError(AssertionError):
    """The node sent something that the specification does not allow."""


def require(condition: object, why: str) -> None:
    """Fail with `why`; a function, since these checks must not vanish under -O."""
    if not condition:
        raise MalformedError(why)


@dataclass
class Packet:
    """One control packet from the node, with the fields that its type has."""

    kind: Kind
    flags: int
    size: int  # of the whole packet, fixed header included
    packet_id: int = 0
    reason: int = 0
    reasons: list[int] = field(default_factory=list)
    properties: list[tuple[Property, Value]] = field(default_factory=list)
    session_present: bool = False
    topic: bytes = b""
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False

    def all(self, wanted: Property) -> list[Value]:
        """The values of a property, in the order in which they came."""
        return [value for identifier, value in self.properties if identifier == wanted]

    def get(self, wanted: Property) -> Value | None:
        """The value of a property that may come once."""
        found = self.all(wanted)
        return found[0] if found else None

    def number(self, wanted: Property, default: int = 0) -> int:
        """The value of a numeric property."""
        found = self.get(wanted)
        return found if isinstance(found, int) else default


class Fields:
    """Takes fields from the front of a packet's body."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        require(self.left() >= count, f"the packet ends {count - self.left()} bytes early: {self.data.hex()}")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def variable(self) -> int:
        value = 0
        for place in range(4):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                require(byte or not place, "a Variable Byte Integer that is longer than it must be")  # [MQTT-1.5.5-1]
                return value
        raise MalformedError("a Variable Byte Integer of more than four bytes")

    def binary(self) -> bytes:
        return self.take(self.number(2))

    def text(self) -> str:
        raw = self.binary()
        try:
            value = raw.decode()
        except UnicodeDecodeError as error:
            raise MalformedError(f"text that is not UTF-8: {raw.hex()}") from error  # [MQTT-1.5.4-1]
        require("\0" not in value, "text with U+0000")  # [MQTT-1.5.4-2]
        return value

    def properties(self, kind: Kind) -> list[tuple[Property, Value]]:
        length = self.variable()
        end = self.at + length
        found: list[tuple[Property, Value]] = []
        while self.at < end:
            identifier = Property(self.variable())
            require(identifier in PROPERTIES[kind], f"{identifier.name} does not belong to {kind.name}")
            repeated = identifier in {known for known, _ in found}
            require(not repeated or identifier in MAY_REPEAT, f"{identifier.name} came twice")
            found.append((identifier, self.value(identifier)))
        require(self.at == end, "the properties do not end where their length says")
        return found

    def value(self, identifier: Property) -> Value:
        if identifier in PAIR:
            return self.text(), self.text()
        if identifier in TEXT:
            return self.text()
        if identifier in BINARY:
            return self.binary()
        for size, members in ((1, BYTE), (2, TWO_BYTES), (4, FOUR_BYTES)):
            if identifier in members:
                return self.number(size)
        return self.variable()


def decode(first: int, body: bytes, version: int) -> Packet:
    """The packet with this first byte and body, as protocol `version` writes it."""
    kind, flags = Kind(first >> 4), first & 0x0F
    # what travels from server to client; SUBSCRIBE and the like never do
    server_sends = kind in REASONS or kind in {Kind.PUBLISH, Kind.PINGRESP}
    require(server_sends, f"a server never sends {kind.name}")
    header = 2 + (len(body) > 127) + (len(body) > 16_383) + (len(body) > 2_097_151)
    got = Packet(kind, flags, header + len(body))
    fields = Fields(body)
    if kind is Kind.PUBLISH:
        _publish(got, fields, version)
    else:
        # [MQTT-2.1.3-1] (5.0), [MQTT-2.2.2-1] (3.1.1)
        require(flags == (2 if kind is Kind.PUBREL else 0), f"{kind.name} with flags {flags:#x}")
        _other(got, fields, version)
    require(not fields.left(), f"{fields.left()} bytes after the end of {kind.name}: {body.hex()}")
    return got


def _publish(got: Packet, fields: Fields, version: int) -> None:
    got.dup, got.qos, got.retain = bool(got.flags & 8), got.flags >> 1 & 3, bool(got.flags & 1)
    require(got.qos != 3, "PUBLISH with QoS 3")  # [MQTT-3.3.1-4]
    require(got.qos or not got.dup, "PUBLISH with QoS 0 and DUP")  # [MQTT-3.3.1-2]
    got.topic = fields.text().encode()  # [MQTT-3.3.2-1]
    require(b"+" not in got.topic and b"#" not in got.topic, "PUBLISH with wildcards")  # [MQTT-3.3.2-2]
    if got.qos:
        got.packet_id = fields.number(2)
        require(got.packet_id, "PUBLISH with packet id 0")  # [MQTT-2.2.1-4]
    if version == 5:
        got.properties = fields.properties(Kind.PUBLISH)
        require(got.topic or got.get(Property.TOPIC_ALIAS), "PUBLISH with neither topic nor alias")
        require(got.get(Property.TOPIC_ALIAS) != 0, "PUBLISH with topic alias 0")  # [MQTT-3.3.2-8]
    got.payload = fields.take(fields.left())


def _other(got: Packet, fields: Fields, version: int) -> None:
    kind = got.kind
    if kind is Kind.CONNACK:
        acknowledge_flags = fields.number(1)
        require(acknowledge_flags in (0, 1), "CONNACK with reserved flags")  # [MQTT-3.2.2-1]
        got.session_present = bool(acknowledge_flags)
        got.reason = fields.number(1)
        if version == 5:
            got.properties = fields.properties(kind)
        else:
            require(got.reason <= 5, f"CONNACK return code {got.reason}")
    elif kind in {Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBCOMP, Kind.SUBACK, Kind.UNSUBACK}:
        got.packet_id = fields.number(2)
        if kind in {Kind.SUBACK, Kind.UNSUBACK}:
            got.properties = fields.properties(kind) if version == 5 else []
            got.reasons = list(fields.take(fields.left() if version == 5 or kind is Kind.SUBACK else 0))
        elif version == 5 and fields.left():
            got.reason = fields.number(1)
            got.properties = fields.properties(kind) if fields.left() else []
    elif kind in {Kind.DISCONNECT, Kind.AUTH}:
        require(version == 5, f"a server of MQTT {version} never sends {kind.name}")
        got.reason = fields.number(1) if fields.left() else 0
        got.properties = fields.properties(kind) if fields.left() else []
    if version == 5:
        for reason in got.reasons or [got.reason]:
            require(kind not in REASONS or reason in REASONS[kind], f"{kind.name} has no reason code {reason:#x}")
    elif kind is Kind.SUBACK:
        require(set(got.reasons) <= {0, 1, 2, 0x80}, f"SUBACK with {got.reasons}")  # [MQTT-3.9.3-2] of 3.1.1

"""The table of the MQTT 5 properties: which exist, how they are encoded, and where they may stand. [section 2.2.2.2]"""

from __future__ import annotations

from typing import Final, NamedTuple

from brookmq.mqtt.packet_types import (
    AUTH,
    CONNACK,
    CONNECT,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    WILL,
)

# How a value is encoded. Every property of one byte is a flag: only 0 and 1 are allowed.
FLAG: Final = 0
UINT16: Final = 1
UINT32: Final = 2
VARINT: Final = 3
STRING: Final = 4
BINARY: Final = 5
STRING_PAIR: Final = 6


class Property(NamedTuple):
    """One row: the attribute of `Properties`, the type, the packets that may carry it (``WILL`` for the will's own
    set), those of them in which it may repeat, and whether the number 0 is allowed."""

    name: str
    type: int
    packets: frozenset[int]
    repeats: frozenset[int] = frozenset()
    zero: bool = True


_EVERYWHERE: Final = frozenset(range(16)) - {PINGREQ, PINGRESP}
_MESSAGE: Final = frozenset({PUBLISH, WILL})
_ANSWERS: Final = frozenset({CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH})
_GREETING: Final = frozenset({CONNECT, CONNACK})
_CONNECT: Final = frozenset({CONNECT})
_CONNACK: Final = frozenset({CONNACK})
_PUBLISH: Final = frozenset({PUBLISH})

PROPERTIES: Final[dict[int, Property]] = {
    0x01: Property("payload_format_indicator", FLAG, _MESSAGE),
    0x02: Property("message_expiry_interval", UINT32, _MESSAGE),
    0x03: Property("content_type", STRING, _MESSAGE),
    0x08: Property("response_topic", STRING, _MESSAGE),
    0x09: Property("correlation_data", BINARY, _MESSAGE),
    0x0B: Property("subscription_identifiers", VARINT, frozenset({PUBLISH, SUBSCRIBE}), repeats=_PUBLISH, zero=False),
    0x11: Property("session_expiry_interval", UINT32, _GREETING | {DISCONNECT}),
    0x12: Property("assigned_client_identifier", STRING, _CONNACK),
    0x13: Property("server_keep_alive", UINT16, _CONNACK),
    0x15: Property("authentication_method", STRING, _GREETING | {AUTH}),
    0x16: Property("authentication_data", BINARY, _GREETING | {AUTH}),
    0x17: Property("request_problem_information", FLAG, _CONNECT),
    0x18: Property("will_delay_interval", UINT32, frozenset({WILL})),
    0x19: Property("request_response_information", FLAG, _CONNECT),
    0x1A: Property("response_information", STRING, _CONNACK),
    0x1C: Property("server_reference", STRING, frozenset({CONNACK, DISCONNECT})),
    0x1F: Property("reason_string", STRING, _ANSWERS),
    0x21: Property("receive_maximum", UINT16, _GREETING, zero=False),
    0x22: Property("topic_alias_maximum", UINT16, _GREETING),
    0x23: Property("topic_alias", UINT16, _PUBLISH, zero=False),
    0x24: Property("maximum_qos", FLAG, _CONNACK),
    0x25: Property("retain_available", FLAG, _CONNACK),
    0x26: Property("user_properties", STRING_PAIR, _EVERYWHERE, repeats=_EVERYWHERE),
    0x27: Property("maximum_packet_size", UINT32, _GREETING, zero=False),
    0x28: Property("wildcard_subscription_available", FLAG, _CONNACK),
    0x29: Property("subscription_identifier_available", FLAG, _CONNACK),
    0x2A: Property("shared_subscription_available", FLAG, _CONNACK),
}

# The same table in the form in which the decoder reads it: for each packet type one byte per identifier, which is the
# type of the value with these marks, or FORBIDDEN.
IDENTIFIERS: Final = 0x2B  # one more than the highest identifier that exists
TYPE_MASK: Final = 0x0F
REPEATS: Final = 0x10
NOT_ZERO: Final = 0x20
FORBIDDEN: Final = 0xFF


def _rule(identifier: int, packet_type: int) -> int:
    row = PROPERTIES.get(identifier)
    if row is None or packet_type not in row.packets:
        return FORBIDDEN
    return row.type | (REPEATS if packet_type in row.repeats else 0) | (0 if row.zero else NOT_ZERO)


RULES: Final[tuple[bytes, ...]] = tuple(
    bytes(_rule(identifier, packet_type) for identifier in range(IDENTIFIERS)) for packet_type in range(16)
)
NAMES: Final[tuple[str, ...]] = tuple(
    PROPERTIES[identifier].name if identifier in PROPERTIES else "" for identifier in range(IDENTIFIERS)
)

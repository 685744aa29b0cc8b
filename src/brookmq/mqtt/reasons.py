"""Reason codes of MQTT 5, the one set of codes that BrookMQ uses inside, whatever version the client speaks.

For a client of MQTT 3 a code is mapped at the last moment, when the packet is encoded. Codes below 0x80 say that it
worked. [section 2.4]
"""

from __future__ import annotations

from typing import Final, NamedTuple

from brookmq.mqtt.packet_types import (
    AUTH,
    CONNACK,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
)

SUCCESS: Final = 0x00
NORMAL_DISCONNECTION: Final = 0x00
GRANTED_QOS_0: Final = 0x00
GRANTED_QOS_1: Final = 0x01
GRANTED_QOS_2: Final = 0x02
DISCONNECT_WITH_WILL_MESSAGE: Final = 0x04
NO_MATCHING_SUBSCRIBERS: Final = 0x10
NO_SUBSCRIPTION_EXISTED: Final = 0x11
CONTINUE_AUTHENTICATION: Final = 0x18
RE_AUTHENTICATE: Final = 0x19
UNSPECIFIED_ERROR: Final = 0x80
MALFORMED_PACKET: Final = 0x81
PROTOCOL_ERROR: Final = 0x82
IMPLEMENTATION_SPECIFIC_ERROR: Final = 0x83
UNSUPPORTED_PROTOCOL_VERSION: Final = 0x84
CLIENT_IDENTIFIER_NOT_VALID: Final = 0x85
BAD_USER_NAME_OR_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
SERVER_UNAVAILABLE: Final = 0x88
SERVER_BUSY: Final = 0x89
BANNED: Final = 0x8A
SERVER_SHUTTING_DOWN: Final = 0x8B
BAD_AUTHENTICATION_METHOD: Final = 0x8C
KEEP_ALIVE_TIMEOUT: Final = 0x8D
SESSION_TAKEN_OVER: Final = 0x8E
TOPIC_FILTER_INVALID: Final = 0x8F
TOPIC_NAME_INVALID: Final = 0x90
PACKET_IDENTIFIER_IN_USE: Final = 0x91
PACKET_IDENTIFIER_NOT_FOUND: Final = 0x92
RECEIVE_MAXIMUM_EXCEEDED: Final = 0x93
TOPIC_ALIAS_INVALID: Final = 0x94
PACKET_TOO_LARGE: Final = 0x95
MESSAGE_RATE_TOO_HIGH: Final = 0x96
QUOTA_EXCEEDED: Final = 0x97
ADMINISTRATIVE_ACTION: Final = 0x98
PAYLOAD_FORMAT_INVALID: Final = 0x99
RETAIN_NOT_SUPPORTED: Final = 0x9A
QOS_NOT_SUPPORTED: Final = 0x9B
USE_ANOTHER_SERVER: Final = 0x9C
SERVER_MOVED: Final = 0x9D
SHARED_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0x9E
CONNECTION_RATE_EXCEEDED: Final = 0x9F
MAXIMUM_CONNECT_TIME: Final = 0xA0
SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED: Final = 0xA1
WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: Final = 0xA2


class Reason(NamedTuple):
    """One row of the table: the name of a code, and the types of the packets that may carry it."""

    name: str
    packets: frozenset[int]


def _row(name: str, *packets: int) -> Reason:
    return Reason(name, frozenset(packets))


REASONS: Final[dict[int, Reason]] = {
    0x00: _row("Success", CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH),
    0x01: _row("Granted QoS 1", SUBACK),
    0x02: _row("Granted QoS 2", SUBACK),
    0x04: _row("Disconnect with Will Message", DISCONNECT),
    0x10: _row("No matching subscribers", PUBACK, PUBREC),
    0x11: _row("No subscription existed", UNSUBACK),
    0x18: _row("Continue authentication", AUTH),
    0x19: _row("Re-authenticate", AUTH),
    0x80: _row("Unspecified error", CONNACK, PUBACK, PUBREC, SUBACK, UNSUBACK, DISCONNECT),
    0x81: _row("Malformed Packet", CONNACK, DISCONNECT),
    0x82: _row("Protocol Error", CONNACK, DISCONNECT),
    0x83: _row("Implementation specific error", CONNACK, PUBACK, PUBREC, SUBACK, UNSUBACK, DISCONNECT),
    0x84: _row("Unsupported Protocol Version", CONNACK),
    0x85: _row("Client Identifier not valid", CONNACK),
    0x86: _row("Bad User Name or Password", CONNACK),
    0x87: _row("Not authorized", CONNACK, PUBACK, PUBREC, SUBACK, UNSUBACK, DISCONNECT),
    0x88: _row("Server unavailable", CONNACK),
    0x89: _row("Server busy", CONNACK, DISCONNECT),
    0x8A: _row("Banned", CONNACK),
    0x8B: _row("Server shutting down", DISCONNECT),
    0x8C: _row("Bad authentication method", CONNACK, DISCONNECT),
    0x8D: _row("Keep Alive timeout", DISCONNECT),
    0x8E: _row("Session taken over", DISCONNECT),
    0x8F: _row("Topic Filter invalid", SUBACK, UNSUBACK, DISCONNECT),
    0x90: _row("Topic Name invalid", CONNACK, PUBACK, PUBREC, DISCONNECT),
    0x91: _row("Packet Identifier in use", PUBACK, PUBREC, SUBACK, UNSUBACK),
    0x92: _row("Packet Identifier not found", PUBREL, PUBCOMP),
    0x93: _row("Receive Maximum exceeded", DISCONNECT),
    0x94: _row("Topic Alias invalid", DISCONNECT),
    0x95: _row("Packet too large", CONNACK, DISCONNECT),
    0x96: _row("Message rate too high", DISCONNECT),
    0x97: _row("Quota exceeded", CONNACK, PUBACK, PUBREC, SUBACK, DISCONNECT),
    0x98: _row("Administrative action", DISCONNECT),
    0x99: _row("Payload format invalid", CONNACK, PUBACK, PUBREC, DISCONNECT),
    0x9A: _row("Retain not supported", CONNACK, DISCONNECT),
    0x9B: _row("QoS not supported", CONNACK, DISCONNECT),
    0x9C: _row("Use another server", CONNACK, DISCONNECT),
    0x9D: _row("Server moved", CONNACK, DISCONNECT),
    0x9E: _row("Shared Subscriptions not supported", SUBACK, DISCONNECT),
    0x9F: _row("Connection rate exceeded", CONNACK, DISCONNECT),
    0xA0: _row("Maximum connect time", DISCONNECT),
    0xA1: _row("Subscription Identifiers not supported", SUBACK, DISCONNECT),
    0xA2: _row("Wildcard Subscriptions not supported", SUBACK, DISCONNECT),
}

# The codes of each packet type, for the decoder: ``code in ALLOWED[packet_type]``.
ALLOWED: Final[tuple[frozenset[int], ...]] = tuple(
    frozenset(code for code, reason in REASONS.items() if packet_type in reason.packets) for packet_type in range(16)
)


def name_of(reason: int) -> str:
    """The specification's name of a code, for logs and for people."""
    row = REASONS.get(reason)
    return row.name if row is not None else f"0x{reason:02X}"


# CONNACK return codes of MQTT 3.1 and 3.1.1 [section 3.2.2.3 there]
V3_ACCEPTED: Final = 0
V3_UNACCEPTABLE_PROTOCOL_VERSION: Final = 1
V3_IDENTIFIER_REJECTED: Final = 2
V3_SERVER_UNAVAILABLE: Final = 3
V3_BAD_USER_NAME_OR_PASSWORD: Final = 4
V3_NOT_AUTHORIZED: Final = 5

_TO_V3: Final = {
    SUCCESS: V3_ACCEPTED,
    UNSUPPORTED_PROTOCOL_VERSION: V3_UNACCEPTABLE_PROTOCOL_VERSION,
    CLIENT_IDENTIFIER_NOT_VALID: V3_IDENTIFIER_REJECTED,
    BAD_USER_NAME_OR_PASSWORD: V3_BAD_USER_NAME_OR_PASSWORD,
    BAD_AUTHENTICATION_METHOD: V3_BAD_USER_NAME_OR_PASSWORD,
    NOT_AUTHORIZED: V3_NOT_AUTHORIZED,
    BANNED: V3_NOT_AUTHORIZED,
}

_FROM_V3: Final = (
    SUCCESS,
    UNSUPPORTED_PROTOCOL_VERSION,
    CLIENT_IDENTIFIER_NOT_VALID,
    SERVER_UNAVAILABLE,
    BAD_USER_NAME_OR_PASSWORD,
    NOT_AUTHORIZED,
)


CONNACK_V3: Final = frozenset(_TO_V3) | {
    SERVER_UNAVAILABLE, SERVER_BUSY, QUOTA_EXCEEDED, USE_ANOTHER_SERVER, SERVER_MOVED, CONNECTION_RATE_EXCEEDED
}  # fmt: skip
"""Refusals that an MQTT 3 client is told. After any other error the connection is closed without a CONNACK."""


def connack_v3(reason: int) -> int:
    """The CONNACK return code that an MQTT 3 client is told. What has no code of its own there is "server unavailable":
    the client may come back later, which is the mildest of the refusals."""
    return _TO_V3.get(reason, V3_SERVER_UNAVAILABLE)


def reason_of_connack_v3(code: int) -> int | None:
    """The reason code for a CONNACK return code of an MQTT 3 server; None for one that does not exist."""
    return _FROM_V3[code] if 0 <= code < len(_FROM_V3) else None

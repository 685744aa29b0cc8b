"""The control packets as plain values: what `codec.decode` returns and `codec.encode` takes. [chapter 3]

Topic names and payloads are bytes, as everywhere on the way of a message; client identifiers, user names and topic
filters are text. Reason codes are those of MQTT 5 in every version. A packet of MQTT 3 has an empty set of properties.
"""

from __future__ import annotations

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
    PUBREC,
    PUBREL,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
)
from brookmq.mqtt.properties import Properties

__all__ = [
    "AUTH",
    "CONNACK",
    "CONNECT",
    "DISCONNECT",
    "PACKET_NAMES",
    "PINGREQ",
    "PINGRESP",
    "PUBACK",
    "PUBCOMP",
    "PUBLISH",
    "PUBREC",
    "PUBREL",
    "SUBACK",
    "SUBSCRIBE",
    "UNSUBACK",
    "UNSUBSCRIBE",
    "Ack",
    "Auth",
    "Connack",
    "Connect",
    "Disconnect",
    "Packet",
    "Pingreq",
    "Pingresp",
    "Publish",
    "Suback",
    "Subscribe",
    "SubscriptionRequest",
    "Unsuback",
    "Unsubscribe",
    "Will",
]


class Packet:
    """What all have in common: equal when all fields are, and readable."""

    __slots__ = ()

    def fields(self) -> dict[str, object]:
        """Every field by name."""
        names: tuple[str, ...] = self.__slots__
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Packet):
            return NotImplemented
        return type(self) is type(other) and self.fields() == other.fields()

    __hash__ = None  # type: ignore[assignment]  # it can change

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.fields().items())})"


class Will(Packet):
    """The message that the server publishes when the connection ends otherwise than agreed; a part of CONNECT."""

    __slots__ = ("delay", "payload", "properties", "qos", "retain", "topic")

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        properties: Properties | None = None,
        delay: int = 0,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = Properties() if properties is None else properties
        self.delay = delay  # seconds: the will delay interval, which is what is encoded


class Connect(Packet):
    """``version`` is 3 (MQTT 3.1), 4 (3.1.1) or 5; ``clean_start`` is what MQTT 3 calls clean session."""

    __slots__ = ("clean_start", "client_id", "keep_alive", "password", "properties", "username", "version", "will")

    def __init__(
        self,
        version: int,
        client_id: str,
        clean_start: bool = True,
        keep_alive: int = 0,
        username: str | None = None,
        password: bytes | None = None,
        will: Will | None = None,
        properties: Properties | None = None,
    ) -> None:
        self.version = version
        self.client_id = client_id
        self.clean_start = clean_start
        self.keep_alive = keep_alive  # seconds, 0 = none
        self.username = username
        self.password = password
        self.will = will
        self.properties = Properties() if properties is None else properties


class Connack(Packet):
    __slots__ = ("properties", "reason", "session_present")

    def __init__(self, session_present: bool, reason: int, properties: Properties | None = None) -> None:
        self.session_present = session_present
        self.reason = reason
        self.properties = Properties() if properties is None else properties


class Publish(Packet):
    """``packet_id`` is 0 at QoS 0. ``topic`` is empty where a topic alias stands for it."""

    __slots__ = ("dup", "packet_id", "payload", "properties", "qos", "retain", "topic")

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        dup: bool = False,
        packet_id: int = 0,
        properties: Properties | None = None,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.dup = dup
        self.packet_id = packet_id
        self.properties = Properties() if properties is None else properties


class Ack(Packet):
    """PUBACK, PUBREC, PUBREL or PUBCOMP: ``type`` says which."""

    __slots__ = ("packet_id", "properties", "reason", "type")

    def __init__(self, type: int, packet_id: int, reason: int = 0, properties: Properties | None = None) -> None:
        self.type = type
        self.packet_id = packet_id
        self.reason = reason
        self.properties = Properties() if properties is None else properties


class SubscriptionRequest(Packet):
    """One topic filter of a SUBSCRIBE with its options; the options other than the QoS are those of MQTT 5."""

    __slots__ = ("filter", "no_local", "qos", "retain_as_published", "retain_handling")

    def __init__(
        self,
        filter: str,
        qos: int = 0,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
    ) -> None:
        self.filter = filter
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.retain_handling = retain_handling


class Subscribe(Packet):
    __slots__ = ("packet_id", "properties", "subscriptions")

    def __init__(
        self, packet_id: int, subscriptions: list[SubscriptionRequest], properties: Properties | None = None
    ) -> None:
        self.packet_id = packet_id
        self.subscriptions = subscriptions
        self.properties = Properties() if properties is None else properties


class Suback(Packet):
    """``reasons`` has one code for each filter of the SUBSCRIBE, in its order. [MQTT-3.9.3-1]"""

    __slots__ = ("packet_id", "properties", "reasons")

    def __init__(self, packet_id: int, reasons: list[int], properties: Properties | None = None) -> None:
        self.packet_id = packet_id
        self.reasons = reasons
        self.properties = Properties() if properties is None else properties


class Unsubscribe(Packet):
    __slots__ = ("filters", "packet_id", "properties")

    def __init__(self, packet_id: int, filters: list[str], properties: Properties | None = None) -> None:
        self.packet_id = packet_id
        self.filters = filters
        self.properties = Properties() if properties is None else properties


class Unsuback(Packet):
    """``reasons`` has one code for each filter of the UNSUBSCRIBE; in MQTT 3 there are none."""

    __slots__ = ("packet_id", "properties", "reasons")

    def __init__(self, packet_id: int, reasons: list[int], properties: Properties | None = None) -> None:
        self.packet_id = packet_id
        self.reasons = reasons
        self.properties = Properties() if properties is None else properties


class Disconnect(Packet):
    __slots__ = ("properties", "reason")

    def __init__(self, reason: int = 0, properties: Properties | None = None) -> None:
        self.reason = reason
        self.properties = Properties() if properties is None else properties


class Auth(Packet):
    __slots__ = ("properties", "reason")

    def __init__(self, reason: int = 0, properties: Properties | None = None) -> None:
        self.reason = reason
        self.properties = Properties() if properties is None else properties


class Pingreq(Packet):
    __slots__ = ()


class Pingresp(Packet):
    __slots__ = ()

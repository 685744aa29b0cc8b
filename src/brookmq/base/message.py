"""An application message, as everything behind the wire sees it.

One object per published message, shared by all who receive it: nobody changes it. What differs per receiver (granted
QoS, subscription identifiers, retain flag, remaining time) is worked out when it is encoded for that receiver.
"""

from __future__ import annotations


class Message:
    """``properties`` are the MQTT 5 properties that a server forwards unaltered, encoded and in their order, without
    the
    length in front: payload format, content type, response topic, correlation data and user properties. Topic alias and
    subscription identifier never stand there, and neither does the message expiry: it is ``expires_at``.
    """

    __slots__ = (
        "client_id", "expires_at", "payload", "properties", "published_at", "qos", "retain", "topic", "username"
    )  # fmt: skip

    def __init__(
        self,
        topic: bytes,
        payload: bytes,
        qos: int,
        retain: bool = False,
        properties: bytes = b"",
        expires_at: float = 0.0,
        published_at: float = 0.0,
        client_id: str = "",
        username: str | None = None,
    ) -> None:
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
        self.expires_at = expires_at  # unix seconds, 0.0 = never
        self.published_at = published_at  # unix seconds at which its first node took it
        self.client_id = client_id  # of the publisher, "" when the node itself published it
        self.username = username

    def size(self) -> int:
        """What it counts for in limits by bytes: everything of variable length."""
        return len(self.topic) + len(self.payload) + len(self.properties)

    def expired(self, now: float) -> bool:
        """True when its message expiry interval has passed. [MQTT-3.3.2-5]"""
        return self.expires_at != 0.0 and now >= self.expires_at

    def __repr__(self) -> str:
        return f"Message({self.topic!r}, {len(self.payload)} bytes, qos={self.qos}, retain={self.retain})"

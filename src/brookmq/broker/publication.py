"""Messages on their way: as they came from a publisher, and as one of those who get them has them."""

from __future__ import annotations

from brookmq.base.message import Message
from brookmq.mqtt.kernel import Run


class Publication:
    """A run on its way, with its messages as objects for those who keep them: made when first needed, shared by all."""

    __slots__ = ("client_id", "messages", "now", "run", "topic", "username")

    def __init__(self) -> None:
        self.run = Run()
        self.topic = b""
        self.client_id = ""
        self.username: str | None = None
        self.now = 0.0
        self.messages: list[Message | None] | None = None

    def message(self, index: int) -> Message:
        if self.messages is None:
            self.messages = [None] * self.run.count
        message = self.messages[index]
        if message is None:
            run = self.run
            message = Message(
                self.topic, run.payload(index), run.qos, False, b"", 0.0, self.now, self.client_id, self.username
            )
            self.messages[index] = message
        return message


class Delivery:
    """One message for one session, as it waits in the queue, is held until it is acknowledged, or is judged."""

    __slots__ = ("again", "dup", "group", "identifiers", "message", "packet_id", "qos", "retain")

    def __init__(
        self, message: Message, qos: int, retain: bool, identifiers: bytes, group: object, packet_id: int = 0
    ) -> None:
        self.message = message
        self.qos = qos
        self.retain = retain
        self.identifiers = identifiers
        self.group = group  # the shared group it came through: another member may get it when this one leaves
        self.packet_id = packet_id  # its place in the window, when it has one already
        self.dup = False  # the client may have it
        self.again = False  # its place in the window is written down

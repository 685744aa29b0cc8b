"""What a numbered message looks like on the wire, so that the receiver can tell whether it is still the same.

Payloads differ in size, most are small. On topics with a level ``v5`` some have properties as well, which the node has
to keep.
"""

from __future__ import annotations

from tests.faults.durability.history import Message
from tests.harness.received import Packet
from tests.harness.wire import Properties, Property

LARGE_EVERY = 53
LARGE_BYTES = 9_000
PROPERTIES_EVERY = 4
CARRIED = {Property.USER_PROPERTY, Property.CONTENT_TYPE, Property.CORRELATION_DATA}


def payload_of(message: Message) -> bytes:
    """The number, and a filling that depends on topic and number."""
    size = LARGE_BYTES if message.number % LARGE_EVERY == 0 else message.number * 37 % 150
    text = f"{message.topic}#{message.number};"
    return f"{message.number} {text * (size // len(text) + 1)}".encode()


def properties_of(message: Message) -> Properties:
    """The properties of a message, none for most."""
    if "/v5/" not in message.topic or message.number % PROPERTIES_EVERY:
        return ()
    return (
        (Property.CONTENT_TYPE, "text/plain"),
        (Property.CORRELATION_DATA, message.number.to_bytes(4, "big")),
        (Property.USER_PROPERTY, ("number", str(message.number))),
        (Property.USER_PROPERTY, ("ü", "")),
    )


def message_in(packet: Packet) -> Message | None:
    """The message in a PUBLISH, None if it is none of ours."""
    number = packet.payload.partition(b" ")[0]
    return Message(packet.topic.decode(), int(number)) if number.isdigit() else None


def damage(packet: Packet, message: Message, version: int) -> str:
    """What is wrong with a message; nothing if it came as it was published."""
    if packet.payload != payload_of(message):
        return f"number {message.number} has another payload, of {len(packet.payload)} bytes"
    came = [(name, value) for name, value in packet.properties if name in CARRIED]
    if version == 5 and sorted(came, key=str) != sorted(properties_of(message), key=str):
        return f"number {message.number} came with the properties {came}"
    return ""

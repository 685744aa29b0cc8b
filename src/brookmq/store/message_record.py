"""A message as it is kept by value: retained, delayed, as a will, or in a session's window when no journal has it.

| bytes | field        |                                                                             |
|-------|--------------|-----------------------------------------------------------------------------|
| 1     | format       | 1                                                                           |
| 1     | flags        | QoS in the two lowest bits, 4 retain, 8 a user name follows                 |
| 8     | expires_at   | unix seconds as a double, 0.0 never                                         |
| 8     | published_at | the same                                                                    |
| 16    | lengths      | four bytes each: of topic, properties, client id, user name                 |
|       |              | these four in their order, then the payload up to the end                   |

Lengths have four bytes where MQTT has two: a mount point in front makes a topic longer than what a client may send.
Properties are kept as they are in ``Message``: encoded, in their order, without those that a server works out anew.
"""

from __future__ import annotations

import struct
from typing import Final

from brookmq.base.message import Message
from brookmq.store.errors import BadRecord

FORMAT: Final = 1
_RETAIN: Final = 4
_NAMED: Final = 8
_HEAD: Final = struct.Struct(">BBddIIII")
_HEAD_BYTES: Final = _HEAD.size


def encode_message(message: Message) -> bytes:
    """The bytes of a message."""
    client_id = message.client_id.encode()
    username = message.username
    name = b"" if username is None else username.encode()
    flags = message.qos | (_RETAIN if message.retain else 0) | (0 if username is None else _NAMED)
    head = _HEAD.pack(
        FORMAT,
        flags,
        message.expires_at,
        message.published_at,
        len(message.topic),
        len(message.properties),
        len(client_id),
        len(name),
    )
    return b"".join((head, message.topic, message.properties, client_id, name, message.payload))


def decode_message(body: bytes) -> Message:
    """The message of these bytes; BadRecord when they are none, or of a newer format."""
    if body[:1] != b"\x01":
        found = f"format {body[0]}" if body else "no format number"
        raise BadRecord(f"a kept message has {found}, which is not known here ({FORMAT} is)")
    try:
        _, flags, expires_at, published_at, topic, properties, client_id, name = _HEAD.unpack_from(body)
        properties_at = _HEAD_BYTES + topic
        client_id_at = properties_at + properties
        name_at = client_id_at + client_id
        payload_at = name_at + name
        if payload_at > len(body):
            raise BadRecord(f"a kept message has {len(body)} bytes, its names alone take {payload_at}")
        return Message(
            body[_HEAD_BYTES:properties_at],
            body[payload_at:],
            flags & 3,
            bool(flags & _RETAIN),
            body[properties_at:client_id_at],
            expires_at,
            published_at,
            body[client_id_at:name_at].decode(),
            body[name_at:payload_at].decode() if flags & _NAMED else None,
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise BadRecord(f"a kept message of {len(body)} bytes can't be read: {error}") from None

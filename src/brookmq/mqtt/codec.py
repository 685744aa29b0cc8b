"""The codec: packets of MQTT 3.1, 3.1.1 and 5.0, from bytes and to bytes, whoever sends them.

No socket, no clock, no state: `decode` takes one whole packet, `encode` gives one. Finding where a packet ends in a
stream of bytes is `kernel.frame`'s. Which side may send a packet, and when, is the channel's.
"""

from __future__ import annotations

from brookmq.mqtt.decoding import decode
from brookmq.mqtt.encoding import (
    PINGREQ_BYTES,
    PINGRESP_BYTES,
    encode,
    encode_ack,
    encode_connack,
    encode_disconnect,
    encode_suback,
    encode_unsuback,
)
from brookmq.mqtt.errors import PacketError

__all__ = [
    "PINGREQ_BYTES",
    "PINGRESP_BYTES",
    "PacketError",
    "decode",
    "encode",
    "encode_ack",
    "encode_connack",
    "encode_disconnect",
    "encode_suback",
    "encode_unsuback",
]

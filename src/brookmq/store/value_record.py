"""Values in the table "retained": retained messages by topic, delayed messages by number.

| key                     | state                                          |
|-------------------------|------------------------------------------------|
| ``r`` + topic           | the message (``message_record``)               |
| ``d`` + number, 8 bytes | format 1, when it is due (a double), the message |
| nothing (the table's own) | format 1, the number up to which numbers of delayed messages are given away |

A change is its format number (1) and its kind: SET with the state, or DELETED. Both are assignments.
"""

from __future__ import annotations

import struct
from typing import Final

from brookmq.base.message import Message
from brookmq.store.errors import BadRecord
from brookmq.store.message_record import decode_message, encode_message

RETAINED_KEY: Final = b"r"
DELAYED_KEY: Final = b"d"
SET: Final = b"\x01\x01"
DELETED: Final = b"\x01\x02"

_DELAYED: Final = struct.Struct(">Bd")
_NUMBERS: Final = struct.Struct(">BQ")


def retained_key(topic: bytes) -> bytes:
    """The key of a topic's retained message."""
    return RETAINED_KEY + topic


def delayed_key(number: int) -> bytes:
    """The key of a delayed message."""
    return DELAYED_KEY + number.to_bytes(8, "big")


def delayed_number(key: bytes) -> int:
    """The number in such a key."""
    return int.from_bytes(key[1:], "big")


def encode_delayed(due: float, message: Message) -> bytes:
    """A delayed message as a state."""
    return _DELAYED.pack(1, due) + encode_message(message)


def decode_delayed(state: bytes) -> tuple[float, Message]:
    """When it is due, and the message."""
    if state[:1] != b"\x01" or len(state) < _DELAYED.size:
        raise BadRecord(f"a delayed message has {_format(state)}, which is not known here (1 is)")
    return _DELAYED.unpack_from(state)[1], decode_message(state[_DELAYED.size :])


def encode_numbers(given: int) -> bytes:
    """Numbers of delayed messages up to this one are given away."""
    return _NUMBERS.pack(1, given)


def decode_numbers(state: bytes) -> int:
    """The same, read; 0 from an empty state."""
    if not state:
        return 0
    if state[:1] != b"\x01" or len(state) != _NUMBERS.size:
        raise BadRecord(f"the numbers of delayed messages have {_format(state)}, which is not known here (1 is)")
    return int(_NUMBERS.unpack(state)[1])


def state_after(op: bytes) -> bytes | None:
    """The state that a change makes; None: the key is gone."""
    if op[:2] == SET:
        return op[2:]
    if op != DELETED:
        raise BadRecord(f"a change of a value begins with {op[:2].hex(' ') or 'nothing'}, which is not known here")
    return None


def _format(state: bytes) -> str:
    return f"format {state[0]} and {len(state)} bytes" if state else "no format number"

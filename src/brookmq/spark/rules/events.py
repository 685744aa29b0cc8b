"""The events of a broker and the columns that rules find in them: ``FROM "$events/client_online"``.

An event is a message with a JSON object as its payload; here are the fields that every event of a name has, with their
types, so that a rule names them like columns.
"""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules.types import INTEGER, TEXT, TIMESTAMP, Type

EVENT_PREFIX: Final = "$events/"

_CLIENT: Final[dict[str, Type]] = {
    "client_id": TEXT,
    "username": TEXT,
    "address": TEXT,
    "protocol_version": INTEGER,
    "listener": TEXT,
    "node": TEXT,
    "at": TIMESTAMP,
}

EVENTS: Final[dict[str, dict[str, Type]]] = {
    "client_online": _CLIENT,
    "client_off": _CLIENT | {"reason": INTEGER},
    "session_created": _CLIENT,
    "session_resumed": _CLIENT,
    "session_ended": _CLIENT | {"reason": INTEGER},
    "subscribe": _CLIENT | {"filter": TEXT, "qos": INTEGER},
    "unsubscribe": _CLIENT | {"filter": TEXT},
    "message_dropped": _CLIENT | {"topic": TEXT, "qos": INTEGER, "why": TEXT},
    "registered": _CLIENT,
    "unregistered": _CLIENT,
}

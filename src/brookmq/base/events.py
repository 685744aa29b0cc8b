"""The events of a node: one list of names with their columns, for topics, rules and the guide.

An event is published as a message to ``$events/NAME``, its payload a JSON object with the columns below. All of them
have the columns in ``COMMON``. Wildcards in front do not match these topics [MQTT-4.7.2-1]: who wants them asks for
``$events/#``, and so does ``journal.capture``. A new column may be added; none is ever taken away or changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

PREFIX: Final = "$events/"
PREFIX_BYTES: Final = PREFIX.encode()

ColumnType = Literal["string", "int", "bigint", "double"]  # as SQL has them


class Event(NamedTuple):
    """``point`` is the hook point that tells of it; empty where there is none."""

    about: str
    columns: Mapping[str, ColumnType]
    point: str = ""


COMMON: Final[Mapping[str, ColumnType]] = {
    "event": "string",  # its name
    "at": "double",  # unix seconds
    "node": "string",
}

CLIENT: Final[Mapping[str, ColumnType]] = {
    "client_id": "string",
    "username": "string",  # null where there is none
    "address": "string",
    "listener": "string",
    "protocol_version": "int",  # 3 (MQTT 3.1), 4 (3.1.1), 5
}

ENDING: Final[Mapping[str, ColumnType]] = {**CLIENT, "reason": "int"}  # an MQTT 5 reason code
SUBSCRIPTION: Final[Mapping[str, ColumnType]] = {**CLIENT, "filter": "string"}

EVENTS: Final[Mapping[str, Event]] = {
    "client_online": Event("A client has connected", CLIENT, "client_online"),
    "client_offline": Event("The connection of a client has ended", ENDING, "client_off"),
    "session_created": Event("A client has connected and has a new session", CLIENT, "session_created"),
    "session_resumed": Event("A client has connected and goes on with its session", CLIENT, "session_resumed"),
    "session_ended": Event("A session has ended, with all that was kept for it", ENDING, "session_ended"),
    "subscribed": Event("A client has subscribed", {**SUBSCRIPTION, "qos": "int"}, "subscribe"),
    "unsubscribed": Event("A client has unsubscribed", SUBSCRIPTION, "unsubscribe"),
    "message_dropped": Event(
        "Messages were dropped, for one reason, since this was told last (at most once a second)",
        {"reason": "string", "count": "bigint"},
    ),
}


def columns_of(name: str) -> dict[str, ColumnType]:
    """All columns of an event, in order."""
    return {**COMMON, **EVENTS[name].columns}


def topic_of(name: str) -> bytes:
    """Where an event is published."""
    return PREFIX_BYTES + name.encode()

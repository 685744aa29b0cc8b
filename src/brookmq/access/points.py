"""The hook points: what a hook is given and what it may answer.

| point | arguments | answers | when the hook fails |
|---|---|---|---|
| ``connect`` | Credentials | ``Deny`` refuses, anything else goes on | refused, 0x88 |
| ``authenticate`` | Credentials | ``Allow`` or ``Deny`` decides, ``IGNORE`` asks the next | refused, 0x88 |
| ``authorize`` | ClientInfo, Access | ``Allow`` or ``Deny`` decides, ``IGNORE`` asks the next | refused, 0x87 |
| ``publish`` | ClientInfo, Message | a Message, ``None`` (unchanged) or ``DROP`` | goes on unchanged |
| ``deliver`` | ClientInfo of the receiver, Message | a Message, ``None`` (unchanged) or ``DROP`` | goes on unchanged |
| ``session_created``, ``session_resumed``, ``session_ended`` | ClientEvent | none | |
| ``client_online``, ``client_off`` | ClientEvent | none | |
| ``subscribe``, ``unsubscribe`` | SubscriptionEvent | none | |

Whoever guards something fails closed, whoever decorates fails open; ``refuse_on_error`` at registration changes it.
The last three rows are told what has happened, in order, and cannot change it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from brookmq.access.client_info import Certificate as Certificate  # noqa: PLC0414 - handed on to plugins
from brookmq.access.client_info import ClientInfo as ClientInfo  # noqa: PLC0414
from brookmq.base.message import Message

BAD_USER_NAME_OR_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
SERVER_UNAVAILABLE: Final = 0x88

_WAYS = re.compile(  # how a topic is reached
    r"^(?:\$delayed/[^/]*/|(?:\$share/[^/]*/|\$queue/)?(?:\$exclusive/|\$replay/(?:earliest|(?:time|offset)/[^/]*)/)?)"
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a CONNECT shows to prove who it comes from."""

    client: ClientInfo
    password: bytes | None = None
    method: str | None = None  # Authentication Method, MQTT 5
    data: bytes | None = None  # Authentication Data, MQTT 5
    clean_start: bool = True
    keep_alive: int = 0  # seconds


@dataclass(frozen=True, slots=True)
class Access:
    """What a client wants to do: publish to a topic name, or subscribe to a topic filter.

    ``topic`` is the one that it ends up at, without ``$share/GROUP/``, ``$queue/``, ``$exclusive/``, ``$replay/…/`` or
    ``$delayed/SECONDS/``: a rule about ``secret/#`` must not be got around by ``$share/any/secret/#``.
    """

    action: Literal["publish", "subscribe"]
    topic: str
    qos: int = 0
    retain: bool = False

    def __post_init__(self) -> None:
        if self.topic.startswith("$"):
            object.__setattr__(self, "topic", _WAYS.sub("", self.topic))


@dataclass(frozen=True, slots=True)
class Allow:
    """Yes."""

    superuser: bool = False  # authenticate: this client is never asked by authorize


@dataclass(frozen=True, slots=True)
class Deny:
    """No. ``reason`` is the MQTT 5 reason code that the client is told; ``message`` its reason string, if any."""

    reason: int = NOT_AUTHORIZED
    message: str = ""


class Ignore(Enum):
    """No opinion: the next one is asked."""

    IGNORE = "ignore"


class Drop(Enum):
    """The message goes no further."""

    DROP = "drop"


ALLOW: Final = Allow()
IGNORE: Final = Ignore.IGNORE
DROP: Final = Drop.DROP

Decision = Allow | Deny | Ignore
PublishAnswer = Message | Drop | None


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """Something happened to a client or its session. ``reason`` is the reason code of an end (0 otherwise)."""

    client: ClientInfo
    at: float  # unix seconds
    reason: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionEvent:
    """A client subscribed (with the granted ``qos``) or unsubscribed."""

    client: ClientInfo
    filter: str
    at: float  # unix seconds
    qos: int = 0


DecidePoint = Literal["connect", "authenticate"]
MessagePoint = Literal["publish", "deliver"]
ClientPoint = Literal["session_created", "session_resumed", "session_ended", "client_online", "client_off"]
SubscriptionPoint = Literal["subscribe", "unsubscribe"]
Point = DecidePoint | Literal["authorize"] | MessagePoint | ClientPoint | SubscriptionPoint

AuthenticateHook = Callable[[Credentials], Decision | Awaitable[Decision]]
AuthorizeHook = Callable[[ClientInfo, Access], Decision | Awaitable[Decision]]
MessageHook = Callable[[ClientInfo, Message], PublishAnswer | Awaitable[PublishAnswer]]
ClientHook = Callable[[ClientEvent], Awaitable[None] | None]
SubscriptionHook = Callable[[SubscriptionEvent], Awaitable[None] | None]

DECIDE_POINTS: Final = ("connect", "authenticate", "authorize")
MESSAGE_POINTS: Final = ("publish", "deliver")
EVENT_POINTS: Final = (
    "session_created",
    "session_resumed",
    "session_ended",
    "client_online",
    "client_off",
    "subscribe",
    "unsubscribe",
)
POINTS: Final = (*DECIDE_POINTS, *MESSAGE_POINTS, *EVENT_POINTS)
REFUSE_REASON: Final = {  # what a client is told when a hook that guards something fails
    "connect": SERVER_UNAVAILABLE,
    "authenticate": SERVER_UNAVAILABLE,
    "authorize": NOT_AUTHORIZED,
}

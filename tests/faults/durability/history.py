"""What the clients of a run saw, in the order in which they saw it: one process, one list, so one clock.

Events are past facts at the client's side of the wire. Nothing in here knows what the node should have done; that is
the checker's business.
"""

from __future__ import annotations

import time
from array import array
from pathlib import Path
from typing import NamedTuple


class Message(NamedTuple):
    """An application message: the numbers of a topic count up from 1, and only one client publishes to a topic."""

    topic: str
    number: int


class Connecting(NamedTuple):
    """A CONNECT is about to be sent. ``life`` counts the node's processes; ``will`` goes with the connection."""

    client: str
    connection: int
    life: int
    clean: bool
    kept: bool = True
    will: Message | None = None


class Connected(NamedTuple):
    """A CONNACK with success came."""

    client: str
    connection: int
    present: bool


class Closed(NamedTuple):
    """The connection is over. ``orderly``: a DISCONNECT was the last thing that the client sent."""

    client: str
    connection: int
    orderly: bool


class Subscribing(NamedTuple):
    """A SUBSCRIBE is about to be sent; ``group`` is empty for a subscription that is not shared."""

    client: str
    filter: str
    qos: int
    group: str = ""


class Subscribed(NamedTuple):
    """Its SUBACK came."""

    client: str
    filter: str
    group: str = ""


class Sent(NamedTuple):
    """A PUBLISH is about to be sent, for the first time or (``dup``) again."""

    client: str
    message: Message
    qos: int
    packet_id: int
    dup: bool = False


class Settled(NamedTuple):
    """The PUBACK or PUBREC of a message came; ``accepted`` is False for a reason code of 0x80 and above."""

    client: str
    message: Message
    accepted: bool = True


class Received(NamedTuple):
    """A PUBLISH came."""

    client: str
    connection: int
    message: Message
    qos: int
    packet_id: int
    dup: bool = False


class Answered(NamedTuple):
    """The PUBACK or PUBREC of a received message was sent."""

    client: str
    connection: int
    packet_id: int


class Released(NamedTuple):
    """A PUBREL came: the packet id is free for another message."""

    client: str
    connection: int
    packet_id: int


class Retained(NamedTuple):
    """What a new subscriber got as the retained message of a topic at the end; 0: none."""

    topic: str
    number: int


class Spoiled(NamedTuple):
    """A message came whose payload or properties are not the ones that were published."""

    client: str
    topic: str
    what: str


class Killed(NamedTuple):
    """A process was killed, or was found dead at a fault point."""

    life: int
    what: str


Event = (
    Connecting
    | Connected
    | Closed
    | Subscribing
    | Subscribed
    | Sent
    | Settled
    | Received
    | Answered
    | Released
    | Retained
    | Spoiled
    | Killed
)


class History:
    """The events of a run; ``times`` has when each was added, for people who read it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times = array("d")
        self._begin = time.monotonic()

    def add(self, event: Event) -> None:
        self.events.append(event)
        self.times.append(time.monotonic() - self._begin)

    def clear(self) -> None:
        """For the next chapter, of other clients."""
        self.events.clear()
        self.times = array("d")

    def write(self, path: Path) -> None:
        """One event a line."""
        lines = (f"{at:9.4f} {event}\n" for at, event in zip(self.times, self.events, strict=True))
        path.write_text("".join(lines))

    def about(self, message: Message | None, client: str = "") -> str:
        """The story of a message, and of a client's connections, for a failure's text."""

        def belongs(event: Event) -> bool:
            match event:
                case Killed():
                    return True
                case Sent() | Settled():
                    return event.message == message
                case Received():
                    return event.message == message and event.client == client
                case Connecting() | Connected() | Closed() | Subscribing() | Subscribed():
                    return event.client == client
                case _:
                    return False

        return "\n".join(
            f"{at:9.4f} {event}" for at, event in zip(self.times, self.events, strict=True) if belongs(event)
        )

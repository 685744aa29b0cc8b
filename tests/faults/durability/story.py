"""A history sorted by what it is about: messages, connections, and sessions with all that they received.

A session is a client id from one clean start to the next. Places (``first_sent``, ``granted_at``, …) are positions in
the history's list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.faults.durability.history import (
    Answered,
    Closed,
    Connected,
    Connecting,
    Event,
    Message,
    Received,
    Released,
    Sent,
    Settled,
    Subscribed,
    Subscribing,
)


class Duty(Enum):
    """What the node owes the subscribers of a message."""

    REQUIRED = auto()  # it was acknowledged, or is a will that has to be sent
    ALLOWED = auto()  # nobody knows whether the node took it
    FORBIDDEN = auto()  # a will whose connection ended with a DISCONNECT


@dataclass(slots=True)
class Published:
    """A message and what its publisher knows of it."""

    message: Message
    qos: int
    first_sent: int
    transmissions: int = 1
    settled_at: int | None = None
    duty: Duty = Duty.ALLOWED
    is_will: bool = False

    @property
    def copies_max(self) -> int:
        """How often it may be new to a session: at QoS 1 each transmission may become a message of its own."""
        return self.transmissions if self.qos == 1 else 1


@dataclass(slots=True)
class Connection:
    """One connection of a client."""

    client: str
    life: int
    clean: bool
    kept: bool
    will: Message | None
    begun_at: int
    accepted_at: int | None = None
    over_at: int | None = None
    orderly: bool = False


@dataclass(slots=True)
class Subscription:
    """A subscription of a session; not ``granted_at`` (yet): no SUBACK came."""

    filter: str
    qos: int
    group: str
    asked_at: int
    granted_at: int | None = None


@dataclass(slots=True)
class Reception:
    """A PUBLISH that a session got."""

    at: int
    message: Message
    qos: int
    packet_id: int
    dup: bool
    connection: int
    answered: bool = False


@dataclass(slots=True)
class Session:
    """A client id from one clean start to the next; ``lasts``: it was not ended by another clean start."""

    client: str
    subscriptions: list[Subscription] = field(default_factory=list)
    log: list[Reception | Released] = field(default_factory=list)  # in order
    lasts: bool = True
    unanswered: dict[int, Reception] = field(default_factory=dict)

    @property
    def receptions(self) -> Iterator[Reception]:
        return (entry for entry in self.log if isinstance(entry, Reception))

    @property
    def group(self) -> str:
        """The shared group that it is a member of; such sessions have no other subscription."""
        return self.subscriptions[0].group if self.subscriptions else ""


@dataclass(slots=True)
class Story:
    """All of a history."""

    published: dict[Message, Published] = field(default_factory=dict)
    connections: dict[int, Connection] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    strays: list[Message] = field(default_factory=list)  # received, and never sent by anybody

    def of(self, client: str) -> Session:
        """The present session of a client."""
        return next(session for session in reversed(self.sessions) if session.client == client)


def read(events: Sequence[Event]) -> Story:
    """Sort a history."""
    story = Story()
    present: dict[str, Session] = {}
    for at, event in enumerate(events):
        match event:
            case Connecting():
                _connecting(story, present, at, event)
            case Connected():
                story.connections[event.connection].accepted_at = at
            case Closed():
                story.connections[event.connection].over_at = at
                story.connections[event.connection].orderly = event.orderly
            case Sent():
                known = story.published.setdefault(event.message, Published(event.message, event.qos, at, 0))
                known.transmissions += 1
            case Settled():
                settled = story.published[event.message]
                settled.settled_at = at
                settled.duty = Duty.REQUIRED if event.accepted else Duty.ALLOWED
            case Subscribing():
                present[event.client].subscriptions.append(Subscription(event.filter, event.qos, event.group, at))
            case Subscribed():
                for subscription in present[event.client].subscriptions:
                    if (subscription.filter, subscription.group) == (event.filter, event.group):
                        subscription.granted_at = at if subscription.granted_at is None else subscription.granted_at
            case Received() | Answered() | Released():
                _reception(story, present[event.client], at, event)
            case _:
                pass
    for connection in story.connections.values():
        if connection.will is not None:
            story.published[connection.will].duty = _duty_of_will(story, connection)
    return story


def _connecting(story: Story, present: dict[str, Session], at: int, event: Connecting) -> None:
    story.connections[event.connection] = Connection(
        event.client, event.life, event.clean, event.kept, event.will, begun_at=at
    )
    if event.will is not None:
        story.published[event.will] = Published(event.will, 2, at, is_will=True)
    if event.clean and event.client in present:
        present.pop(event.client).lasts = False
    if event.client not in present:
        present[event.client] = Session(event.client)
        story.sessions.append(present[event.client])


def _reception(story: Story, session: Session, at: int, event: Received | Answered | Released) -> None:
    if isinstance(event, Released):
        session.log.append(event)
    elif isinstance(event, Answered):
        if event.packet_id in session.unanswered:
            session.unanswered.pop(event.packet_id).answered = True
    else:
        if event.message not in story.published:
            story.strays.append(event.message)
            return
        reception = Reception(at, event.message, event.qos, event.packet_id, event.dup, event.connection)
        session.log.append(reception)
        session.unanswered[event.packet_id] = reception


def _duty_of_will(story: Story, mine: Connection) -> Duty:
    """Required after a connection that was accepted and broke, not to be sent after one that ended with a DISCONNECT.

    Only a kept session's CONNACK waits for the store. That a transient one has a will, and that anyone has taken leave,
    is on its way there, and may be forgotten if the node dies first. It is sure once another kept session was accepted
    that began later: changes are stored in their order.
    """
    if mine.accepted_at is None or mine.over_at is None:
        return Duty.ALLOWED
    if mine.orderly:
        return Duty.FORBIDDEN if _stored_since(story, mine.over_at, mine.life) else Duty.ALLOWED
    sure = mine.kept or _stored_since(story, mine.accepted_at, mine.life)
    return Duty.REQUIRED if sure else Duty.ALLOWED


def _stored_since(story: Story, at: int, life: int) -> bool:
    return any(
        other.begun_at > at and other.life == life and other.kept and other.accepted_at is not None
        for other in story.connections.values()
    )


def matches(filter: str, topic: str) -> bool:
    """Whether a topic filter matches a topic name, both without `$`."""
    levels, names = filter.split("/"), topic.split("/")
    for place, level in enumerate(levels):
        if level == "#":
            return True
        if place == len(names) or level not in ("+", names[place]):
            return False
    return len(levels) == len(names)

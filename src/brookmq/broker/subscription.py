"""One subscription of one session, and what a session does with several that match the same topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.mqtt.publish import identifier_properties

if TYPE_CHECKING:
    from brookmq.broker.session import Session
    from brookmq.broker.shared import SharedGroup


class Subscription:
    """``filter`` is what the topic index holds: rewritten, mounted, without the ``$share/GROUP/`` in front."""

    __slots__ = (
        "counted",
        "ended",
        "filter",
        "group",
        "identifiers",
        "no_local",
        "plain",
        "properties",
        "qos",
        "replaying",
        "retain_as_published",
        "retain_handling",
        "session",
        "since",
    )

    def __init__(
        self,
        session: Session,
        filter: bytes,
        qos: int,
        no_local: bool = False,
        retain_as_published: bool = False,
        retain_handling: int = 0,
        identifiers: tuple[int, ...] = (),
        group: SharedGroup | None = None,
    ) -> None:
        self.session = session
        self.filter = filter
        self.qos = qos
        self.no_local = no_local
        self.retain_as_published = retain_as_published
        self.retain_handling = retain_handling
        self.identifiers = identifiers
        self.properties = identifier_properties(identifiers)  # the same, as they stand in a packet
        self.group = group
        self.since: list[int] | None = None  # per shard of the journal, the first offset that it holds for; None: all
        self.counted = False  # the index counts its filter as one that somebody away may want
        self.replaying = False  # the store has it as one whose retained messages are not all sent
        self.ended = False  # unsubscribed, replaced, or its session is over
        self.plain = not identifiers and not no_local  # a run can be handed on without looking at each message


def merged(first: Subscription, second: Subscription) -> Subscription:
    """What a session gets when both match: one copy, at the higher QoS, with the identifiers of both. [MQTT-3.3.4-2,
    -4]

    No Local holds back only what every matching subscription would hold back; retain as published wins where one asks.
    """
    both = Subscription(
        first.session,
        first.filter,
        max(first.qos, second.qos),
        first.no_local and second.no_local,
        first.retain_as_published or second.retain_as_published,
        0,
        first.identifiers + second.identifiers,
    )
    if first.since is not None and second.since is not None:
        both.since = [min(pair) for pair in zip(first.since, second.since, strict=True)]
    return both

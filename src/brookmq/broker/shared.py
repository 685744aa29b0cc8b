"""Shared subscriptions: of the members of a group, which one gets a message [MQTT-4.8.2].

Strategies
- ``round_robin``: one after the other. ``local`` is the same on one node (members on the publisher's node go first).
- ``random``: any.
- ``sticky``: a publisher's messages go to one member, picked at random, until that member is away or leaves.
- ``hash_client``, ``hash_topic``: by the publisher's client id or the topic, so that these stay in order.

A member whose client is away (``session.outlet`` is None) gets something only when no other member is there: it is
still in the group because its session outlives the connection, so it gets the message when it comes back.
"""

from __future__ import annotations

from collections.abc import Container
from random import Random
from typing import Any, Protocol
from zlib import crc32

from brookmq.base.errors import CallerError

ROUND_ROBIN = 0
RANDOM = 1
STICKY = 2
HASH_CLIENT = 3
HASH_TOPIC = 4

STRATEGIES = {
    "random": RANDOM,
    "round_robin": ROUND_ROBIN,
    "sticky": STICKY,
    "hash_client": HASH_CLIENT,
    "hash_topic": HASH_TOPIC,
    "local": ROUND_ROBIN,
}
STICKY_PUBLISHERS_MAX = 10_000  # publishers that one group remembers; the one known for longest is forgotten first


class Member(Protocol):
    """What a group asks of a member: a session with an outlet while its client is connected, and the granted QoS."""

    session: Any
    qos: int


class SharedGroup:
    """The members that share one filter under one name. ``filter`` is the one behind ``$share/NAME/``."""

    def __init__(self, name: str, topic_filter: str, strategy: str, random: Random) -> None:
        if strategy not in STRATEGIES:
            raise CallerError(f"shared subscription: no strategy {strategy!r}")
        self.name = name
        self.filter = topic_filter
        self.strategy = strategy
        self.members: list[Any] = []  # in the order in which they came
        self.kept_count = 0  # of these, members whose sessions are kept: then the group reads the journal
        self.reader: Any = None  # what reads it
        self._kind = STRATEGIES[strategy]
        self._random = random
        self._next = 0  # round robin: index of the member that is asked next; < len(members) unless there is none
        self._present: set[Any] = set()  # the same as members; for sticky
        self._stuck: dict[str, Any] = {}  # sticky: publisher's client id → member, which may have left meanwhile

    @property
    def remembered(self) -> int:
        """How many publishers a sticky group has given a member."""
        return len(self._stuck)

    def add(self, member: Any) -> None:
        """Add a member; one that is in the group already stays where it is."""
        if member not in self._present:
            self._present.add(member)
            self.members.append(member)

    def remove(self, member: Any) -> bool:
        """Take a member out; False when it is not in the group. The caller drops a group without members."""
        if member not in self._present:
            return False
        self._present.remove(member)
        index = self.members.index(member)
        del self.members[index]
        if index < self._next:
            self._next -= 1
        if self._next >= len(self.members):
            self._next = 0
        return True

    def pick(self, publisher_client_id: str, topic: bytes, exclude: Container[Any] = ()) -> Any | None:
        """The member that gets a message; None when there is none (left, apart from those in ``exclude``)."""
        count = len(self.members)
        if count == 0:
            return None
        if self._kind == ROUND_ROBIN:
            index = self._next
        elif self._kind == STICKY:
            return self._pick_sticky(publisher_client_id, exclude)
        elif self._kind == RANDOM:
            index = int(self._random.random() * count)
        elif self._kind == HASH_CLIENT:
            index = crc32(publisher_client_id.encode()) % count
        else:
            index = crc32(topic) % count
        member = self.members[index]
        if exclude or member.session.outlet is None:
            index = self._search(index, exclude)
            if index < 0:
                return None
            member = self.members[index]
        if self._kind == ROUND_ROBIN:
            self._next = index + 1 if index + 1 < count else 0
        return member

    def _pick_sticky(self, publisher_client_id: str, exclude: Container[Any]) -> Any | None:
        member = self._stuck.get(publisher_client_id)
        if (
            member is not None
            and member.session.outlet is not None
            and member in self._present
            and not (exclude and member in exclude)
        ):
            return member
        index = self._search(int(self._random.random() * len(self.members)), exclude)
        if index < 0:
            return None
        self._stuck.pop(publisher_client_id, None)
        if len(self._stuck) >= STICKY_PUBLISHERS_MAX:
            del self._stuck[next(iter(self._stuck))]
        self._stuck[publisher_client_id] = self.members[index]
        return self.members[index]

    def _search(self, start: int, exclude: Container[Any]) -> int:
        """Index of the first member from ``start`` on, round the group, whose client is there; else of the first."""
        members = self.members
        count = len(members)
        away = -1
        for step in range(count):
            index = start + step
            if index >= count:
                index -= count
            member = members[index]
            if exclude and member in exclude:
                continue
            if member.session.outlet is not None:
                return index
            if away < 0:
                away = index
        return away

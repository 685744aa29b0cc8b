"""PUBACK and PUBREC that wait for the store.

What a publisher sent is acknowledged when it is where it has to be: in the journal, in the table of retained messages,
in the session log. Each of these calls ``settle`` once. The acknowledgements of one connection go out in the order in
which its messages came [MQTT-4.6.0-2, -3], so one that is settled waits behind those that are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from brookmq.mqtt import reasons
from brookmq.store.session_state import position_of

if TYPE_CHECKING:
    from brookmq.broker.session import Session
    from brookmq.store.journal.group import Group

PUBREC_HEAD = 0x50


class Countdown:
    """What all tickets have. ``waits`` is how many of those that have to keep something have not settled it yet."""

    __slots__ = ("group", "ids", "reason", "shard", "waits")

    def __init__(self, ids: bytes, waits: int, reason: int = reasons.SUCCESS) -> None:
        self.ids = ids
        self.waits = waits
        self.reason = reason
        self.group: Group | None = None  # what the journal keeps
        self.shard = 0

    def is_last(self, reason: int) -> bool:
        """One less is waited for; True when none is left."""
        self.waits -= 1
        if reason >= 0x80:
            self.reason = reason
        return self.waits == 0


class Settlement(Countdown):
    """Of a message without a publisher who sends it again: a message of the HTTP API, and see ``Patient``."""

    __slots__ = ("settled",)

    def __init__(self, settled: Callable[[], None]) -> None:
        super().__init__(b"", 1)
        self.settled = settled

    def stored(self) -> None:
        """As ``settle``, for those who can only say that all is well."""
        self.count_down(reasons.SUCCESS)

    def settle(self, reason: int) -> None:
        """One of those that had to keep the message has done so, or could not (a reason from 0x80 on)."""
        self.count_down(reason)

    def count_down(self, reason: int) -> None:
        if self.is_last(reason):
            self.settled()


class Patient(Settlement):
    """Of a message whose publisher is not there (a will, a delayed message): nobody would send it again, so that it is
    given to the journal again, as often as that gives up. ``given_up`` is where the broker finds it."""

    __slots__ = ("given_up",)

    def __init__(self, settled: Callable[[], None], given_up: list[Patient]) -> None:
        super().__init__(settled)
        self.given_up = given_up

    def settle(self, reason: int) -> None:
        if reason >= 0x80 and self.group is not None:
            self.given_up.append(self)
        else:
            self.count_down(reason)


class Acknowledgement(Countdown):
    """For the messages of ``ids``, of one run or a single one."""

    __slots__ = ("channel", "followers", "head", "session", "size")

    def __init__(self, channel: Any, session: Session, head: int, ids: bytes, size: int, waits: int) -> None:
        super().__init__(ids, waits)
        self.channel = channel
        self.session = session
        self.head = head
        self.size = size  # bytes of the messages, for the bound of what one connection may have waiting
        self.followers: list[Acknowledgement] | None = None  # of repeats that came before the first was stored

    def stored(self) -> None:
        """As ``settle``, for those who can only say that all is well."""
        self.count_down(reasons.SUCCESS)

    def settle(self, reason: int) -> None:
        group = self.group
        if reason == 0 and group is not None and group.first >= 0 and self.head == PUBREC_HEAD and self.session.kept:
            # the journal has it, and progress may be written before the rest is settled
            self.session.opened(self.ids, position_of(self.shard, group.first))
        self.count_down(reason)

    def count_down(self, reason: int) -> None:
        if self.is_last(reason):
            self._done()

    def _done(self) -> None:
        if self.head == PUBREC_HEAD:
            self._note_answer()
        self.channel.settled()
        followers = self.followers
        if followers is not None:
            for follower in followers:
                follower.settle(self.reason if self.reason >= 0x80 else 0)

    def _note_answer(self) -> None:
        """The ids of a message that could not be kept are free again [MQTT-4.3.3-9], unless nobody knows: an append
        that has no answer yet may be stored, and a client that was told nothing (an older version of MQTT, or its
        connection is gone) sends again."""
        session, ids, group = self.session, self.ids, self.group
        told = session.version5 and session.channel is self.channel
        if self.reason < 0x80:
            session.stored_ids(ids)
        elif told or group is None or group.first < 0:
            if session.open_ids is not None:
                session.open_ids.release(ids)
            session.stored_ids(ids)
            if session.keeper is not None and group is not None and group.first >= 0:
                session.keeper.refused(session, ids, position_of(self.shard, group.first))
        elif session.kept:
            session.opened(ids, position_of(self.shard, group.first))  # a start that does not find it there drops it


Ticket = Settlement | Acknowledgement  # not a base class: a compiled one cannot have abstract methods

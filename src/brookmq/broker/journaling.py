"""Messages on their way into the journal, and out of it to the sessions that are live.

In: ``shards`` is where publishers put what has to be kept. Out: ``stored`` is called with each batch that is stored;
every live session that wants something of it gets it now, with its position. One that can't take it (its window or its
outlet is full) is behind from then on, and reads the journal by itself.

Until the store was opened for the first time, ``shards`` has one that only collects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from brookmq.base.counters import Counters
from brookmq.broker.publication import Publication
from brookmq.broker.session import Session
from brookmq.broker.subscription import Subscription
from brookmq.broker.topics import Audience, TopicIndex
from brookmq.mqtt.reasons import QUOTA_EXCEEDED
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.group import Group
from brookmq.store.session_state import OFFSET_BITS

EARLY_BYTES_MAX = 4 << 20


class Ticket(Protocol):
    """What waits for a group to be stored."""

    def settle(self, reason: int) -> None: ...


class EarlyShard:
    """Takes groups before the store is open; ``hand_over`` gives them to the journal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.stored = 0
        self.head = 0
        self.groups: list[tuple[Group, Ticket | None, float]] = []
        self.pending_bytes = 0
        self.waiters: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return self.pending_bytes > EARLY_BYTES_MAX

    def add(self, group: Group, ticket: Ticket | None) -> None:
        self.groups.append((group, ticket, self.clock()))
        self.pending_bytes += group.size()

    def wait(self, callback: Callable[[], None]) -> None:
        self.waiters.append(callback)

    def overdue(self, now: float, wait: float) -> None:
        """What has waited for longer than it may is given up."""
        while self.groups and now - self.groups[0][2] > wait:
            group, ticket, _ = self.groups.pop(0)
            self.pending_bytes -= group.size()
            if ticket is not None:
                ticket.settle(QUOTA_EXCEEDED)
        self._tell_room()

    def hand_over(self, add: Callable[[Group, Ticket | None], None]) -> None:
        groups, self.groups = self.groups, []
        self.pending_bytes = 0
        for group, ticket, _ in groups:
            add(group, ticket)
        self._tell_room()

    def _tell_room(self) -> None:
        if self.waiters and not self.full:
            waiters, self.waiters = self.waiters, []
            for waiter in waiters:
                waiter()


class Journaling:
    """``publication`` is the run that is being handed on: one at a time, to its end."""

    def __init__(self, index: TopicIndex, counters: Counters, clock: Callable[[], float]) -> None:
        self.index = index
        self.counters = counters
        self.publication = Publication()
        self.early: EarlyShard | None = EarlyShard(clock)
        self.shards: list[Any] = [self.early]
        self.followers: list[Callable[[], None]] = []  # readers of their own, told of each batch
        self.now = 0.0  # unix seconds, of the last tick

    def attach(self, shards: list[Any], everything: bool) -> None:
        """The store is open: what was collected goes there."""
        early, self.early = self.early, None
        self.shards = shards
        self.mark_everything(everything)
        if early is not None:
            early.hand_over(lambda group, ticket: self.shard_of(self.index.audience(group.topic)).add(group, ticket))

    def mark_everything(self, everything: bool) -> None:
        """Whether batches have to say that they may be for any filter."""
        if self.early is None:
            for shard in self.shards:
                shard.everything = everything

    def shard_of(self, audience: Audience) -> Any:
        return self.shards[audience.shard % len(self.shards)]

    def heads(self) -> list[int]:
        """The ends of what is stored and handed on."""
        return [shard.stored for shard in self.shards]

    def overdue(self, now: float, wait: float) -> None:
        for shard in self.shards:
            shard.overdue(now, wait)

    # -- in

    def add_run(
        self, audience: Audience, publication: Publication, version5: bool, publisher: Session, ticket: Any
    ) -> None:
        """A run of a client: its packets as they came."""
        run = publication.run
        number = audience.shard % len(self.shards)
        group = Group(
            run.data[run.start : run.end],
            run.count,
            run.qos,
            False,
            version5,
            True,
            audience.topic,
            publisher.client_id,
            publisher.username,
            publication.now,
            0.0,
            audience.captured,
            publisher.kept,
            b"",
            audience.filters,
        )
        if ticket is not None:
            ticket.group = group
            ticket.shard = number
        self.shards[number].add(group, ticket)
        self.counters.messages_journaled += run.count

    def add(self, audience: Audience, group: Group, ticket: Any) -> None:
        """One message that took the slow way."""
        number = audience.shard % len(self.shards)
        self.shards[number].add(group, ticket)
        self.counters.messages_journaled += group.count

    # -- out

    def stored(self, batch: Batch) -> None:
        """The store has a batch: to those who are live, group by group."""
        shard = batch.shard
        for group in batch.groups:
            if group.qos:
                audience = self.index.audience(group.topic)
                if audience.stored:
                    self._hand_on(shard, group, audience)
                if audience.stored_groups:
                    self._to_groups(shard, group, audience)
        if self.followers:
            for follower in [*self.followers]:
                follower()

    def _hand_on(self, shard: int, group: Group, audience: Audience) -> None:
        scanned = False
        run = self.publication.run
        for subscription in audience.stored:
            session = subscription.session
            if not session.live:
                continue
            if subscription.since is not None and subscription.since[shard] > group.first:
                continue
            if group.plain and session.plain and subscription.plain:
                if not scanned:
                    scanned = True
                    self.open(group)
                if run.largest + 4 <= session.packet_size_max:
                    qos = subscription.qos
                    if qos > group.qos:
                        qos = group.qos
                    taken = session.take_run(
                        self.publication, qos, 0, group.count, shard << OFFSET_BITS | group.first, None
                    )
                    if taken < group.count:
                        self.fall_behind(session, shard, group.first + taken)
                    continue
            taken = self.one_by_one(session, subscription, shard, group, 0, None)
            scanned = False
            if taken < group.count:
                self.fall_behind(session, shard, group.first + taken)

    def open(self, group: Group) -> Publication:
        """The group as a publication, and when it is plain as its run."""
        publication = self.publication
        publication.topic = group.topic
        publication.client_id = group.client_id
        publication.username = group.username
        publication.now = group.published_at
        publication.messages = None
        if group.plain:
            publication.run.scan(group.packets, 0, group.version5, len(group.packets))
        else:
            publication.messages = [group.message()]
        return publication

    def one_by_one(
        self, session: Session, subscription: Subscription, shard: int, group: Group, first: int, via: object
    ) -> int:
        """Messages of a group from ``first`` on, to a receiver with wishes of its own. Returns up to where they were
        taken."""
        if subscription.no_local and session.client_id == group.client_id:
            return group.count  # [MQTT-3.8.3-3]
        publication = self.open(group)
        qos = min(subscription.qos, group.qos)
        retain = group.retain and subscription.retain_as_published  # [MQTT-3.3.1-12, -13]
        dup_below = 0 if session.dup_below is None else session.dup_below[shard]
        for index in range(first, group.count):
            offset = group.first + index
            if not session.take_message(
                publication.message(index),
                qos,
                retain,
                subscription.properties,
                via,
                shard << OFFSET_BITS | offset,
                offset < dup_below,
                self.now,
            ):
                return index
        return group.count

    def fall_behind(self, session: Session, shard: int, offset: int) -> None:
        """It could not take ``offset``: from there on it reads for itself."""
        session.cursors = self.heads()
        session.cursors[shard] = offset
        session.live = False
        if session.keeper is not None and not session.moved:
            session.keeper.note_moved(session)

    def _to_groups(self, shard: int, group: Group, audience: Audience) -> None:
        for shared in audience.stored_groups:
            shared.reader.stored(shard, group)

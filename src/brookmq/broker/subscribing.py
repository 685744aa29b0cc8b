"""Subscriptions coming and going: plain, shared and exclusive ones, with their limits and reason codes.

A client's filter and the filter in the topic index may differ (rewriting, mount point, ``$share/``, ``$exclusive/``):
``session.subscriptions`` has the client's words as keys, the index has what was made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.journal_replays import JournalReplays
from brookmq.broker.replay_filter import PREFIX as REPLAY
from brookmq.broker.replay_filter import parse_replay
from brookmq.broker.session import Session
from brookmq.broker.settings import Settings
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription
from brookmq.broker.topics import TopicIndex
from brookmq.mqtt import reasons
from brookmq.mqtt.topics import check_filter, has_wildcard, parse_subscription
from brookmq.store.session_state import SubscriptionRecord

EXCLUSIVE = "$exclusive/"


class Subscriptions:
    """Invariant: ``count`` is the number of subscriptions of all sessions; ``exclusive`` has the holder of each
    filter."""

    def __init__(
        self, settings: Settings, index: TopicIndex, counters: Counters, random: Random, replays: JournalReplays
    ) -> None:
        self.settings = settings
        self.index = index
        self.counters = counters
        self.random = random
        self.replays = replays
        self.count = 0
        self.shared_count = 0
        self.exclusive: dict[bytes, Session] = {}
        self.heads: Callable[[], list[int]] = list  # the ends of the journal's shards
        self.group_needs_reader: Callable[[SharedGroup], None] = lambda group: None

    def check(self, filter: str) -> None:
        """Raise PeerError with the reason code for the SUBACK when a filter can't be granted."""
        parsed = parse_subscription(filter)
        plain = parsed.filter
        if plain.startswith(EXCLUSIVE) and self.settings.exclusive_enable:
            if parsed.group is not None:
                raise PeerError(reasons.TOPIC_FILTER_INVALID, "what is exclusive cannot be shared")
            plain = plain[len(EXCLUSIVE) :]
        if plain.startswith(REPLAY):
            if plain is not filter:
                raise PeerError(reasons.TOPIC_FILTER_INVALID, "a replay is of one client: neither shared nor exclusive")
            start = parse_replay(filter)
            self.replays.check(start)
            plain = start.filter
        check_filter(plain)
        if plain.count("/") >= self.settings.topic_levels_max or len(plain.encode()) > self.settings.topic_length_max:
            raise PeerError(reasons.TOPIC_FILTER_INVALID, "the topic filter is too long or has too many levels")
        if not self.settings.wildcard_available and has_wildcard(plain):
            raise PeerError(reasons.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED, "wildcard subscriptions are switched off")
        if parsed.group is not None and not self.settings.shared_available:
            raise PeerError(reasons.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED, "shared subscriptions are switched off")

    def add(
        self,
        session: Session,
        filter: str,
        qos: int,
        no_local: bool,
        retain_as_published: bool,
        retain_handling: int,
        identifiers: tuple[int, ...],
    ) -> tuple[Subscription, bool]:
        """Grant a checked filter; says whether it is new for the session. [MQTT-3.8.4-3]"""
        old = session.subscriptions.get(filter)
        if old is None and len(session.subscriptions) >= self.settings.subscriptions_max:
            raise PeerError(reasons.QUOTA_EXCEEDED, "the client has as many subscriptions as it may have")
        if filter.startswith(REPLAY):
            indexed = session.mount + parse_replay(filter).filter.encode()
            replay = JournalReplay(
                self.replays, session, filter, indexed, qos, no_local, retain_as_published, retain_handling, identifiers
            )
            self._add_replay(session, replay, old)
            return replay, old is None
        parsed = parse_subscription(filter)
        group: SharedGroup | None = None
        plain = parsed.filter
        exclusive = plain.startswith(EXCLUSIVE) and self.settings.exclusive_enable
        if exclusive:
            plain = plain[len(EXCLUSIVE) :]
        indexed = session.mount + plain.encode()
        if exclusive and self.exclusive.setdefault(indexed, session) is not session:
            raise PeerError(reasons.QUOTA_EXCEEDED, "another client holds this exclusive subscription")
        if parsed.group is not None:
            group = self._group(parsed.group, indexed)
        subscription = Subscription(
            session, indexed, qos, no_local, retain_as_published, retain_handling, identifiers, group
        )
        if session.kept:
            subscription.since = old.since if old is not None and old.counted else self.heads()
        session.subscriptions[filter] = subscription
        self._put_in(session, subscription)  # before the old one goes: their filter stays counted
        if group is None:
            self.index.add(subscription)
        if old is not None:
            self._take_out(session, old)
        self.counters.subscribes += 1
        return subscription, old is None

    def _add_replay(self, session: Session, replay: JournalReplay, old: Subscription | None) -> None:
        session.subscriptions[replay.name] = replay
        if isinstance(old, JournalReplay):
            replay.take_over(old)
            self._take_out(session, old)
        self._put_in(session, replay)
        self.counters.subscribes += 1

    def _put_in(self, session: Session, subscription: Subscription) -> None:
        self.count += 1
        if isinstance(subscription, JournalReplay):
            self.replays.add(subscription)
            _note_readers(session)
            return
        group = subscription.group
        if session.kept and subscription.qos:
            subscription.counted = True
            self.index.keep(subscription.filter)
            if group is not None:
                group.kept_count += 1
        if group is not None:
            self.shared_count += 1
            group.add(subscription)
            self.group_needs_reader(group)
            self.index.add_group(group)
            _note_readers(session)

    def restore(self, session: Session, filter: str, record: SubscriptionRecord) -> None:
        """A subscription of an away session, as the store has it."""
        if filter.startswith(REPLAY):
            self._restore_replay(session, filter, record)
            return
        parsed = parse_subscription(filter)
        group = None if parsed.group is None else self._group(parsed.group, record.indexed)
        subscription = Subscription(
            session,
            record.indexed,
            record.qos,
            record.no_local,
            record.retain_as_published,
            record.retain_handling,
            record.identifiers,
            group,
        )
        subscription.since = None if record.since is None else list(record.since)
        subscription.replaying = record.replaying
        session.subscriptions[filter] = subscription
        self._put_in(session, subscription)
        if parsed.filter.startswith(EXCLUSIVE) and self.settings.exclusive_enable:
            self.exclusive.setdefault(record.indexed, session)

    def _restore_replay(self, session: Session, filter: str, record: SubscriptionRecord) -> None:
        replay = JournalReplay(
            self.replays,
            session,
            filter,
            record.indexed,
            record.qos,
            record.no_local,
            record.retain_as_published,
            record.retain_handling,
            record.identifiers,
        )
        replay.since = None if record.since is None else list(record.since)
        replay.dup_below = session.dup_below
        replay.granted = True
        session.subscriptions[filter] = replay
        self._put_in(session, replay)

    def rest(self, session: Session) -> None:
        """The client of a kept session is away: it is no receiver, its filters stay counted."""
        for subscription in session.subscriptions.values():
            if _in_index(subscription):
                self.index.remove(subscription)

    def wake(self, session: Session) -> None:
        """It is back."""
        for subscription in session.subscriptions.values():
            if _in_index(subscription):
                self.index.add(subscription)

    def _group(self, name: str, filter: bytes) -> SharedGroup:
        group = self.index.group(name, filter)
        if group is None:
            strategy = self.settings.shared_strategies.get(name, self.settings.shared_strategy)
            group = SharedGroup(name, filter.decode(), strategy, self.random)
        return group

    def remove(self, session: Session, filter: str) -> bool:
        """End one subscription; False when there is none. [MQTT-3.10.4-1]"""
        subscription = session.subscriptions.pop(filter, None)
        if subscription is None:
            return False
        self._take_out(session, subscription)
        if filter.startswith(EXCLUSIVE) and self.exclusive.get(subscription.filter) is session:
            del self.exclusive[subscription.filter]
        if _in_index(subscription) and (filter.startswith(EXCLUSIVE) or subscription.filter in self.exclusive):
            for other in session.subscriptions.values():  # the client may have the same filter the other way too
                if other.filter == subscription.filter and _in_index(other):
                    self.index.add(other)
        return True

    def remove_all(self, session: Session) -> None:
        for filter in [*session.subscriptions]:
            subscription = session.subscriptions.pop(filter)
            self._take_out(session, subscription)
            if filter.startswith(EXCLUSIVE) and self.exclusive.get(subscription.filter) is session:
                del self.exclusive[subscription.filter]

    def _take_out(self, session: Session, subscription: Subscription) -> None:
        self.count -= 1
        subscription.ended = True
        if isinstance(subscription, JournalReplay):
            self.replays.remove(subscription)
            _note_readers(session)
            return
        group = subscription.group
        if group is None:
            self.index.remove(subscription)
        else:
            self.shared_count -= 1
            group.remove(subscription)
            if subscription.counted:
                group.kept_count -= 1
            self.group_needs_reader(group)
            if group.members:
                self.index.add_group(group)
            else:
                self.index.remove_group(group)
            _note_readers(session)
        if subscription.counted:
            subscription.counted = False
            self.index.unkeep(subscription.filter)


def _in_index(subscription: Subscription) -> bool:
    """Among the receivers of its topics while its client is there."""
    return subscription.group is None and not isinstance(subscription, JournalReplay)


def _note_readers(session: Session) -> None:
    """Its replays and the readers of all groups that it is a member of, so that they are told when it has room."""
    readers: list[object] = []
    for each in session.subscriptions.values():
        reader = each if isinstance(each, JournalReplay) else None if each.group is None else each.group.reader
        if reader is not None:
            readers.append(reader)
    session.sharing = readers or None

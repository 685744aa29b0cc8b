"""The services that channels share: subscriptions, messages, sessions. No socket, no loop; time comes in as a value.

``now`` is unix seconds everywhere in this package, but for keep alive and patience, which are measured on the monotonic
clock by the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from brookmq.access.authenticate import Authentication
from brookmq.access.hooks import Hooks
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.base.events import PREFIX_BYTES as EVENTS_PREFIX
from brookmq.base.message import Message
from brookmq.broker import session_image
from brookmq.broker.acknowledging import Patient, Ticket
from brookmq.broker.admission import Admission
from brookmq.broker.authenticating import Mechanism
from brookmq.broker.delayed import PREFIX as DELAYED_PREFIX
from brookmq.broker.delayed import DelayedEntry, DelayedMessages, is_delayed, origin_of, parse, postponed
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.durable_values import DurableValues
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.journaling import Journaling
from brookmq.broker.keeping import Keeper
from brookmq.broker.outlet import Turn
from brookmq.broker.publication import Delivery
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.replay import Replays
from brookmq.broker.restoring import Restoring
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import TopicRewriter, expand
from brookmq.broker.session import Session
from brookmq.broker.sessions import Sessions
from brookmq.broker.settings import SessionLimits, Settings
from brookmq.broker.subscribing import Subscriptions
from brookmq.broker.subscription import Subscription
from brookmq.broker.timers import Timers
from brookmq.broker.topics import Audience, TopicIndex
from brookmq.broker.waits import Waits
from brookmq.broker.wills import Wills
from brookmq.mqtt import reasons
from brookmq.mqtt.packets import SubscriptionRequest
from brookmq.mqtt.publish import encode_publish
from brookmq.mqtt.topics import check_name, parse_subscription
from brookmq.store import session_ops
from brookmq.store.journal.group import Group
from brookmq.store.session_state import session_key
from brookmq.store.table.interface import Table

SLICE = 200  # timers and delayed messages handled in one tick: a slice of the loop, not all of it


class Broker:
    """One node's broker. ``wall`` is unix time minus monotonic time, refreshed by the node's tick."""

    def __init__(
        self,
        settings: Settings,
        limits: SessionLimits,
        turn: Turn,
        counters: Counters,
        hooks: Hooks,
        authentication: Authentication,
        retained: RetainedStore,
        delayed: DelayedMessages,
        rewriter: TopicRewriter,
        random: Random,
    ) -> None:
        self.settings = settings
        self.counters = counters
        self.turn = turn
        self.hooks = hooks
        self.retained = retained
        self.delayed = delayed
        self.rewriter = rewriter
        self.random = random
        self.authentication = authentication
        self.mechanisms: dict[str, Mechanism] = {}
        self.new_client_id: Callable[[], str] = lambda: f"brook-{random.getrandbits(96):024x}"
        self.wall = 0.0
        self.now = 0.0
        self.accepting = True
        self.auto_subscriptions: list[SubscriptionRequest] = []  # filters may have placeholders
        self.intercept: Callable[[Session, Delivery, float], None] | None = None
        self.replays = Replays(retained, turn)
        self.index = TopicIndex(counters)
        self.index.completed(False)
        self.dispatcher = Dispatcher(turn, counters)
        self.timers = Timers()
        self.journaling = Journaling(self.index, counters, self._monotonic)
        self.keeper = Keeper(self.index, self.journaling, turn, counters, self._monotonic)
        self.subscriptions = Subscriptions(settings, self.index, counters, random, self.keeper.replays)
        self.waits = Waits(self._monotonic, settings.store_wait)
        self.wills = Wills(self.keeper, counters)
        self.wills.publish_message = self.publish_patiently
        self.given_up: list[Patient] = []  # by the journal, and nobody else would send them again
        self.sessions = Sessions(
            settings,
            limits,
            self.subscriptions,
            self.dispatcher,
            self.timers,
            counters,
            hooks,
            self.keeper,
            self.wills,
        )
        self.admission = Admission(turn)
        self.restoring = Restoring(self.sessions, self.subscriptions, self.keeper, self.replays)
        self.replays.on_over = self.keeper.replay_is_over
        self.subscriptions.heads = self.journaling.heads
        self.subscriptions.group_needs_reader = self.keeper.group_needs_reader
        self.values: DurableValues | None = None
        self.restoring.regain = self._regain
        # before the store is open: messages to be retained, acknowledgements of retained and delayed ones
        self._regaining: list[tuple[Group, Callable[[], None]]] = []
        self._unkept: list[Callable[[], None]] = []
        self._held: list[Session] = []  # sessions that send nothing until all are loaded
        self._looked_for: list[tuple[str, Callable[[], None]]] = []  # sessions, before the store is open
        self._begun_clean: set[str] = set()  # client ids that began anew before the store could be told

    def _monotonic(self) -> float:
        return self.turn.now

    # -- the store

    def attach(self, journal: Any, table: Table, values: Table, now: float) -> None:
        """The store is open, and ``restoring`` has looked through the journal: from now on what is kept is kept.
        ``table`` is that of sessions, ``values`` that of retained and delayed messages."""
        self.keeper.journal = journal
        self.keeper.table = table
        self.journaling.attach(journal.shards, not table.all_loaded)
        self._complete(table.all_loaded)
        self.restoring.begin(table, now)
        for client_id in self._begun_clean:
            table.change(session_key(client_id), session_ops.ended())
        self._begun_clean.clear()
        for session in self.sessions.by_client_id.values():
            session.connect_number |= self.keeper.epoch << 32  # or two lives of the node would give the same one
            self.wills.stand(session)
        looked_for, self._looked_for = self._looked_for, []
        for client_id, wake in looked_for:
            self.find_session(client_id, wake)
        table.begin_loading()
        self.keeper.replays.opened()
        self.values = DurableValues(values, self.retained, self.delayed, self.replays)
        self._find_delayed(self.values)
        self.values.begin_with_what_is_there(self.restoring.looked_from or self.journaling.heads())
        self.keeper.behind_values = self.values.behind
        waiting, self._unkept = self._unkept, []
        for wait in waiting:
            self.values.after(wait)
        if values.all_loaded:
            self.values.after(self.values.on_loaded)
        regaining, self._regaining = self._regaining, []
        for group, done in regaining:
            self._regain(group, done)

    def _find_delayed(self, values: DurableValues) -> None:
        """Delayed messages that the journal has: until all values are there, a start has to find them."""
        origins = self.restoring.origins
        values.went_out = {
            origin: group for origin, group in origins.items() if is_delayed(origin) and group is not None
        }
        if values.went_out:
            floors = self.keeper.floors
            floors[b"delayed"] = self.restoring.looked_from
            values.on_loaded = lambda: floors.pop(b"delayed", None)

    def _regain(self, group: Group, done: Callable[[], None]) -> None:
        if self.values is None:
            self._regaining.append((group, done))
        else:
            self.values.regain(group.message(), self.now, done)

    def knows(self, client_id: str, clean: bool) -> bool:
        """Whether what the store has of a client is here. One that begins anew and leaves nothing can do without."""
        table = self.keeper.table
        if table is None:
            if clean:
                self._begun_clean.add(client_id)
            return clean
        return self.keeper.complete or table.loaded(table.part_of(session_key(client_id)))

    def find_session(self, client_id: str, wake: Callable[[], None]) -> None:
        table = self.keeper.table
        if table is None:
            self._looked_for.append((client_id, wake))
        else:
            table.load(table.part_of(session_key(client_id)), wake)

    # -- messages

    def publish(
        self,
        message: Message,
        publisher: Session | None,
        now: float,
        ticket: Ticket | None = None,
        origin: bytes = b"",
    ) -> int:
        """One message from anywhere but a plain run: a client's, a will, the HTTP API's. Returns the number of
        receivers. Raises PeerError where the topic or a limit forbids it. ``ticket`` has to be settled once more for
        each place that has to keep the message."""
        topic = message.topic
        if topic.startswith(DELAYED_PREFIX) and self.settings.delayed_enable:
            return self._delay(message, now, ticket)
        own = not message.client_id and topic.startswith(SYS_PREFIX)
        check_name(topic, 0 if own else self.settings.topic_levels_max)  # the limit is for clients
        _refuse_own_topics(topic, message)
        if message.retain:
            self._retain(message, now, ticket)
        audience = self.index.audience(topic)
        count = self.dispatcher.send(message, audience, publisher, now)
        if audience.durable and (message.qos or audience.captured) and not own:
            self._journal(message, audience, publisher, ticket, origin)
            count += len(audience.stored) + len(audience.stored_groups) or audience.awaited
        if count == 0:
            self.counters.publishes_without_receiver += 1
        return count

    def _journal(
        self,
        message: Message,
        audience: Audience,
        publisher: Session | None,
        ticket: Ticket | None,
        origin: bytes,
    ) -> None:
        """A group of one, with all its properties, and the packet id under which its publisher sent it."""
        head = 0x30 | message.qos << 1 | (1 if message.retain else 0)
        packet_id = 1 if ticket is None or not ticket.ids else ticket.ids[0] << 8 | ticket.ids[1]
        group = Group(
            encode_publish(head, message.topic, packet_id, True, message.properties, message.payload),
            1,
            message.qos,
            message.retain,
            True,
            False,
            message.topic,
            message.client_id,
            message.username,
            message.published_at,
            message.expires_at,
            audience.captured,
            publisher is not None and publisher.kept and ticket is not None,
            origin,
            audience.filters,
        )
        if ticket is not None:
            ticket.waits += 1
            ticket.group = group
            ticket.shard = audience.shard % len(self.journaling.shards)
        self.journaling.add(audience, group, ticket)

    def publish_patiently(self, message: Message, origin: bytes, settled: Callable[[], None], now: float) -> None:
        """A message that nobody would send again. Its origin names it in the journal; ``settled`` when it is stored."""
        ticket = Patient(settled, self.given_up)
        self.publish(message, None, now, ticket, origin)
        ticket.settle(0)

    def _retain(self, message: Message, now: float, ticket: Ticket | None) -> None:
        if not self.settings.retain_available:
            raise PeerError(reasons.RETAIN_NOT_SUPPORTED, "retained messages are switched off")
        before = self._values_before()
        if self.retained.set(message, now):
            self.counters.messages_retained += 1
            self._wait_for_values(before, ticket)
        else:
            self.counters.dropped_retained_limit += 1

    def _values_before(self) -> int:
        """How many changes the table of values has taken; PeerError when it takes none any more."""
        if self.values is None:
            return -1
        if self.values.table.failed is not None:
            raise PeerError(reasons.QUOTA_EXCEEDED, "another node has the store")
        return self.values.taken

    def _wait_for_values(self, before: int, ticket: Ticket | None) -> None:
        """An acknowledgement waits for the record of what was retained or delayed. ``before`` is what was ``taken``."""
        values = self.values
        if ticket is None or (values is not None and values.taken == before):
            return
        ticket.waits += 1
        wait = self.waits.begin(ticket.stored, lambda: ticket.count_down(reasons.QUOTA_EXCEEDED))
        self.when_values_stored(wait)

    def when_values_stored(self, callback: Callable[[], None]) -> None:
        """Calls back when all that was retained or delayed so far is stored."""
        if self.values is None:
            self._unkept.append(callback)
        else:
            self.values.after(callback)

    def _delay(self, message: Message, now: float, ticket: Ticket | None) -> int:
        parsed = parse(message.topic)
        if parsed is None:
            return 0
        seconds, target = parsed
        check_name(target, self.settings.topic_levels_max)
        _refuse_own_topics(target, message)
        try:
            due = self.delayed.due_at(seconds, now)
        except PeerError:
            self.counters.dropped_delayed_limit += 1
            raise
        before = self._values_before()
        if self.delayed.add(postponed(message, target, due, now), due):
            self.counters.messages_delayed += 1
            self._wait_for_values(before, ticket)
        else:
            self.counters.dropped_delayed_limit += 1
            raise PeerError(reasons.QUOTA_EXCEEDED, "too many delayed messages")
        return 0

    def _publish_delayed(self, entry: DelayedEntry, now: float) -> None:
        """It leaves the store when it is where it has to be. After a crash in between it is published again, unless the
        journal has it."""
        origin = origin_of(entry.id)
        if self.values is not None:
            self.keeper.floors[origin] = self.journaling.heads()

        def settled() -> None:
            self.keeper.floors.pop(origin, None)
            self.delayed.finish(entry.id)

        ticket = Patient(settled, self.given_up)
        message = entry.message
        with suppress(PeerError):  # another node has the store, and this message with it
            self.publish(message, self.sessions.by_client_id.get(message.client_id), now, ticket, origin)
        ticket.settle(reasons.SUCCESS)

    # -- subscriptions

    def subscribe(
        self, session: Session, request: SubscriptionRequest, identifiers: tuple[int, ...]
    ) -> tuple[Subscription, bool]:
        """Grant one filter; says whether it is new. Raises PeerError with the reason code for the SUBACK."""
        filter = request.filter
        if self.rewriter.enabled:
            filter = self.rewriter.rewrite_filter(filter, session.client_id, session.username)
        self.subscriptions.check(filter)
        return self.subscriptions.add(
            session,
            filter,
            min(request.qos, self.settings.qos_max),
            request.no_local,
            request.retain_as_published,
            request.retain_handling,
            identifiers,
        )

    def unsubscribe(self, session: Session, filter: str) -> bool:
        """End one subscription; False when there is none. Raises PeerError when it is not a filter at all."""
        parse_subscription(filter)
        if self.rewriter.enabled:
            filter = self.rewriter.rewrite_filter(filter, session.client_id, session.username)
        return self.subscriptions.remove(session, filter)

    def auto_subscribe(self, session: Session, now: float) -> None:
        """Subscriptions that the configuration gives to every client that connects."""
        for template in self.auto_subscriptions:
            filter = expand(template.filter, session.client_id, session.username)
            if filter is None:
                continue
            request = SubscriptionRequest(
                filter, template.qos, template.no_local, template.retain_as_published, template.retain_handling
            )
            before = session.subscriptions.get(filter)
            try:
                subscription, new = self.subscribe(session, request, ())
            except PeerError:
                self.counters.subscribes_refused += 1
                continue
            if session.kept and (before is None or not _same(before, subscription)):
                names = [name for name, each in session.subscriptions.items() if each is subscription]
                self.keep_subscriptions(session, [(name, subscription, new) for name in names], lambda: None)
            self.replay_retained(subscription, new, now)

    def replay_retained(self, subscription: Subscription, new: bool, now: float) -> None:
        """What is retained for a subscription that was just made, unless it asked for none. A replay has no retained
        messages; it begins."""
        if isinstance(subscription, JournalReplay):
            subscription.grant()
            return
        if _wants_retained(subscription, new):
            self.replays.begin(subscription, now)

    def keep_subscriptions(
        self, session: Session, granted: list[tuple[str, Subscription, bool]], done: Callable[[], None]
    ) -> None:
        """Write down what a kept session has subscribed to (the name, the subscription, whether it is new)."""
        for _, subscription, new in granted:
            may_have = self.retained.count > 0 or self.values is None or not self.values.table.all_loaded
            subscription.replaying = may_have and subscription.qos > 0 and _wants_retained(subscription, new)
        self.keeper.subscribed(session, [(name, subscription) for name, subscription, _ in granted], done)

    # -- time

    def tick(self, now: float, monotonic: float) -> None:
        """What is due: delayed messages, wills, ends of sessions, expired retained messages, patience of full
        outlets."""
        self.now = now
        self.wall = now - monotonic
        self.turn.now = monotonic
        for outlet in [*self.turn.pressed]:
            outlet.tick(monotonic)
        for entry in self.delayed.take_due(now, SLICE):
            self._publish_delayed(entry, now)
        for timer in self.timers.due(now, SLICE):
            self.sessions.timer(timer, now)
        self.retained.sweep(now, SLICE)
        self.replays.step(now)
        self._tick_store(now, monotonic)

    def _tick_store(self, now: float, monotonic: float) -> None:
        self.journaling.now = now
        self.journaling.overdue(monotonic, self.settings.store_wait)
        self._try_again()
        self.waits.tick()
        self.keeper.tick(now)
        table = self.keeper.table
        values = None if self.values is None else self.values.table
        self.turn.tables_full = (table is not None and table.full) or (values is not None and values.full)
        if not self.keeper.complete and table is not None and table.all_loaded:
            self._complete(True)
            self.restoring.complete()
            held, self._held = self._held, []
            for session in held:
                session.loading = False
                session.pump(now)

    def hold_until_complete(self, session: Session) -> None:
        """What a shared group gave it must not be finished before the group knows that it did: then it would be given
        to another."""
        session.loading = True
        self._held.append(session)

    def _try_again(self) -> None:
        """What the journal gave up waits on: where it is under way, for its end, else for its place behind others."""
        given_up, self.given_up[:] = [*self.given_up], []
        for ticket in given_up:
            group, shard = ticket.group, self.journaling.shards[ticket.shard]
            assert group is not None
            if group.first >= 0:
                if group.first < shard.stored:
                    ticket.count_down(reasons.SUCCESS)
                else:
                    self.given_up.append(ticket)
            elif group.size() > shard.limits.group_bytes_max:
                ticket.count_down(reasons.QUOTA_EXCEEDED)  # no time will change that
            elif shard.full:
                self.given_up.append(ticket)
            else:
                shard.add(group, ticket)

    def _complete(self, complete: bool) -> None:
        """Whether the filters of all kept sessions are known. Until then everything may be for one of them."""
        self.keeper.complete = complete
        self.index.completed(complete)
        self.journaling.mark_everything(not complete)


def _refuse_own_topics(topic: bytes, message: Message) -> None:
    """The node alone publishes to ``$SYS`` and ``$events``: no client does, whichever way its message takes."""
    if topic.startswith((SYS_PREFIX, EVENTS_PREFIX)) and message.client_id:
        raise PeerError(reasons.NOT_AUTHORIZED, "$SYS and $events topics are the node's own")


def _wants_retained(subscription: Subscription, new: bool) -> bool:
    """[MQTT-3.3.1-9, -10, -11]; a shared subscription and a replay have none."""
    handling = subscription.retain_handling
    plain = subscription.group is None and not isinstance(subscription, JournalReplay)
    return plain and (handling == 0 or (handling == 1 and new))


def _same(first: Subscription, second: Subscription) -> bool:
    """Whether the store need not be told of the second, which has taken the place of the first."""
    return session_image.subscription_record("", first) == session_image.subscription_record("", second)

"""The services that channels share: subscriptions, messages, sessions. No socket, no loop; time comes in as a value.

``now`` is unix seconds everywhere in this package, but for keep alive and patience, which are measured on the monotonic
clock by the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from brookmq.access.authenticate import Authentication
from brookmq.access.hooks import Hooks
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.connecting import Mechanism
from brookmq.broker.delayed import PREFIX as DELAYED_PREFIX
from brookmq.broker.delayed import DelayedMessages, parse, postponed
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.outlet import Turn
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.replay import Replays
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import TopicRewriter, expand
from brookmq.broker.session import Delivery, Session, SessionLimits
from brookmq.broker.sessions import Sessions
from brookmq.broker.settings import Settings
from brookmq.broker.subscribing import Subscriptions
from brookmq.broker.subscription import Subscription
from brookmq.broker.timers import Timers
from brookmq.broker.topics import TopicIndex
from brookmq.mqtt import reasons
from brookmq.mqtt.packets import SubscriptionRequest
from brookmq.mqtt.topics import check_name, parse_subscription

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
        self.dispatcher = Dispatcher(turn, counters)
        self.timers = Timers()
        self.subscriptions = Subscriptions(settings, self.index, counters, random)
        self.sessions = Sessions(settings, limits, self.subscriptions, self.dispatcher, self.timers, counters, hooks)
        self.sessions.publish_will = self.publish

    def publish(self, message: Message, publisher: Session | None, now: float) -> int:
        """One message from anywhere but a plain run: a client's, a will, the HTTP API's. Returns the number of
        receivers. Raises PeerError where the topic or a limit forbids it."""
        topic = message.topic
        if topic.startswith(DELAYED_PREFIX) and self.settings.delayed_enable:
            return self._delay(message, now)
        own = not message.client_id and topic.startswith(SYS_PREFIX)
        check_name(topic, 0 if own else self.settings.topic_levels_max)  # the limit is for clients
        _refuse_own_topics(topic, message)
        if message.retain:
            self._retain(message, now)
        count = self.dispatcher.send(message, self.index.audience(topic), publisher, now)
        if count == 0:
            self.counters.publishes_without_receiver += 1
        return count

    def _retain(self, message: Message, now: float) -> None:
        if not self.settings.retain_available:
            raise PeerError(reasons.RETAIN_NOT_SUPPORTED, "retained messages are switched off")
        if self.retained.set(message, now):
            self.counters.messages_retained += 1
        else:
            self.counters.dropped_retained_limit += 1

    def _delay(self, message: Message, now: float) -> int:
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
        if self.delayed.add(postponed(message, target, due, now), due):
            self.counters.messages_delayed += 1
        else:
            self.counters.dropped_delayed_limit += 1
            raise PeerError(reasons.QUOTA_EXCEEDED, "too many delayed messages")
        return 0

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
            try:
                subscription, new = self.subscribe(session, request, ())
            except PeerError:
                self.counters.subscribes_refused += 1
            else:
                self.replay_retained(subscription, new, now)

    def replay_retained(self, subscription: Subscription, new: bool, now: float) -> None:
        """What is retained for a subscription that was just made, unless it asked for none. [MQTT-3.3.1-9, -10, -11]"""
        handling = subscription.retain_handling
        if subscription.group is None and (handling == 0 or (handling == 1 and new)):
            self.replays.begin(subscription, now)

    # -- time

    def tick(self, now: float, monotonic: float) -> None:
        """What is due: delayed messages, wills, ends of sessions, expired retained messages, patience of full
        outlets."""
        self.now = now
        self.wall = now - monotonic
        self.turn.now = monotonic
        for outlet in [*self.turn.pressed]:
            outlet.tick(monotonic)
        for message in self.delayed.due(now, SLICE):
            self.publish(message, self.sessions.by_client_id.get(message.client_id), now)
        for timer in self.timers.due(now, SLICE):
            self.sessions.timer(timer, now)
        self.retained.sweep(now, SLICE)
        self.replays.step(now)


def _refuse_own_topics(topic: bytes, message: Message) -> None:
    """The node alone publishes to ``$SYS``: no client does, whichever way its message takes."""
    if topic.startswith(SYS_PREFIX) and message.client_id:
        raise PeerError(reasons.NOT_AUTHORIZED, "$SYS topics are the node's own")

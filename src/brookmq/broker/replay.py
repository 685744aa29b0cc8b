"""Retained messages for new subscriptions: in slices, so that a wildcard over many topics does not stall the loop.

A replay reads the store as it goes, so it never hands out a value that is older than what the subscriber got live. It
waits while the subscriber is behind: its outlet or its queue is never filled by retained messages alone. That of a
session that is away is put aside until it is back: nobody looks at a million of them again and again.

A kept session gets the rest after a crash, too: its subscription is stored as one that is *replaying*, until all that
was sent is in the records of the session. What it had got of it then comes once more.

After a start the retained messages come back from the store part by part. A replay begins when all that its filter can
match is there: one part for the name of a topic, all parts for a filter with wildcards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from brookmq.broker.outlet import Turn
from brookmq.broker.retained import RetainedScan, RetainedStore
from brookmq.broker.session import Session
from brookmq.broker.subscription import Subscription

SLICE = 100  # messages at a time: well below a millisecond
SLICES_MAX = 10  # in one turn of the loop: one SUBSCRIBE may have thousands of filters


def _always(_: bytes) -> bool:
    return True


class Replay:
    __slots__ = ("ready", "scan", "subscription")

    def __init__(self, subscription: Subscription, scan: RetainedScan) -> None:
        self.subscription = subscription
        self.scan = scan
        self.ready = False  # all that its filter can match is loaded

    def over(self) -> bool:
        return self.scan.done or self.subscription.ended  # [MQTT-3.10.4-2]

    def waits(self) -> bool:
        """The client is behind."""
        session = self.subscription.session
        outlet = session.outlet
        return bool(session.queue) or outlet is None or outlet.size > outlet.high

    def send(self, now: float) -> None:
        subscription = self.subscription
        for message in self.scan.next(SLICE, now):
            qos = min(message.qos, subscription.qos)
            subscription.session.send(message, qos, True, subscription.properties, None, now)  # [MQTT-3.3.1-8]


class Replays:
    """All replays under way, each a slice in turn."""

    def __init__(self, store: RetainedStore, turn: Turn) -> None:
        self.store = store
        self.turn = turn
        self.loaded: Callable[[bytes], bool] = _always  # whether all that a filter can match is loaded
        self.on_over: Callable[[Subscription], None] | None = None  # a subscription has got all it was to get
        self.waiting: deque[Replay] = deque()
        self.scheduled = False
        self.slices = 0  # sent in this turn
        self.now = 0.0

    def begin(self, subscription: Subscription, now: float) -> None:
        replay = Replay(subscription, self.store.scan(subscription.filter))
        replay.ready = self.loaded(subscription.filter)
        if replay.ready and self.store.count == 0:
            self._over(replay)
            return
        self.now = now
        if replay.ready and self.slices < SLICES_MAX:
            self.slices += 1
            replay.send(now)
        if replay.over():
            self._over(replay)
        else:
            self.waiting.append(replay)
        self._schedule()

    def step(self, now: float) -> None:
        """A slice of each replay in turn; called by the node's tick too, for those that had to wait."""
        self.now = now
        self.slices = 0
        for _ in range(len(self.waiting)):
            if self.slices == SLICES_MAX:
                break
            replay = self.waiting.popleft()
            if replay.over():
                self._over(replay)
                continue
            session = replay.subscription.session
            if session.outlet is None:
                if session.replays is None:
                    session.replays = []
                session.replays.append(replay)
                continue
            if not replay.ready:
                replay.ready = self.loaded(replay.subscription.filter)
            if replay.ready and not replay.waits():
                self.slices += 1
                replay.send(now)
            self.waiting.append(replay)
        if self.slices:
            self._schedule()

    def put_aside(self, subscription: Subscription) -> None:
        """The node died during this replay: it begins again when the client is back."""
        session = subscription.session
        if session.replays is None:
            session.replays = []
        session.replays.append(Replay(subscription, self.store.scan(subscription.filter)))

    def returned(self, session: Session) -> None:
        """The client is back, and gets the rest."""
        if session.replays is not None:
            self.waiting.extend(session.replays)
            session.replays = None
            self._schedule()

    def wake(self) -> None:
        """More is loaded: some of those that wait may begin."""
        if self.waiting:
            self._schedule()

    def _over(self, replay: Replay) -> None:
        if self.on_over is not None and not replay.subscription.ended:
            self.on_over(replay.subscription)

    def _schedule(self) -> None:
        if not self.scheduled:
            self.scheduled = True
            self.turn.call_soon(self._run)

    def _run(self) -> None:
        self.scheduled = False
        self.step(self.now)

"""All replays of a node: who may have one, and whose turn it is.

Each gets a step in turn, and all of them no more than a few milliseconds before others get theirs. One that is at the
head waits here for the next batch to be stored; one whose session is full or away waits for its session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from brookmq.base.errors import PeerError
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.replay_filter import ReplayStart
from brookmq.broker.session import Session
from brookmq.mqtt.reasons import IMPLEMENTATION_SPECIFIC_ERROR, TOPIC_FILTER_INVALID

if TYPE_CHECKING:
    from brookmq.broker.keeping import Keeper

STEP_MESSAGES_MAX: Final = 200
TURN_COST_MAX: Final = 600  # messages, and batches in their place, in one turn of the loop: a few ms


class JournalReplays:
    """``count`` is the number of replays of all sessions; without any it is told of nothing, and does nothing."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.journaling = keeper.journaling
        self.plugins_busy: Callable[[Session], bool] = lambda session: False
        self.count = 0
        self.at_head: dict[JournalReplay, None] = {}
        self.ready: deque[JournalReplay] = deque()
        self.running = False
        self.early: dict[JournalReplay, None] = {}  # wait for the store to be opened

    @property
    def journal(self) -> Any:
        return self.keeper.journal

    def check(self, start: ReplayStart) -> None:
        """Refuse what can't be had here. Before the store is open nobody knows; then it begins with what is there."""
        if not self.journaling.index.capture:
            # Granted it would be silent for ever, and nobody would find out why.
            raise PeerError(IMPLEMENTATION_SPECIFIC_ERROR, "replay: this node captures nothing (journal.capture)")
        if self.journal is None:
            return
        heads = self.journaling.heads()
        for partition, offset in start.offsets:
            if partition >= len(heads):
                raise PeerError(
                    TOPIC_FILTER_INVALID, f"replay: there is no partition {partition}, they are 0 to {len(heads) - 1}"
                )
            if offset > heads[partition]:
                raise PeerError(
                    TOPIC_FILTER_INVALID, f"replay: partition {partition} ends at {heads[partition]}, before {offset}"
                )

    # -- they come and go

    def add(self, replay: JournalReplay) -> None:
        if self.count == 0:
            self.journaling.followers.append(self.stored)
        self.count += 1

    def remove(self, replay: JournalReplay) -> None:
        self.count -= 1
        self.at_head.pop(replay, None)
        self.early.pop(replay, None)
        if self.count == 0:
            self.journaling.followers.remove(self.stored)

    # -- turns

    def schedule(self, replay: JournalReplay) -> None:
        if replay.queued:
            return
        if self.journal is None:
            self.early[replay] = None
            return
        self.at_head.pop(replay, None)
        replay.queued = True
        self.ready.append(replay)
        self._call()

    def follow(self, replay: JournalReplay) -> None:
        """It has read everything that is stored."""
        self.at_head[replay] = None

    def stored(self) -> None:
        for replay in [*self.at_head]:
            self.schedule(replay)

    def opened(self) -> None:
        """The store is there."""
        early, self.early = self.early, {}
        for replay in early:
            replay.pump()

    def _call(self) -> None:
        if not self.running:
            self.running = True
            self.keeper.turn.call_soon(self._run)

    def _run(self) -> None:
        self.running = False
        left = TURN_COST_MAX
        for _ in range(len(self.ready)):
            if left <= 0:
                break
            replay = self.ready.popleft()
            replay.queued = False
            left -= replay.step(min(left, STEP_MESSAGES_MAX))
        if self.ready:
            self._call()

    def has_room(self, session: Session) -> bool:
        """Whether a session takes a message at QoS 0 that may not be lost."""
        outlet = session.outlet
        if outlet is None or session.to_resend is not None or session.queue or outlet.size > outlet.high:
            return False
        return session.intercept is None or not self.plugins_busy(session)

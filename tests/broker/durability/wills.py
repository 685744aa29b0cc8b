"""What has to become of wills: published once when their connection ends as it should not, else never.

Where the moment is not certain (a crash, a client that is back about when its will is due) both outcomes are right.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.broker.durability.ledger import Ledger, Message

MARGIN = 1.5  # seconds between due and published


@dataclass
class WillState:
    """The will of one connection."""

    message: Message
    delay: int
    certain: bool = False  # the client was told that it is connected
    due: tuple[float, float] | None = None  # earliest and latest; None: its connection is there
    over: bool = False


class WillLedger:
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.armed: dict[str, WillState] = {}  # by client id, of the last connection
        self.waiting: list[WillState] = []  # of connections that have ended
        self.leaving: list[WillState] = []  # DISCONNECT was taken, and perhaps not written down

    def connecting(self, client: str, now: float) -> None:
        """A client that comes back takes its will back, unless it was due before, or its session ends now.
        [MQTT-3.1.3-9]"""
        for state in self.waiting:
            early = state.due is not None and state.due[1] + MARGIN >= now
            if early and state.message.publisher == client and not state.over:
                state.certain = False

    def connected(self, client: str, will: Message | None, delay: int) -> None:
        if will is not None:
            self.armed[client] = WillState(will, delay, True)

    def left(self, client: str) -> None:
        """DISCONNECT was taken: it is not published [MQTT-3.1.2-10], unless the node dies before that is stored."""
        state = self.armed.pop(client, None)
        if state is not None:
            self.leaving.append(state)

    def stored(self) -> None:
        """Nothing waits for the store."""
        for state in self.leaving:
            if not state.message.doubtful:
                state.message.must_not_arrive = "a will, and its client had said DISCONNECT"
        self.leaving.clear()

    def cut(self, client: str, earliest: float, latest: float, delay_max: int) -> None:
        """The end of its session is the latest moment for a will."""
        state = self.armed.pop(client, None)
        if state is not None:
            delay = min(state.delay, delay_max)
            state.due = (earliest + delay, latest + delay)
            state.message.certain_from = self.ledger.step
            self.waiting.append(state)

    def died(self, client: str, earliest: float, latest: float, certain: bool) -> None:
        """With the node. That of a transient session is written down soon after its CONNACK, not before."""
        state = self.armed.get(client)
        if state is not None:
            state.certain = state.certain and certain
            self.cut(client, earliest, latest, 1 << 30)

    def node_died(self, earliest: float, latest: float) -> None:
        """Whoever left just before may be taken for one who was there."""
        self.leaving.clear()
        for state in self.waiting:
            if state.due is not None and state.due[1] >= earliest:
                state.due = (min(state.due[0], earliest), latest + state.delay)

    def store_is_silent(self) -> None:
        """For longer than messages wait for it: then a will is lost, as there is nobody who could send it again."""
        for state in (*self.waiting, *self.armed.values()):
            state.certain = False

    def settle(self, now: float) -> None:
        """All that is due was published."""
        for state in self.waiting:
            if state.certain and not state.over and state.due is not None and state.due[1] + MARGIN < now:
                state.over = True
                self.ledger.acknowledged(state.message)

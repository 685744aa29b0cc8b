"""A mechanism of enhanced authentication for the tests, in two rounds: loaded into a node before it starts."""

from __future__ import annotations

from typing import Any

from brookmq.access.points import ClientInfo
from brookmq.base.errors import PeerError
from brookmq.broker.broker import Broker
from brookmq.mqtt import reasons

METHOD = "spec-two-rounds"
CHALLENGES = [b"first?", b"second?"]
ANSWERS = [b"first!", b"second!"]


class TwoRounds:
    """Asks twice; any other answer than the expected one is refused."""

    def __init__(self) -> None:
        self.asked = 0

    def step(self, data: bytes | None) -> tuple[bool, bytes | None, str | None]:
        if self.asked and data != ANSWERS[self.asked - 1]:
            raise PeerError(reasons.NOT_AUTHORIZED, "a wrong answer")
        if self.asked == len(CHALLENGES):
            return True, b"welcome", "somebody"
        self.asked += 1
        return False, CHALLENGES[self.asked - 1], None


class TwoRoundsMechanism:
    """What the broker knows by its method."""

    def begin(self, _: ClientInfo) -> TwoRounds:
        return TwoRounds()


_make = Broker.__init__


def _make_with_mechanism(self: Broker, *arguments: Any, **options: Any) -> None:
    _make(self, *arguments, **options)
    self.mechanisms[METHOD] = TwoRoundsMechanism()


Broker.__init__ = _make_with_mechanism  # type: ignore[method-assign]

"""Section 3.3.1.3: forwarded messages keep RETAIN although nobody asked for it."""

from typing import Any

from brookmq.broker.subscription import Subscription

FAILS = "test_3_03_retain.py::test_retain_is_cleared_for_established_subscriptions[5.0]"

_make = Subscription.__init__


def make(self: Subscription, *arguments: Any) -> None:
    _make(self, *arguments)
    self.retain_as_published = True


Subscription.__init__ = make  # type: ignore[assignment, method-assign]

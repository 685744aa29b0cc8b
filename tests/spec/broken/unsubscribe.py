"""Sections 3.10 and 3.11: UNSUBACK says yes, and the subscription stays."""

from brookmq.broker.broker import Broker
from brookmq.broker.session import Session

FAILS = "test_3_10_unsubscribe.py::test_a_wildcard_subscription_ends_alone[5.0]"


def unsubscribe(self: Broker, session: Session, filter: str) -> bool:
    return True


Broker.unsubscribe = unsubscribe  # type: ignore[method-assign]

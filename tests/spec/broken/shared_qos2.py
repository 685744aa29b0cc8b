"""Section 4.8: a QoS 2 message of a member that leaves goes to another one."""

from brookmq.broker.session import Delivery, Session

FAILS = "test_4_8_shared.py::test_qos2_of_a_session_that_ends_goes_to_nobody_else"


def take_shared(self: Session) -> list[Delivery]:
    return [delivery for delivery in (self.held or {}).values() if delivery is not None and delivery.group is not None]


Session.take_shared = take_shared  # type: ignore[method-assign]

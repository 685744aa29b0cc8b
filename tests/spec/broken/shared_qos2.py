"""Section 4.8: a QoS 2 message of a member that leaves goes to another one."""

from typing import Any

from brookmq.broker.publication import Delivery
from brookmq.broker.session import Session

FAILS = "test_4_8_shared.py::test_qos2_of_a_session_that_ends_goes_to_nobody_else"


def take_shared(self: Session) -> tuple[list[Delivery], list[tuple[Any, int, bool]]]:
    entries = [] if self.window is None else self.window.in_flight()
    return [], [(group, entry.position, True) for entry in entries if (group := (self.via or {}).get(entry.packet_id))]


Session.take_shared = take_shared  # type: ignore[method-assign]

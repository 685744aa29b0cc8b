"""Section 3.3: a PUBLISH that is sent again has no DUP."""

from brookmq.base.message import Message
from brookmq.broker.session import Session

FAILS = "test_3_03_publish.py::test_a_redelivery_has_dup_and_its_packet_id[qos1-5.0]"

_write = Session._write


def write(
    self: Session, message: Message, qos: int, packet_id: int, retain: bool, identifiers: bytes, dup: bool, now: float
) -> bool:
    return _write(self, message, qos, packet_id, retain, identifiers, False, now)


Session._write = write  # type: ignore[method-assign]

"""Section 3.3: a PUBLISH that is sent again has no DUP."""

from brookmq.broker.session import Delivery, Session

FAILS = "test_3_03_publish.py::test_a_redelivery_has_dup_and_its_packet_id[qos1-5.0]"

_encode = Session._encode


def encode(self: Session, delivery: Delivery, now: float) -> bytes | None:
    delivery.dup = False
    return _encode(self, delivery, now)


Session._encode = encode  # type: ignore[method-assign]

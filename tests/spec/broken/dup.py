"""Section 3.3: a PUBLISH that is sent again has no DUP."""

from brookmq.broker import session
from brookmq.broker.client_state import ClientState
from brookmq.broker.publication import Delivery

FAILS = "test_3_03_publish.py::test_a_redelivery_has_dup_and_its_packet_id[qos1-5.0]"

_encode_delivery = session.encode_delivery


def encode_delivery(client: ClientState, delivery: Delivery, now: float) -> bytes | None:
    delivery.dup = False
    return _encode_delivery(client, delivery, now)


session.encode_delivery = encode_delivery

"""Sections 4.3 and 4.6: a repeated QoS 2 message counts as a new one."""

from brookmq.broker.inflight import OpenIds

FAILS = "test_4_3_qos.py::test_qos2_inwards_is_exactly_once[5.0]"


def is_open(self: OpenIds, packet_id: int) -> bool:
    return False


OpenIds.is_open = is_open  # type: ignore[method-assign]

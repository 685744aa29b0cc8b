"""Section 3.1.2.10: nobody watches the keep alive."""

from brookmq.broker.channel import Channel

FAILS = "test_3_01_promises.py::test_a_silent_client_is_closed_after_one_and_a_half_keep_alives[5.0]"


def overdue(self: Channel, monotonic: float) -> bool:
    return False


Channel.overdue = overdue  # type: ignore[method-assign]

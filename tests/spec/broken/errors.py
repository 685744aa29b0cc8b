"""Section 4.13: a breach of the protocol is overlooked."""

from brookmq.base.errors import PeerError
from brookmq.broker.channel import Channel

FAILS = "test_4_13_errors.py::test_a_breach_ends_the_connection_with_its_reason[qos3-5.0]"


def fail(self: Channel, error: PeerError) -> None:
    pass


Channel.fail = fail  # type: ignore[method-assign]

"""Section 3.1.2.5: a normal DISCONNECT does not delete the will."""

from brookmq.broker.channel import Channel

FAILS = "test_3_01_will.py::test_disconnect_deletes_the_will[5.0]"

_left = Channel.left


def left(self: Channel, with_will: bool, reason: int) -> None:
    _left(self, True, reason)


Channel.left = left  # type: ignore[method-assign]

"""Section 4.9: the client's Receive Maximum is ignored."""

from brookmq.broker.inflight import Window

FAILS = "test_3_03_publish.py::test_the_node_keeps_the_receive_maximum_of_the_client[1-qos1]"

_make = Window.__init__


def make(self: Window, limit: int) -> None:
    _make(self, 1024)


Window.__init__ = make  # type: ignore[method-assign]

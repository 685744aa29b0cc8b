"""Section 3.3.2.3: properties are lost on the way."""

from typing import Any

from brookmq.base.message import Message

FAILS = "test_3_03_properties.py::test_properties_arrive_unaltered_and_in_order[qos1]"

_make = Message.__init__


def make(self: Message, *arguments: Any, **named: Any) -> None:
    _make(self, *arguments, **named)
    self.properties = b""


Message.__init__ = make  # type: ignore[method-assign]

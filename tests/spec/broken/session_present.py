"""Section 3.2: CONNACK never says that there was a session."""

from brookmq.broker import admitting

FAILS = "test_3_02_connack.py::test_session_present_says_whether_there_was_one[5.0]"


def with_nothing(connack: bytes) -> bytes:
    return connack


admitting.with_session_present = with_nothing

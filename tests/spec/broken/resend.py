"""Sections 4.1, 4.4 and 4.5: a resumed session sends nothing again."""

from brookmq.broker.session import Session

FAILS = "test_4_1_session.py::test_a_resumed_session_sends_again_what_is_unacknowledged[5.0]"


def resend(self: Session) -> None:
    pass


Session.resend = resend  # type: ignore[method-assign]

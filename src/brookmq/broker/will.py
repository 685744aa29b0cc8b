"""A will as the broker keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.base.message import Message
from brookmq.store.session_state import SessionState, WillRecord

if TYPE_CHECKING:
    from brookmq.broker.session import Session


class Will:
    """Ready to publish, but for its expiry, which begins when it is published."""

    __slots__ = ("delay", "due", "expiry", "message")

    def __init__(self, message: Message, delay: int, expiry: int | None) -> None:
        self.message = message
        self.delay = delay  # seconds
        self.expiry = expiry  # seconds, None = never
        self.due = 0.0  # unix seconds, 0.0: its connection is still there

    @classmethod
    def of(cls, record: WillRecord) -> Will:
        return cls(record.message, record.delay, record.expiry)

    def due_message(self, now: float) -> Message:
        message = self.message
        return Message(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.properties,
            0.0 if self.expiry is None else now + self.expiry,
            now,
            message.client_id,
            message.username,
        )


def will_state(session: Session, will: Will) -> SessionState:
    """What is written down of a will that stands alone."""
    state = SessionState(session.client_id)
    state.username = session.username
    state.version = session.version
    state.created_at = session.created_at
    state.connect_number = session.connect_number
    state.will = WillRecord(will.message, will.delay, will.expiry)
    return state

"""What a case is: a rule, messages, and the rows that must come out, also for messages that are wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

Row = dict[str, Any]
Payload = Any


class Message(dict[str, Any]):
    """A message with more than a payload."""


def message(payload: Payload, number: int = 0) -> dict[str, Any]:
    """A message as the table of samples takes it; by default of the topic s/1, one second after the one before."""
    given = payload if isinstance(payload, Message) else {"payload": payload}
    at = NOON + timedelta(seconds=given.get("second", number))
    columns = {"topic": "s/1", "client_id": "c1", "username": "u1", "qos": 1, "retain": False, "node": "n1"}
    columns |= {"published_at": at, "offset": number, "partition": 0}
    return {**columns, **{name: value for name, value in given.items() if name != "second"}}


@dataclass(frozen=True)
class Case:
    """``good``, ``wrong`` (of another type) and ``missing`` are messages, each with the rows that it gives."""

    name: str
    sql: str
    good: list[tuple[Payload, list[Row]]]
    wrong: list[tuple[Payload, list[Row]]]
    missing: list[tuple[Payload, list[Row]]]
    schema: tuple[str, dict[str, Any]] | None = None
    failed: int = 0
    """How many of all these messages cannot be decoded."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        payloads = [payload for payload, _ in (*self.good, *self.wrong, *self.missing)]
        return [message(payload, number) for number, payload in enumerate(payloads)]

    @property
    def rows(self) -> list[Row]:
        return [row for _, rows in (*self.good, *self.wrong, *self.missing) for row in rows]


@dataclass(frozen=True)
class GroupCase:
    """Rows of groups: of good messages, and with wrong ones and ones without the field among them."""

    name: str
    sql: str
    good: list[Payload]
    rows: list[Row]
    wrong: list[Payload]
    rows_with_wrong: list[Row]
    failed: int = 0
    schema: None = field(default=None)

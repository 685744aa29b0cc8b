"""Messages that a rule is tried on, as people write them in JSON: only the topic is needed.

``{"topic": "sensors/1", "payload": {"temp": 31.5}}``: a payload that is no text is written as JSON. Bytes that are no
text come as base 64, with ``"payload_encoding": "base64"``. Times are ISO 8601 or unix seconds.
"""

from __future__ import annotations

import base64
import binascii
import json
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from brookmq.base.rule_actions import Text

SAMPLES_MAX: Final = 1_000
YEAR_MIN: Final = 1
YEAR_MAX: Final = 9999


def _time(value: object) -> object:
    """Unix seconds of what a person wrote."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("expected a time such as 2026-01-31T12:00:00Z, or unix seconds") from None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return value


def _in_range(seconds: float) -> float:
    try:
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"a time is in the years {YEAR_MIN} to {YEAR_MAX}") from None
    return seconds


def _topic(topic: str) -> str:
    if "+" in topic or "#" in topic:
        raise ValueError("a message has a topic, without wildcards")
    return topic


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None
    return text


Time = Annotated[float, BeforeValidator(_time), AfterValidator(_in_range)]
Base64 = Annotated[str, AfterValidator(_base64)]


class UserProperty(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: Text
    value: Text


class SampleMessage(BaseModel):
    """The columns of a message. ``published_at`` is now where it is not given."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    topic: Annotated[Text, Field(min_length=1, max_length=65535), AfterValidator(_topic)]
    payload: Any = ""
    payload_encoding: Literal["plain", "base64"] = "plain"
    qos: Annotated[int, Field(ge=0, le=2)] = 0
    retain: bool = False
    client_id: Text | None = None
    username: Text | None = None
    user_properties: Annotated[list[UserProperty], Field(max_length=1000)] | None = None
    content_type: Text | None = None
    response_topic: Text | None = None
    correlation_data: Annotated[Base64 | None, Field(description="base64")] = None
    payload_format: Annotated[int, Field(ge=0, le=1)] | None = None
    expires_at: Time | None = None
    published_at: Time | None = None
    partition: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    offset: Annotated[int, Field(ge=0, lt=1 << 62)] | None = None
    node: Text | None = None

    def columns(self) -> dict[str, Any]:
        """The columns that are given, as JSON can carry them: bytes as base 64, times as seconds."""
        found = self.model_dump(exclude={"payload", "payload_encoding"}, exclude_none=True)
        return {**found, "payload": base64.b64encode(self.payload_bytes()).decode()}

    def payload_bytes(self) -> bytes:
        """ValueError for a payload that is none."""
        if isinstance(self.payload, str):
            if self.payload_encoding == "base64":
                return base64.b64decode(_base64(self.payload))
            return self.payload.encode()
        if self.payload_encoding == "base64":
            raise ValueError("a payload in base64 is a text")
        return json.dumps(self.payload, ensure_ascii=False).encode()


def decoded(columns: dict[str, Any]) -> dict[str, Any]:
    """The other way round: columns with bytes and times."""
    found = dict(columns)
    for name in ("payload", "correlation_data"):
        if name in found:
            found[name] = base64.b64decode(found[name])
    for name in ("published_at", "expires_at"):
        if name in found:
            found[name] = datetime.fromtimestamp(found[name], UTC)
    return found

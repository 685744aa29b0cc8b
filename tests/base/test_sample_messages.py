"""Messages that people write to try a rule on: their payloads, their times, what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from brookmq.base.sample_messages import SampleMessage, decoded


def columns(**fields: Any) -> dict[str, Any]:
    """On their way through JSON."""
    given = SampleMessage.model_validate({"topic": "a/b", **fields}).columns()
    return decoded(json.loads(json.dumps(given)))


@pytest.mark.parametrize(
    ("fields", "payload"),
    [
        ({}, b""),
        ({"payload": "31 °C"}, "31 °C".encode()),
        ({"payload": {"temp": 31.5}}, b'{"temp": 31.5}'),
        ({"payload": [1, None]}, b"[1, null]"),
        ({"payload": 7}, b"7"),
        ({"payload": None}, b"null"),
        ({"payload": "AP8=", "payload_encoding": "base64"}, b"\x00\xff"),
    ],
)
def test_payloads(fields: dict[str, Any], payload: bytes) -> None:
    assert columns(**fields)["payload"] == payload


def test_what_is_given_is_there_and_nothing_else() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    given = {
        "qos": 1,
        "retain": True,
        "client_id": "c",
        "username": "u",
        "user_properties": [{"name": "n", "value": "v"}],
        "content_type": "text/plain",
        "response_topic": "r",
        "payload_format": 1,
        "partition": 3,
        "offset": 5,
        "node": "n",
    }
    times = {"published_at": "2026-01-31T12:00:00Z", "expires_at": noon.timestamp()}
    assert columns(**given, **times, correlation_data="AP8=") == {
        **given,
        "topic": "a/b",
        "payload": b"",
        "published_at": noon,
        "expires_at": noon,
        "correlation_data": b"\x00\xff",
    }
    assert columns() == {"topic": "a/b", "payload": b"", "qos": 0, "retain": False, "partition": 0}
    assert columns(published_at="2026-01-31T12:00:00")["published_at"] == noon, "without a zone it is UTC"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"topic": ""}, "topic"),
        ({"topic": "a/+"}, "without wildcards"),
        ({"topic": "\ud800"}, "lone surrogate"),
        ({"qos": 3}, "qos"),
        ({"published_at": "noon"}, "expected a time such as"),
        ({"published_at": 1e20}, "in the years 1 to 9999"),
        ({"expires_at": True}, "expires_at"),
        ({"correlation_data": "?"}, "not base64"),
        ({"user_properties": {"a": "b"}}, "user_properties"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SampleMessage.model_validate({"topic": "a", **fields})


@pytest.mark.parametrize("payload", ["?", {"a": 1}, "\ud800"])
def test_a_payload_that_is_none(payload: object) -> None:
    encoding = "plain" if payload == "\ud800" else "base64"
    with pytest.raises(ValueError, match=r"base64|surrogates"):
        SampleMessage(topic="a", payload=payload, payload_encoding=encoding).columns()

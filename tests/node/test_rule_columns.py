"""Columns that actions name have to come out of the rule."""

from __future__ import annotations

from typing import Any

import pytest

from brookmq.base.rule_documents import DocumentError, parse_action
from brookmq.node.rule_columns import check_columns

TYPES = {"room": "string", "t": "double", "raw": "binary", "v": "variant"}


def check(action: dict[str, Any], types: dict[str, str] = TYPES) -> None:
    check_columns([parse_action({"type": "console"}), parse_action(action)], types)
    check_columns([parse_action({"type": "console", "fallbacks": [action]})], types)


@pytest.mark.parametrize(
    "action",
    [
        {"type": "republish", "topic": "out/${room}/x", "payload": "raw"},
        {"type": "republish", "topic": "out", "payload": "room"},
        {"type": "republish", "topic": "out"},
        {"type": "delta", "path": "x", "partition_by": ["room", "t"]},
        {"type": "delta", "path": "x"},
    ],
)
def test_columns_that_are_there(action: dict[str, Any]) -> None:
    check(action)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"type": "republish", "topic": "${house}"}, "topic: the rule has no column house; it has room, t, raw, v"),
        ({"type": "republish", "topic": "${t}"}, "topic: the column t is double; a topic takes texts"),
        ({"type": "republish", "topic": "${v}"}, "topic: the column v is variant"),
        ({"type": "republish", "topic": "x", "payload": "t"}, "payload: the column t is double; a payload is a text"),
        ({"type": "republish", "topic": "x", "payload": "house"}, "payload: the rule has no column house"),
        ({"type": "delta", "path": "x", "partition_by": ["date"]}, "partition_by: the rule has no column date"),
    ],
)
def test_columns_that_are_not(action: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentError, match=r"^actions\.1\.") as error:
        check_columns([parse_action({"type": "console"}), parse_action(action)], TYPES)
    assert message in str(error.value)
    with pytest.raises(DocumentError, match=r"actions\.0\.fallbacks\.0\."):
        check_columns([parse_action({"type": "console", "fallbacks": [action]})], TYPES)


def test_a_date_is_made_of_the_time() -> None:
    check({"type": "delta", "path": "x", "partition_by": ["date"]}, {**TYPES, "published_at": "timestamp"})

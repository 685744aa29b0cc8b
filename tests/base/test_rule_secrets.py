"""Secrets of documents: never seen, and not lost when a document comes back as it was seen."""

from __future__ import annotations

from typing import Any

import pytest

from brookmq.base.rule_documents import DocumentError, parse_action, parse_resource
from brookmq.base.rule_secrets import HIDDEN, hidden, restored

ACTIONS: list[dict[str, Any]] = [
    {"type": "console", "rows": 5, "fallbacks": []},
    {
        "type": "webhook",
        "url": "https://me:hush@host:8443/in?room=7&access_token=hush&empty=",
        "headers": {"Authorization": "Bearer hush", "X-Api-Key": "hush", "X-Room": "7"},
        "fallbacks": [{"type": "postgresql", "uri": "postgresql://me:hu%40sh@host/db", "table": "hot"}],
    },
]


def test_no_secret_is_seen() -> None:
    seen = hidden(ACTIONS)
    assert "hush" not in str(seen)
    assert "hu%40sh" not in str(seen)
    assert seen[0] == ACTIONS[0]
    assert seen[1]["url"] == f"https://me:{HIDDEN}@host:8443/in?room=7&access_token={HIDDEN}&empty="
    assert seen[1]["headers"] == {"Authorization": HIDDEN, "X-Api-Key": HIDDEN, "X-Room": "7"}
    assert seen[1]["fallbacks"][0]["uri"] == f"postgresql://me:{HIDDEN}@host/db"
    for action in seen:
        parse_action(action)


def test_settings() -> None:
    assert hidden({"uri": "postgresql://me@host/db", "password": "hush"}) == {
        "uri": "postgresql://me@host/db",
        "password": HIDDEN,
    }
    assert hidden({"uri": "postgresql://me@host/db", "password": None})["password"] is None
    settings = hidden({"url": "http://host/", "token": "hush", "headers": {"Cookie": "hush"}})
    assert settings == {"url": "http://host/", "token": HIDDEN, "headers": {"Cookie": HIDDEN}}
    parse_resource({"name": "a", "type": "webhook", "settings": settings})


def test_what_was_seen_means_what_is_kept() -> None:
    assert restored(hidden(ACTIONS), ACTIONS) == ACTIONS
    settings = {"uri": "postgresql://me@host/db", "password": "hush"}
    assert restored(hidden(settings), settings) == settings


def test_an_action_that_moved_keeps_its_secrets() -> None:
    moved = [ACTIONS[1], ACTIONS[0]]
    assert restored(hidden(moved), ACTIONS) == moved


def test_two_that_look_alike_are_told_apart_by_their_places() -> None:
    actions = [{"type": "webhook", "url": f"http://me:{secret}@host"} for secret in ("one", "two")]
    assert restored(hidden(actions), actions) == actions


def test_a_new_secret_replaces_the_old_one() -> None:
    settings = {"uri": "postgresql://me@host/db", "password": "hush"}
    assert restored({**settings, "password": "new"}, settings)["password"] == "new"


@pytest.mark.parametrize(
    ("value", "kept", "where"),
    [
        ({"password": HIDDEN}, None, "password"),
        ({"password": HIDDEN}, {"password": None}, "password"),
        ({"uri": f"postgresql://me:{HIDDEN}@other/db"}, {"uri": "postgresql://me:hush@host/db"}, "uri"),
        ([{"headers": {"Cookie": HIDDEN}}], [{"headers": {"X-Key": "hush"}}], "0.headers.Cookie"),
    ],
)
def test_a_secret_that_is_not_kept_has_to_be_written(value: Any, kept: Any, where: str) -> None:
    """Above all the secret of one address is never sent to another."""
    with pytest.raises(DocumentError) as error:
        restored(value, kept)
    assert str(error.value).startswith(f"{where}: {HIDDEN} stands for a secret")


def test_stars_elsewhere_are_stars() -> None:
    value = {"topic": HIDDEN, "headers": {"X-Room": HIDDEN}, "token": f"a{HIDDEN}"}
    assert restored(value, None) == value

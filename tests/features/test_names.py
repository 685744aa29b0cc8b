"""Names as long as MQTT allows, of all characters that it allows, through the store and a restart of the node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Property

NAME_BYTES_MAX = 65_535
KEPT = [(Property.SESSION_EXPIRY, 3600)]
NAMES = {
    "long": "x" * NAME_BYTES_MAX,
    "long, four bytes each": "\U0001f41f" * (NAME_BYTES_MAX // 4),
    "subjects of the store": "> * . $JS.API.> journal_0 \t",
    "wildcards": "#/+/$share/g/#",
    "empty levels": "//",
    "separators": "a\x01b\x1fc\x7fd\x85e",
}


def every_character() -> Iterator[str]:
    """All that may stand in a topic name [MQTT-1.5.4-1, -2, MQTT-4.7.1-1], as topics of legal length."""
    allowed = [
        chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF and chr(code) not in {"#", "+", "$"}
    ]
    letters = iter(allowed)
    while characters := [*islice(letters, 16_000)]:
        yield "all/" + "".join(characters)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_client_ids(tmp_path: Path, name: str) -> None:
    node = Node(tmp_path)
    try:
        with Client(node.mqtt).connect(name, clean=True, props=KEPT) as away:
            away.subscribe("t", qos=2)
        with Client(node.mqtt).connect("writer") as writer:
            writer.publish("t", b"kept", qos=2)
        node.stop()
        node = Node(tmp_path)
        with Client(node.mqtt).connect(name, clean=False, props=KEPT) as back:
            assert back.connack.session_present
            assert back.take_payloads(1) == [b"kept"]
    finally:
        node.stop()


def test_topics_and_filters(tmp_path: Path) -> None:
    topics = [*every_character(), "x" * NAME_BYTES_MAX, "/" * 100]
    node = Node(tmp_path)
    try:
        with Client(node.mqtt).connect("away", clean=True, props=KEPT) as away:
            away.subscribe("#", qos=1)
        with Client(node.mqtt).connect("exact", clean=True, props=KEPT) as exact:
            exact.subscribe(topics[-2], qos=1)
        with Client(node.mqtt).connect("writer") as writer:
            for topic in topics:
                writer.publish(topic, topic.encode()[:10], qos=1, retain=True)
        node.kill()
        node = Node(tmp_path)
        with Client(node.mqtt).connect("away", clean=False, props=KEPT) as back:
            assert {back.take().topic for _ in topics} == {topic.encode() for topic in topics}
        with Client(node.mqtt).connect("exact", clean=False, props=KEPT) as back:
            assert back.take().topic == topics[-2].encode()
        with Client(node.mqtt).connect("new") as new:
            new.subscribe("#", qos=1)
            assert {new.take().topic for _ in topics} == {topic.encode() for topic in topics}
    finally:
        node.stop()

"""The wildcard scenario: every topic it uses is matched by exactly one of its filters, on all sides of the tool."""

from __future__ import annotations

import re

import pytest

from brookmq.bench import packets, scenarios
from brookmq.bench.packets import SerialTopic


def matches(topic_filter: bytes, topic: bytes) -> bool:
    pattern = re.escape(topic_filter.decode()).replace(r"\+", "[^/]+").replace(r"/\#", "(/.*)?").replace("/#", "(/.*)?")
    return re.fullmatch(pattern, topic.decode()) is not None


def topics(topic: SerialTopic, count: int, first_serial: int = 0) -> list[bytes]:
    block = packets.publish_block(topic, 0, 4, 0, count)
    block.serial = first_serial
    block.fill(count, 0)
    length = block.packet_length
    return [bytes(block.data[start + 4 : start + length]) for start in range(0, count * length, length)]


@pytest.mark.parametrize("new", [False, True])
def test_each_topic_has_one_filter(new: bool) -> None:
    filters = {scenarios.wildcard_filter("bench", number, 4) for number in range(2000)}
    assert len(filters) == 2000
    stride, modulus = (scenarios.NEW_TOPIC_STRIDE, 10**11) if new else (2, 1000)
    used = topics(SerialTopic(b"bench/wild/", 4, 2000, stride, 11, modulus), 40, first_serial=990)
    assert len(set(used)) == 40
    for topic in used:
        assert sum(matches(topic_filter, topic) for topic_filter in filters) == 1


def test_topics_seen_before_come_round_again() -> None:
    topic = SerialTopic(b"bench/wild/", 5, 10_000, 10, 11, scenarios.SEEN_TOPICS)
    assert topics(topic, 5) == topics(topic, 5, first_serial=scenarios.SEEN_TOPICS)


def test_all_four_shapes_are_used_and_evenly_spread() -> None:
    # The topics of a run use every hundredth filter only: these must be of all shapes too.
    shapes = [scenarios.wildcard_filter("b", number, 6).count(b"+") for number in range(0, 100_000, 100)]
    assert {count: shapes.count(count) for count in (0, 1, 2)} == pytest.approx({0: 250, 1: 500, 2: 250}, rel=0.1)

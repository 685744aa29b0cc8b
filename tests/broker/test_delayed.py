"""Delayed publish: the topic, the limits and the order in which messages become due."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.delayed import INTERVAL_SECONDS_MAX, DelayedMessages, parse, postponed

NOW = 1_800_000_000.0


def message(payload: bytes = b"1") -> Message:
    return Message(b"t", payload, 1)


@pytest.mark.parametrize(
    ("topic", "parsed"),
    [
        (b"$delayed/15/x/y", (15, b"x/y")),
        (b"$delayed/0/x", (0, b"x")),
        (b"$delayed/0060/a/b", (60, b"a/b")),
        (b"$delayed/3600/$SYS/topic", (3600, b"$SYS/topic")),
        (b"$delayed/1/ ", (1, b" ")),
        (b"$delayed/5//x", (5, b"/x")),
        (b"$delayed", None),
        (b"$delayedx/5/a", None),
        (b"a/$delayed/5/b", None),
    ],
)
def test_topics(topic: bytes, parsed: tuple[int, bytes] | None) -> None:
    assert parse(topic) == parsed


@pytest.mark.parametrize(
    "topic",
    [
        b"$delayed/",
        b"$delayed//a",
        b"$delayed/5",
        b"$delayed/5/",
        b"$delayed/x/a",
        b"$delayed/-5/a",
        b"$delayed/+5/a",
        b"$delayed/1.5/a",
        b"$delayed/1_0/a",
        b"$delayed/ 5/a",
        "$delayed/٣/a".encode(),
        b"$delayed/" + b"9" * 60_000 + b"/a",
        b"$delayed/5/$delayed/5/a",
    ],
)
def test_malformed_topics_are_the_peers_fault(topic: bytes) -> None:
    with pytest.raises(PeerError) as caught:
        parse(topic)
    assert caught.value.reason == 0x90


@given(st.binary(max_size=40))
def test_any_bytes_are_parsed_or_refused(rest: bytes) -> None:
    try:
        parsed = parse(b"$delayed/" + rest)
    except PeerError:
        return
    assert parsed is not None
    assert rest.endswith(parsed[1])


def test_an_interval_counts_from_now() -> None:
    waiting = DelayedMessages(10)
    assert waiting.due_at(15, NOW) == NOW + 15
    assert waiting.due_at(INTERVAL_SECONDS_MAX, NOW) == NOW + INTERVAL_SECONDS_MAX


def test_a_larger_number_is_a_point_in_time() -> None:
    waiting = DelayedMessages(10)
    assert waiting.due_at(int(NOW) + 60, NOW) == NOW + 60
    assert waiting.due_at(int(NOW) - 60, NOW) == NOW  # just over: due at once


@pytest.mark.parametrize("seconds", [INTERVAL_SECONDS_MAX + 1, int(NOW) + INTERVAL_SECONDS_MAX + 1, 9_999_999_999])
def test_too_far_away(seconds: int) -> None:
    with pytest.raises(PeerError) as caught:
        DelayedMessages(10).due_at(seconds, NOW)
    assert caught.value.reason == 0x90


def test_the_longest_delay_is_configured() -> None:
    waiting = DelayedMessages(10, delay_max=60)
    assert waiting.due_at(60, NOW) == NOW + 60
    with pytest.raises(PeerError):
        waiting.due_at(61, NOW)


def test_messages_become_due_in_the_order_of_their_time() -> None:
    waiting = DelayedMessages(10)
    for due, payload in ((3.0, b"c"), (1.0, b"a"), (2.0, b"b1"), (2.0, b"b2")):
        assert waiting.add(message(payload), due)
    assert waiting.next_due() == 1.0
    assert waiting.due(0.9, 10) == []
    assert [taken.payload for taken in waiting.due(2.0, 2)] == [b"a", b"b1"]
    assert [taken.payload for taken in waiting.due(9.0, 10)] == [b"b2", b"c"]
    assert (waiting.next_due(), waiting.count, waiting.bytes) == (None, 0, 0)
    waiting.check_invariants()


def test_limits_refuse() -> None:
    waiting = DelayedMessages(2, bytes_max=5)
    assert waiting.add(message(b"12"), 1.0)  # 3 bytes with its topic
    assert not waiting.add(message(b"12"), 1.0)
    assert waiting.add(message(b"1"), 1.0)
    assert not waiting.add(message(b""), 1.0)
    assert (waiting.refused, waiting.count, waiting.bytes) == (2, 2, 5)
    waiting.due(1.0, 1)
    assert waiting.add(message(b"1"), 1.0)


def test_listing_and_removal() -> None:
    waiting = DelayedMessages(0)
    for number in range(5):
        waiting.add(message(b"%d" % number), 10.0 - number)
    assert [entry.id for entry in waiting.page(0, 2)] == [1, 2]
    assert [entry.id for entry in waiting.page(2, 10)] == [3, 4, 5]
    removed = waiting.remove(5)
    assert removed is not None
    assert removed.payload == b"4"
    assert waiting.remove(5) is None
    assert waiting.next_due() == 7.0
    assert [taken.payload for taken in waiting.due(99.0, 10)] == [b"3", b"2", b"1", b"0"]


def test_removed_messages_leave_no_growing_heap() -> None:
    waiting = DelayedMessages(0)
    for number in range(1_000):
        waiting.add(message(), 1_000.0 + number)
        waiting.remove(number + 1)
    assert len(waiting._heap) <= 128
    waiting.check_invariants()


def test_a_postponed_message_lives_from_its_due_time() -> None:
    original = Message(b"$delayed/60/x", b"p", 2, True, b"prop", NOW + 30, NOW, "client", "user")
    later = postponed(original, b"x", NOW + 60, NOW)
    assert (later.topic, later.payload, later.qos, later.retain, later.properties) == (b"x", b"p", 2, True, b"prop")
    assert (later.expires_at, later.published_at) == (NOW + 90, NOW + 60)
    assert (later.client_id, later.username) == ("client", "user")
    assert postponed(message(), b"x", NOW + 60, NOW).expires_at == 0.0

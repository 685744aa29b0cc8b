"""Topic names, topic filters and shared subscriptions. [sections 4.7 and 4.8.2]"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.reasons import MALFORMED_PACKET, TOPIC_FILTER_INVALID, TOPIC_NAME_INVALID
from brookmq.mqtt.topics import (
    FilterKind,
    ParsedFilter,
    check_filter,
    check_name,
    has_wildcard,
    is_shared,
    matches,
    parse_subscription,
)

LEVELS = st.sampled_from(["a", "b", "", "é", "$", "$SYS", "ab"])
NAMES = st.lists(LEVELS, min_size=1, max_size=5).map("/".join).filter(len)
FILTERS = (
    st.tuples(st.lists(LEVELS | st.just("+"), max_size=5), st.sampled_from([[], ["#"]]))
    .map(lambda parts: "/".join(parts[0] + parts[1]))
    .filter(len)
)


@pytest.mark.parametrize(
    "topic", [b"a", b"/", b"//", b"a/b", b"/a", b"a/", b" ", b"$SYS/x", "é/日".encode(), b"x" * 65_535]
)
def test_names_to_publish_to(topic: bytes) -> None:
    check_name(topic, 0)


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (b"", TOPIC_NAME_INVALID),  # [MQTT-4.7.3-1]
        (b"#", TOPIC_NAME_INVALID),  # [MQTT-3.3.2-2]
        (b"a/+", TOPIC_NAME_INVALID),
        (b"a+b", TOPIC_NAME_INVALID),
        (b"a\x00b", MALFORMED_PACKET),  # [MQTT-4.7.3-2]
        (b"\xed\xa0\x80", MALFORMED_PACKET),  # [MQTT-1.5.4-1]
        (b"\xff", MALFORMED_PACKET),
    ],
)
def test_what_is_no_name(topic: bytes, reason: int) -> None:
    with pytest.raises(PacketError) as caught:
        check_name(topic, 0)
    assert caught.value.reason == reason


def test_levels_are_counted_up_to_the_limit() -> None:
    check_name(b"a/b/c", 3)
    check_filter("a/+/#", 3)
    parse_subscription("$share/group/a/b/c", 3)
    with pytest.raises(PacketError, match="more than 2 levels") as caught:
        check_name(b"a/b/c", 2)
    assert caught.value.reason == TOPIC_NAME_INVALID
    with pytest.raises(PacketError, match="more than 2 levels") as caught:
        check_filter("a/+/#", 2)
    assert caught.value.reason == TOPIC_FILTER_INVALID
    with pytest.raises(PacketError, match="more than 2 levels"):
        parse_subscription("$share/group/a/b/c", 2)


@pytest.mark.parametrize(
    "good", ["#", "+", "/", "a", "a/#", "+/+", "/+", "+/a/#", "/#", "a//b", "$SYS/#", "a/+/b", "é"]
)
def test_filters(good: str) -> None:
    check_filter(good)
    assert parse_subscription(good) == ParsedFilter(FilterKind.PLAIN, None, good)


@pytest.mark.parametrize("bad", ["", "a#", "#a", "a/#/b", "##", "#/", "a+", "+a", "a/b+/c", "++", "a/+b", "a\0", "#/#"])
def test_what_is_no_filter(bad: str) -> None:  # [MQTT-4.7.1-1, MQTT-4.7.1-2, MQTT-4.7.3-1, MQTT-4.7.3-2]
    for check in (check_filter, parse_subscription):
        with pytest.raises(PacketError) as caught:
            check(bad)
        assert caught.value.reason == TOPIC_FILTER_INVALID


@pytest.mark.parametrize(
    ("asked", "group", "rest"),
    [("$share/g/a/b", "g", "a/b"), ("$share/g/#", "g", "#"), ("$share/g//", "g", "/"), ("$share/é/+", "é", "+")],
)
def test_shared_filters(asked: str, group: str, rest: str) -> None:
    assert parse_subscription(asked) == ParsedFilter(FilterKind.SHARED, group, rest)
    assert is_shared(asked)


@pytest.mark.parametrize(
    "bad",
    [
        "$share/",  # [MQTT-4.8.2-1]
        "$share//a",
        "$share/g",  # [MQTT-4.8.2-2]
        "$share/g/",
        "$share/+/a",
        "$share/#",
        "$share/g+/a",
        "$share/g#/a",
        "$share/g/a#",
        "$share/g\0/a",
    ],
)
def test_what_is_no_shared_filter(bad: str) -> None:
    with pytest.raises(PacketError) as caught:
        parse_subscription(bad)
    assert caught.value.reason == TOPIC_FILTER_INVALID


@pytest.mark.parametrize("bad", ["$share/g", "$share/g/"])
def test_a_share_name_alone_is_told_so(bad: str) -> None:
    with pytest.raises(PacketError, match="nothing behind the share name"):
        parse_subscription(bad)


@pytest.mark.parametrize("plain", ["$share", "$shared/g/a", "$SHARE/g/a", "share/g/a", "/$share/g/a"])
def test_what_only_looks_shared(plain: str) -> None:
    assert parse_subscription(plain) == ParsedFilter(FilterKind.PLAIN, None, plain)
    assert not is_shared(plain)


def test_wildcards() -> None:
    assert has_wildcard("a/+")
    assert has_wildcard("#")
    assert not has_wildcard("a/b")
    assert has_wildcard(b"a/+")
    assert has_wildcard(b"#")
    assert not has_wildcard(b"a/b")


# [sections 4.7.1 and 4.7.2] the cases of the specification and their neighbours
@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/tennis/player1/#", "sport/tennis/player10", False),
        ("sport/#", "sport", True),
        ("sport/#", "sports", False),
        ("#", "anything/at/all", True),
        ("#", "/", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/uptime", False),  # [MQTT-4.7.2-1]
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor/Clients", True),
        ("$SYS/#", "$SYS", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("a/#", "a/$b", True),
        ("a/+/b/#", "a/x/b", True),
        ("a/+/b/#", "a/x", False),
        ("+/#", "a", True),
        ("/#", "", False),
        ("a", "A", False),  # [MQTT-4.7.3-4]
        ("a", "a/", False),
        ("a/", "a", False),
        ("a/b", "a", False),
        ("é", "e\u0301", False),
    ],
)
def test_matching(topic_filter: str, topic: str, expected: bool) -> None:
    assert matches(topic_filter.encode(), topic.encode()) is expected


def by_definition(topic_filter: str, topic: str) -> bool:
    """The rules of section 4.7 on lists of levels."""
    if topic.startswith("$") and topic_filter[0] in "#+":
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        if len(levels) < len(wanted):
            return False
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(want in {"+", level} for want, level in zip(wanted, levels, strict=True))


@given(FILTERS, NAMES)
def test_matching_is_as_defined(topic_filter: str, topic: str) -> None:
    check_filter(topic_filter)
    check_name(topic.encode(), 0)
    assert matches(topic_filter.encode(), topic.encode()) == by_definition(topic_filter, topic)


@given(NAMES)
def test_a_name_matches_itself(topic: str) -> None:
    assert matches(topic.encode(), topic.encode())


@given(st.text(max_size=30))
def test_any_text_is_a_filter_or_an_error_of_ours(text: str) -> None:
    try:
        parsed = parse_subscription(text)
    except PacketError as error:
        assert error.reason == TOPIC_FILTER_INVALID  # noqa: PT017
    else:
        assert text.endswith(parsed.filter)

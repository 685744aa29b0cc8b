"""Topic names and topic filters: what is well formed, what matches, what is shared. [sections 4.7 and 4.8.2]

A topic name is bytes, because it is what messages carry; a filter comes from SUBSCRIBE and is text. `matches` is the
rule itself, level by level; the topic index gives the same answers faster, and is tested against it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.primitives import check_text
from brookmq.mqtt.reasons import TOPIC_FILTER_INVALID, TOPIC_NAME_INVALID

_SHARE: Final = "$share/"
_SLASH: Final = 0x2F
_PLUS: Final = 0x2B
_HASH: Final = 0x23
_DOLLAR: Final = 0x24


class FilterKind(Enum):
    PLAIN = "plain"
    SHARED = "shared"


class ParsedFilter(NamedTuple):
    """What a SUBSCRIBE asks for: ``filter`` is what topics are matched with, ``group`` the share name if shared."""

    kind: FilterKind
    group: str | None
    filter: str


def check_name(topic: bytes, levels_max: int = 0) -> None:
    """Refuse bytes that are not a topic name to publish to. ``levels_max`` 0 means no limit."""
    check_text(topic, "topic name")  # [MQTT-3.3.2-1]
    if not topic:
        raise PacketError(TOPIC_NAME_INVALID, "topic name: empty")  # [MQTT-4.7.3-1]
    if b"+" in topic or b"#" in topic:
        raise PacketError(TOPIC_NAME_INVALID, "topic name: with wildcards")  # [MQTT-3.3.2-2]
    if levels_max and topic.count(b"/") >= levels_max:
        raise PacketError(TOPIC_NAME_INVALID, f"topic name: more than {levels_max} levels")


def check_filter(filter: str, levels_max: int = 0) -> None:
    """Refuse text that is not a topic filter. ``levels_max`` 0 means no limit."""
    if not filter:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: empty")  # [MQTT-4.7.3-1]
    if "\0" in filter:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: contains U+0000")  # [MQTT-4.7.3-2]
    if levels_max and filter.count("/") >= levels_max:
        raise PacketError(TOPIC_FILTER_INVALID, f"topic filter: more than {levels_max} levels")
    at = filter.find("#")
    if at >= 0 and (at != len(filter) - 1 or (at > 0 and filter[at - 1] != "/")):
        # [MQTT-4.7.1-1] alone or behind a slash, and the last character
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: # is not the whole last level")
    if "+" in filter:
        for level in filter.split("/"):
            if "+" in level and level != "+":
                raise PacketError(TOPIC_FILTER_INVALID, "topic filter: + is not a whole level")  # [MQTT-4.7.1-2]


def has_wildcard(filter: str | bytes) -> bool:
    if isinstance(filter, bytes):
        return b"+" in filter or b"#" in filter
    return "+" in filter or "#" in filter


def is_shared(filter: str) -> bool:
    return filter.startswith(_SHARE)


def parse_subscription(filter: str, levels_max: int = 0) -> ParsedFilter:
    """Check a filter of a SUBSCRIBE or UNSUBSCRIBE and take ``$share/GROUP/FILTER`` apart."""
    if not filter.startswith(_SHARE):
        check_filter(filter, levels_max)
        return ParsedFilter(FilterKind.PLAIN, None, filter)
    group, slash, rest = filter[len(_SHARE) :].partition("/")
    if not group:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: share name empty")  # [MQTT-4.8.2-1]
    if "+" in group or "#" in group:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: share name with wildcards")  # [MQTT-4.8.2-2]
    if not slash or not rest:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: nothing behind the share name")  # [MQTT-4.8.2-2]
    check_filter(rest, levels_max)
    if "\0" in group:
        raise PacketError(TOPIC_FILTER_INVALID, "topic filter: contains U+0000")  # [MQTT-4.7.3-2]
    return ParsedFilter(FilterKind.SHARED, group, rest)


def matches(filter: bytes, topic: bytes) -> bool:
    """Whether a well-formed filter matches a topic name: byte by byte, case and all. [MQTT-4.7.3-4]"""
    filter_size = len(filter)
    topic_size = len(topic)
    if filter_size == 0 or topic_size == 0:
        return False
    if topic[0] == _DOLLAR and (filter[0] == _HASH or filter[0] == _PLUS):
        return False  # [MQTT-4.7.2-1]
    f = t = 0
    while f < filter_size:
        byte = filter[f]
        if byte == _HASH:
            return True
        if byte == _PLUS:
            while t < topic_size and topic[t] != _SLASH:
                t += 1
            f += 1
        elif t < topic_size and topic[t] == byte:
            f += 1
            t += 1
        else:
            # "a/#" matches "a" too: the multi-level wildcard includes the parent level
            return t == topic_size and f == filter_size - 2 and byte == _SLASH and filter[f + 1] == _HASH
    return t == topic_size

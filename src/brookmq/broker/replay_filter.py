"""``$replay/…``: a subscription to history, taken apart.

    $replay/earliest/FILTER         everything that is still there
    $replay/time/TIMESTAMP/FILTER   what was published then or later: unix seconds, with a fraction if need be; 12
                                    digits or more are milliseconds; or 2026-01-01T00:00:00Z, always UTC, since an
                                    offset with + can't stand in a filter
    $replay/offset/0:17,3:5/FILTER  partition 0 from offset 17 on, partition 3 from 5, others from their earliest
    $replay/offset/17/TOPIC         one topic is in one partition, which need not be named then

What messages bring in their user properties goes back in as it came: partition, and offset plus one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

from brookmq.base.errors import PeerError
from brookmq.base.events import PREFIX as EVENTS_PREFIX
from brookmq.mqtt.reasons import TOPIC_FILTER_INVALID
from brookmq.mqtt.topics import has_wildcard
from brookmq.store.session_state import OFFSET_BITS

PREFIX: Final = "$replay/"
MILLISECONDS_DIGITS_MIN: Final = 12  # as seconds that would be in the year 5138 or later

_NUMBER: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_MOMENT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?Z")
_OFFSET: Final = re.compile(r"[0-9]{1,15}")
_POSITION: Final = re.compile(r"([0-9]{1,4}):([0-9]{1,15})")

_FORMS: Final = "$replay/earliest/FILTER, $replay/time/TIMESTAMP/FILTER or $replay/offset/OFFSETS/FILTER"


class ReplayStart(NamedTuple):
    """Where a replay begins. Without a time and offsets: with the oldest message that is there."""

    filter: str
    time: float | None = None  # unix seconds: nothing that was published before
    offset: int | None = None  # of the one partition that ``filter`` is in
    offsets: tuple[tuple[int, int], ...] = ()  # (partition, offset)


def parse_replay(text: str) -> ReplayStart:
    """What a filter that begins with ``$replay/`` asks for; PeerError with 0x8F and a reason when it can't be."""
    way, _, rest = text[len(PREFIX) :].partition("/")
    if way == "earliest":
        return ReplayStart(_checked(rest))
    where, _, rest = rest.partition("/")
    if way == "time":
        return ReplayStart(_checked(rest), time=_time(where))
    if way == "offset":
        filter = _checked(rest)
        if _OFFSET.fullmatch(where) is None:
            return ReplayStart(filter, offsets=_positions(where))
        if has_wildcard(filter):
            raise _wrong("an offset without its partition says nothing about a filter with wildcards: 0:17,1:5")
        return ReplayStart(filter, offset=_offset(where))
    raise _wrong(f"the forms are {_FORMS}")


def _checked(filter: str) -> str:
    if not filter:
        raise _wrong(f"there is no topic filter in it; the forms are {_FORMS}")
    if filter.startswith("$") and not filter.startswith(EVENTS_PREFIX):
        raise _wrong("of topics that begin with $ only $events are captured; a replay is neither shared nor exclusive")
    return filter


def _time(text: str) -> float:
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value / 1000 if len(text.partition(".")[0]) >= MILLISECONDS_DIGITS_MIN else value
    if _MOMENT.fullmatch(text):
        try:
            return datetime.fromisoformat(text).astimezone(UTC).timestamp()
        except ValueError:  # the 30th of February
            pass
    raise _wrong("the time is unix seconds, or like 2026-01-01T00:00:00Z")


def _positions(text: str) -> tuple[tuple[int, int], ...]:
    found: dict[int, int] = {}
    for part in text.split(","):
        position = _POSITION.fullmatch(part)
        if position is None:
            raise _wrong("offsets are PARTITION:OFFSET, with commas between them")
        partition = int(position[1])
        if partition in found:
            raise _wrong(f"partition {partition} has two offsets")
        found[partition] = _offset(position[2])
    return tuple(found.items())


def _offset(text: str) -> int:
    offset = int(text)
    if offset >= 1 << OFFSET_BITS:
        raise _wrong("there is no such offset")
    return offset


def _wrong(why: str) -> PeerError:
    return PeerError(TOPIC_FILTER_INVALID, f"replay: {why}")

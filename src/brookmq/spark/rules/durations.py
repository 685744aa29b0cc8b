"""Durations of windows and watermarks: ``'1 minute'``."""

from __future__ import annotations

import re
from typing import Final

from brookmq.spark.rules.errors import Refusal
from brookmq.spark.rules.nodes import Text

_DURATION: Final = re.compile(r"\s*(\d{1,9})\s*(millisecond|second|minute|hour|day|week)s?\s*\Z", re.IGNORECASE)
_MILLISECONDS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
DURATION_MS_MAX: Final = 366 * 86_400_000
"""A year: the state of a window lives as long as it is open."""


def milliseconds(text: Text) -> int:
    match = _DURATION.match(text.value)
    if match is None:
        raise Refusal(f"{text.value!r} is not a duration", text.at, "'30 seconds', '1 minute', '2 hours', '1 day'")
    found = int(match[1]) * _MILLISECONDS[match[2].lower()]
    if found > DURATION_MS_MAX:
        raise Refusal("the duration is longer than a year", text.at)
    return found


def written(duration_ms: int) -> str:
    """As Spark reads it, in the largest unit that leaves no rest."""
    for unit in ("week", "day", "hour", "minute", "second"):
        if duration_ms and duration_ms % _MILLISECONDS[unit] == 0:
            return f"{duration_ms // _MILLISECONDS[unit]} {unit}s"
    return f"{duration_ms} milliseconds"

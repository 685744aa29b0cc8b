"""Checks of arguments that must be constants: what they may be, so that no message can make Spark stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
PATTERN_CHARACTERS_MAX: Final = 512


def number_between(low: int, high: int) -> Callable[[str], str]:
    def check(value: str) -> str:
        return "" if low <= int(value) <= high else f"a number from {low} to {high} is needed"

    return check


def fraction(value: str) -> str:
    return "" if 0 <= float(value) <= 1 else "a number from 0 to 1 is needed"


def unit(value: str) -> str:
    return "" if value.lower() in UNITS else f"one of {', '.join(UNITS)} is needed"


def pattern(value: str) -> str:
    if not value:
        return "the pattern is empty"
    return (
        "" if len(value) <= PATTERN_CHARACTERS_MAX else f"the pattern has more than {PATTERN_CHARACTERS_MAX} characters"
    )


def not_empty(value: str) -> str:
    return "" if value else "the text is empty"


def field_name(value: str) -> str:
    known = (
        value.isascii() and value.replace("_", "a").isalnum() and not value[0].isdigit() and not value.startswith("__")
    )
    return "" if known and len(value) <= 128 else "a field's name has letters, digits and _"

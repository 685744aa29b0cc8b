"""Two filters overlap exactly when some topic name matches both: against all short names."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.mqtt.overlap import overlap
from brookmq.mqtt.topics import check_filter, matches

WORDS = ("", "a", "b", "$s")
LEVELS_MAX = 3
# One level more than any filter has: what "#" stands for is seen, too. The empty name is no topic name.
NAMES = [
    name
    for count in range(1, LEVELS_MAX + 2)
    for levels in product(WORDS, repeat=count)
    if (name := "/".join(levels).encode())
]


@st.composite
def filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(st.sampled_from([*WORDS, "+"]), max_size=LEVELS_MAX))
    if len(levels) < LEVELS_MAX and draw(st.booleans()):
        levels.append("#")
    filter = "/".join(levels) or "#"
    check_filter(filter)
    return filter


@given(filters(), filters())
def test_it_is_as_if_all_names_were_tried(one: str, other: str) -> None:
    common = [name for name in NAMES if matches(one.encode(), name) and matches(other.encode(), name)]
    assert overlap(one, other) is bool(common)
    assert overlap(other, one) is bool(common)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/#", "a", True),
        ("a/#", "b/#", False),
        ("+/b", "a/+", True),
        ("#", "$events/x", False),
        ("+/x", "$events/x", False),
        ("$events/#", "$events/+", True),
        ("a/+", "a/+/c/#", False),
        ("a/+", "a/+/#", True),
        ("/#", "+/a", True),
        ("/#", "+", False),
        ("+/#", "+", True),
    ],
)
def test_examples(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is expected

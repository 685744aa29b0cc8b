"""Whether two topic filters have a topic name in common. [section 4.7]

A reader of the journal asks for filters, and batches say which *capture* filters matched something in them: only those
that overlap with what the reader asks for can have something for it.
"""

from __future__ import annotations

from typing import Final

_WILD: Final = frozenset({"+", "#"})


def overlap(one: str, other: str) -> bool:
    """Whether some topic name matches both of these well-formed filters.

    Level by level, both have to be able to match the same text. A filter always matches some name, so where one has
    come to its ``#`` the rest of the other decides nothing any more.
    """
    ours, theirs = one.split("/"), other.split("/")
    if (ours[0] in _WILD and theirs[0].startswith("$")) or (theirs[0] in _WILD and ours[0].startswith("$")):
        return False  # [MQTT-4.7.2-1]
    for mine, yours in zip(ours, theirs, strict=False):
        if "#" in (mine, yours):
            return True
        if mine != yours and "+" not in (mine, yours):
            return False
    if {one, other} == {"+", "/#"}:
        return False  # they have the empty name in common, and that is none [MQTT-4.7.3-1]
    longer = max(ours, theirs, key=len)
    shorter = min(len(ours), len(theirs))
    return len(longer) == shorter or longer[shorter] == "#"  # "a/#" matches "a" too

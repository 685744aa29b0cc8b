"""MQTT topic filters in Spark: as an expression of its own language, and as a function for those who read records.

An expression and not a Python function, because Spark runs it inside of its generated code, for about 0.1 µs a row, and
can push it to where the rows come from. It has the meaning of ``mqtt.topics.matches``, and is tested against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.topics import check_filter, has_wildcard, matches

if TYPE_CHECKING:
    from pyspark.sql import Column

# In Java's and in Python's expressions alike; a topic may hold line ends, and no wildcard stops at them.
_LEVEL: Final = "[^/]*"
_REST: Final = "(?:/.*)?"
_NOT_HIDDEN: Final = r"(?![$])"  # [MQTT-4.7.2-1]: a wildcard at the beginning does not match $…
_SPECIAL: Final = re.compile(r"[\\^$.|?*+()\[\]{}]")


def checked_filter(filter: str) -> str:
    """The filter itself, when it is one; ``ValueError`` says what is wrong with it."""
    try:
        check_filter(filter)
    except PacketError as error:
        raise ValueError(f"brookmq: {filter!r} is no topic filter: {error}") from None
    return filter


def matcher(filters: Sequence[str]) -> Callable[[bytes], bool]:
    """A function that tells whether one of the filters matches a topic."""
    encoded = [checked_filter(filter).encode() for filter in filters]
    if encoded == [b"#"]:
        return _is_not_hidden
    return lambda topic: any(matches(filter, topic) for filter in encoded)


def _is_not_hidden(topic: bytes) -> bool:
    return topic[:1] not in (b"$", b"")


def pattern(filter: str) -> str:
    """A regular expression for a filter with wildcards: the same for Java and, but for its end, for Python."""
    levels = filter.split("/")
    rest = levels[-1] == "#"
    if rest:
        levels.pop()
    text = "/".join(_LEVEL if level == "+" else _SPECIAL.sub(r"\\\g<0>", level) for level in levels)
    if rest:
        text = text + _REST if levels else ".*"
    hidden = _NOT_HIDDEN if filter[0] in "+#" else ""
    return rf"(?s)^{hidden}{text}\z"


def prefix(filter: str) -> str:
    """What every topic begins with that a filter with wildcards matches."""
    before = re.split(r"[+#]", filter, maxsplit=1)[0]
    # "a/#" matches "a" as well, and then what is common ends before the slash.
    return before[:-1] if filter == before + "#" and before else before


def topic_matches(column: Column | str, filter: str) -> Column:
    """A column that is true where the topic in ``column`` matches an MQTT topic filter.

    >>> messages.where(topic_matches("topic", "sensors/+/data"))
    """
    from pyspark.sql import functions as f

    checked_filter(filter)
    topic = f.col(column) if isinstance(column, str) else column
    if not has_wildcard(filter):
        return topic == f.lit(filter)
    if filter.endswith("/#") and not has_wildcard(filter[:-2]) and len(filter) > len("/#"):
        return topic.startswith(filter[:-1]) | (topic == f.lit(filter[:-2]))
    found = topic.rlike(pattern(filter)) & (topic != f.lit(""))
    begins = prefix(filter)
    return topic.startswith(begins) & found if begins else found

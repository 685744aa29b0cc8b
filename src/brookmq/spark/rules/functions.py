"""All functions of rules: the allow list, the types, what Spark gets, and the table in the guide.

None of them can fail on a message: Spark's ANSI mode raises on an overflow, a division by zero, a bad date or an index
out of range, and an exception stops the whole stream. So everything that could raise is emitted in its ``try_`` form
or takes constants that were checked before.
"""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules.function_table.aggregates import AGGREGATES, WINDOWS
from brookmq.spark.rules.function_table.numbers import NUMBERS
from brookmq.spark.rules.function_table.texts import TEXTS
from brookmq.spark.rules.function_table.times import TIMES
from brookmq.spark.rules.function_table.values import CONDITIONS, JSON_AND_LISTS
from brookmq.spark.rules.signatures import Function

GROUPS: Final[dict[str, tuple[Function, ...]]] = {
    "arithmetic": NUMBERS,
    "text": TEXTS,
    "date and time": TIMES,
    "conditional": CONDITIONS,
    "JSON and lists": JSON_AND_LISTS,
    "aggregate": AGGREGATES,
    "window": WINDOWS,
}

_OTHER_NAMES: Final = {
    "substr": "substring",
    "ceiling": "ceil",
    "pow": "power",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "mean": "avg",
    "starts_with": "startswith",
    "ends_with": "endswith",
    "current_timestamp": "now",
    "cardinality": "size",
}

_BY_NAME: Final = {function.name: function for group in GROUPS.values() for function in group}
FUNCTIONS: Final[dict[str, Function]] = _BY_NAME | {other: _BY_NAME[name] for other, name in _OTHER_NAMES.items()}

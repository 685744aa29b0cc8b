"""Functions over the messages of a group, and its window. Sums are ``try_`` forms: an overflow is NULL."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules import constants
from brookmq.spark.rules.signatures import Constant, Result, Want, function
from brookmq.spark.rules.types import BOOLEAN, INTEGER, NUMBER, TEXT, TIMESTAMP

_ANY, _SAME = Want.ANY, Want.SAME
_DOUBLE: Final = "CAST({0} AS DOUBLE)"
_PUBLISHED: Final = "struct(published_at, partition, offset)"

AGGREGATES: Final = (
    function(
        "count(*)",
        (_SAME,),
        INTEGER,
        "count({0})",
        "the number of rows; count(x): of those where x is not NULL",
        aggregate=True,
        json_as=TEXT,
    ),
    function(
        "count_if(condition)",
        (BOOLEAN,),
        INTEGER,
        "count_if({0})",
        "the number of rows for which it holds",
        aggregate=True,
    ),
    function("sum(x)", (NUMBER,), Result.FIRST, "try_sum({0})", "the sum", aggregate=True),
    function("avg(x)", (NUMBER,), NUMBER, "try_avg({0})", "the mean", aggregate=True),
    function("min(x)", (_SAME,), Result.COMMON, "min({0})", "the smallest", aggregate=True, json_as=NUMBER),
    function("max(x)", (_SAME,), Result.COMMON, "max({0})", "the largest", aggregate=True, json_as=NUMBER),
    function("stddev(x)", (NUMBER,), NUMBER, "stddev_samp({0})", "the standard deviation of a sample", aggregate=True),
    function("variance(x)", (NUMBER,), NUMBER, "var_samp({0})", "the variance of a sample", aggregate=True),
    function(
        "percentile(x, p)",
        (NUMBER, Constant(NUMBER, constants.fraction)),
        NUMBER,
        f"percentile_approx({_DOUBLE}, {{1}})",
        "the value below which a part p (0 to 1) of all lie, nearly",
        aggregate=True,
    ),
    function(
        "approx_count_distinct(x)",
        (_SAME,),
        INTEGER,
        "approx_count_distinct({0})",
        "the number of different values, to 5 %",
        aggregate=True,
        json_as=TEXT,
    ),
    function(
        "first_value(x)",
        (_ANY,),
        Result.FIRST,
        f"min_by({{0}}, {_PUBLISHED})",
        "of the message published first",
        aggregate=True,
    ),
    function(
        "last_value(x)",
        (_ANY,),
        Result.FIRST,
        f"max_by({{0}}, {_PUBLISHED})",
        "of the message published last",
        aggregate=True,
    ),
    function("bool_and(x)", (BOOLEAN,), BOOLEAN, "bool_and({0})", "whether it holds for all", aggregate=True),
    function("bool_or(x)", (BOOLEAN,), BOOLEAN, "bool_or({0})", "whether it holds for one", aggregate=True),
)

WINDOWS: Final = (
    function(
        "window(published_at, size[, slide])",
        (TIMESTAMP, Constant(TEXT), Constant(TEXT)),
        TIMESTAMP,
        "",
        "in GROUP BY: spans of time; then window.start and window.end are columns",
        optional=1,
    ),
)

"""Conditions, JSON and lists."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules import constants
from brookmq.spark.rules.signatures import Constant, Result, Want, function
from brookmq.spark.rules.types import BOOLEAN, INTEGER, JSON, NUMBER, TEXT, list_of

_ANY, _SAME, _LIST, _ITEM = Want.ANY, Want.SAME, Want.LIST, Want.ITEM
_NTH: Final = Constant(INTEGER, constants.number_between(1, 1_000_000))

CONDITIONS: Final = (
    function(
        "if(condition, then, else)", (BOOLEAN, _SAME, _SAME), Result.COMMON, "if({0}, {1}, {2})", "one of two values"
    ),
    function(
        "coalesce(a, b, …)", (_SAME,), Result.COMMON, "coalesce({all})", "the first that is not NULL", repeated=True
    ),
    function(
        "nullif(a, b)",
        (_SAME, _SAME),
        Result.COMMON,
        "nullif({0}, {1})",
        "NULL if both are equal, else a",
        json_as=TEXT,
    ),
    function("nanvl(x, y)", (NUMBER, NUMBER), NUMBER, "nanvl({0}, {1})", "y if x is NaN"),
)

JSON_AND_LISTS: Final = (
    function("json(s)", (TEXT,), JSON, "try_parse_json({0})", "the value of a JSON text; NULL if it is none"),
    function("to_json(x)", (_ANY,), TEXT, "to_json({0})", "a value as JSON text"),
    function(
        "object('name', x, …)", (), Result.RECORD, "named_struct({all})", "a record of names and values", repeated=True
    ),
    function("array(a, b, …)", (_SAME,), Result.LIST, "array({all})", "a list", repeated=True),
    function("size(list)", (_LIST,), INTEGER, "CAST(array_size({0}) AS BIGINT)", "the number of items"),
    function(
        "nth(list, n)",
        (_LIST, _NTH),
        Result.ITEM,
        "get({0}, CAST({1} AS INT) - 1)",
        "the n-th item, from 1; NULL if there is none",
    ),
    function(
        "last(list)", (_LIST,), Result.ITEM, "get({0}, array_size({0}) - 1)", "the last item; NULL if there is none"
    ),
    function(
        "array_contains(list, x)", (_LIST, _ITEM), BOOLEAN, "array_contains({0}, {1})", "whether x is among the items"
    ),
    function(
        "array_join(list, separator)",
        (list_of(TEXT), Constant(TEXT)),
        TEXT,
        "array_join({0}, {1})",
        "the items as one text; skips NULL",
    ),
    function("array_min(list)", (list_of(NUMBER),), NUMBER, "array_min({0})", "the smallest of numbers"),
    function("array_max(list)", (list_of(NUMBER),), NUMBER, "array_max({0})", "the largest of numbers"),
    function(
        "array_sum(list)",
        (list_of(NUMBER),),
        NUMBER,
        "aggregate({0}, 0D, (s, x) -> s + coalesce(x, 0D))",
        "the sum of numbers",
    ),
    function(
        "array_avg(list)",
        (list_of(NUMBER),),
        NUMBER,
        "try_divide(aggregate({0}, 0D, (s, x) -> s + coalesce(x, 0D)), size(filter({0}, x -> x IS NOT NULL)))",
        "the mean of numbers; skips NULL",
    ),
    function("array_distinct(list)", (list_of(TEXT),), list_of(TEXT), "array_distinct({0})", "texts, each once"),
    function("array_sort(list)", (list_of(NUMBER),), list_of(NUMBER), "array_sort({0})", "numbers in order"),
    function(
        "user_property(name)",
        (Constant(TEXT),),
        TEXT,
        "get(transform(filter(user_properties, x -> x.name = {0}), x -> x.value), 0)",
        "the first user property of this name (MQTT 5)",
    ),
)

"""Arithmetic."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules import constants
from brookmq.spark.rules.signatures import Constant, Result, Want, function
from brookmq.spark.rules.types import INTEGER, NUMBER

_SAME = Want.SAME
_DOUBLE: Final = "CAST({0} AS DOUBLE)"
# Spark's own raise where no integer is large enough.
_WHOLE: Final = "if(abs(CAST({0} AS DOUBLE)) < 9.2e18D, WHOLE(CAST({0} AS DOUBLE)), NULL)"

NUMBERS: Final = (
    function("abs(x)", (NUMBER,), Result.FIRST, "greatest({0}, try_subtract(0L, {0}))", "x without its sign"),
    function("ceil(x)", (NUMBER,), INTEGER, _WHOLE.replace("WHOLE", "ceil"), "the next whole number, upwards"),
    function("floor(x)", (NUMBER,), INTEGER, _WHOLE.replace("WHOLE", "floor"), "the next whole number, downwards"),
    function(
        "round(x[, digits])",
        (NUMBER, Constant(INTEGER, constants.number_between(0, 30))),
        NUMBER,
        {1: f"round({_DOUBLE}, 0)", 2: f"round({_DOUBLE}, CAST({{1}} AS INT))"},
        "x rounded, halves away from zero",
        optional=1,
    ),
    function("mod(x, y)", (NUMBER, NUMBER), Result.FIRST, "try_mod({0}, {1})", "what x / y leaves; NULL for y = 0"),
    function(
        "div(x, y)",
        (NUMBER, NUMBER),
        INTEGER,
        "try_cast(try_divide({0}, {1}) AS BIGINT)",
        "x / y without its fraction; NULL for y = 0",
    ),
    function("power(x, y)", (NUMBER, NUMBER), NUMBER, "power({0}, {1})", "x to the power of y"),
    function("sqrt(x)", (NUMBER,), NUMBER, "sqrt({0})", "the square root; NaN below zero"),
    function("exp(x)", (NUMBER,), NUMBER, "exp({0})", "e to the power of x"),
    function("ln(x)", (NUMBER,), NUMBER, "ln({0})", "the natural logarithm; NULL for x ≤ 0"),
    function("log10(x)", (NUMBER,), NUMBER, "log10({0})", "the logarithm to base 10; NULL for x ≤ 0"),
    function("log2(x)", (NUMBER,), NUMBER, "log2({0})", "the logarithm to base 2; NULL for x ≤ 0"),
    function("sign(x)", (NUMBER,), NUMBER, f"sign({_DOUBLE})", "-1, 0 or 1"),
    function("sin(x)", (NUMBER,), NUMBER, "sin({0})", "the sine of an angle in radians"),
    function("cos(x)", (NUMBER,), NUMBER, "cos({0})", "the cosine of an angle in radians"),
    function("tan(x)", (NUMBER,), NUMBER, "tan({0})", "the tangent of an angle in radians"),
    function("asin(x)", (NUMBER,), NUMBER, "asin({0})", "the angle with this sine"),
    function("acos(x)", (NUMBER,), NUMBER, "acos({0})", "the angle with this cosine"),
    function("atan2(y, x)", (NUMBER, NUMBER), NUMBER, "atan2({0}, {1})", "the angle of the point (x, y)"),
    function("degrees(x)", (NUMBER,), NUMBER, "degrees({0})", "radians in degrees"),
    function("radians(x)", (NUMBER,), NUMBER, "radians({0})", "degrees in radians"),
    function("pi()", (), NUMBER, "pi()", "3.14159…"),
    function(
        "greatest(x, y, …)",
        (_SAME, _SAME),
        Result.COMMON,
        "greatest({all})",
        "the largest; skips NULL",
        repeated=True,
        json_as=NUMBER,
    ),
    function(
        "least(x, y, …)",
        (_SAME, _SAME),
        Result.COMMON,
        "least({all})",
        "the smallest; skips NULL",
        repeated=True,
        json_as=NUMBER,
    ),
)

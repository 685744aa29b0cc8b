"""Dates and times. Patterns are Spark's; they and time zones are constants, tried before a rule is saved."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules import constants
from brookmq.spark.rules.emitting import bounded_sql
from brookmq.spark.rules.signatures import Constant, function
from brookmq.spark.rules.types import DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Kind

_TIME_PATTERN: Final = Constant(TEXT, constants.not_empty)
_SECONDS: Final = bounded_sql("try_cast({0} AS TIMESTAMP)", Kind.TIMESTAMP)
_MILLISECONDS: Final = bounded_sql(
    "try_cast(try_divide(try_cast({0} AS DECIMAL(20, 0)), 1000) AS TIMESTAMP)", Kind.TIMESTAMP
)

TIMES: Final = (
    function("now()", (), TIMESTAMP, "current_timestamp()", "the time of the batch in which the message is worked on"),
    function("current_date()", (), DATE, "current_date()", "the day of now()"),
    function(
        "to_timestamp(s[, pattern])",
        (TEXT, _TIME_PATTERN),
        TIMESTAMP,
        {1: _SECONDS, 2: bounded_sql("try_to_timestamp({0}, {1})", Kind.TIMESTAMP)},
        "a text as a timestamp (ISO 8601, or by a pattern); NULL if it is none",
        optional=1,
        probe="try_to_timestamp('', {1})",
    ),
    function(
        "to_date(s)",
        (TEXT,),
        DATE,
        bounded_sql("try_cast({0} AS DATE)", Kind.DATE),
        "a text such as 2026-01-31 as a date; NULL if it is none",
    ),
    function("from_unix(seconds)", (NUMBER,), TIMESTAMP, _SECONDS, "the timestamp of seconds since 1970"),
    function("from_unix_millis(n)", (INTEGER,), TIMESTAMP, _MILLISECONDS, "the timestamp of milliseconds since 1970"),
    function("unix_seconds(t)", (TIMESTAMP,), INTEGER, "unix_seconds({0})", "seconds since 1970"),
    function("unix_millis(t)", (TIMESTAMP,), INTEGER, "unix_millis({0})", "milliseconds since 1970"),
    function(
        "date_format(t, pattern)",
        (TIMESTAMP, _TIME_PATTERN),
        TEXT,
        "date_format({0}, {1})",
        "as text, by a pattern such as 'yyyy-MM-dd HH:mm'",
        probe="date_format(TIMESTAMP'2026-01-31 12:34:56', {1})",
    ),
    function(
        "date_trunc(unit, t)",
        (Constant(TEXT, constants.unit), TIMESTAMP),
        TIMESTAMP,
        "date_trunc({0}, {1})",
        "the beginning of its 'hour', 'day', 'month', …",
    ),
    function(
        "in_zone(t, zone)",
        (TIMESTAMP, _TIME_PATTERN),
        TIMESTAMP,
        "from_utc_timestamp({0}, {1})",
        "the wall clock of a time zone such as 'Europe/Berlin' at this time",
        probe="from_utc_timestamp(TIMESTAMP'2026-01-31 12:34:56', {1})",
    ),
    function("year(t)", (DATE,), INTEGER, "CAST(year({0}) AS BIGINT)", "the year"),
    function("quarter(t)", (DATE,), INTEGER, "CAST(quarter({0}) AS BIGINT)", "the quarter of the year, 1 to 4"),
    function("month(t)", (DATE,), INTEGER, "CAST(month({0}) AS BIGINT)", "the month, 1 to 12"),
    function("week(t)", (DATE,), INTEGER, "CAST(weekofyear({0}) AS BIGINT)", "the week of the year (ISO 8601)"),
    function("day(t)", (DATE,), INTEGER, "CAST(day({0}) AS BIGINT)", "the day of the month"),
    function("day_of_week(t)", (DATE,), INTEGER, "CAST(weekday({0}) + 1 AS BIGINT)", "1 for Monday to 7 for Sunday"),
    function("day_of_year(t)", (DATE,), INTEGER, "CAST(dayofyear({0}) AS BIGINT)", "the day of the year"),
    function("hour(t)", (TIMESTAMP,), INTEGER, "CAST(hour({0}) AS BIGINT)", "the hour"),
    function("minute(t)", (TIMESTAMP,), INTEGER, "CAST(minute({0}) AS BIGINT)", "the minute"),
    function("second(t)", (TIMESTAMP,), INTEGER, "CAST(second({0}) AS BIGINT)", "the second"),
    function(
        "seconds_between(from, to)",
        (TIMESTAMP, TIMESTAMP),
        NUMBER,
        "try_divide(try_subtract(unix_micros({1}), unix_micros({0})), 1000000D)",
        "the seconds from one timestamp to another",
    ),
    function(
        "days_between(from, to)",
        (DATE, DATE),
        INTEGER,
        "CAST(datediff({1}, {0}) AS BIGINT)",
        "the days from one date to another",
    ),
)

"""Texts, patterns, sums and encodings."""

from __future__ import annotations

from typing import Final

from brookmq.spark.rules import constants
from brookmq.spark.rules.signatures import Constant, function
from brookmq.spark.rules.types import BOOLEAN, BYTES, INTEGER, TEXT, list_of

_PATTERN: Final = Constant(TEXT, constants.pattern)
_LENGTH: Final = Constant(INTEGER, constants.number_between(0, 10_000))
_NTH: Final = Constant(INTEGER, constants.number_between(1, 1_000_000))

TEXTS: Final = (
    function("upper(s)", (TEXT,), TEXT, "upper({0})", "in capital letters"),
    function("lower(s)", (TEXT,), TEXT, "lower({0})", "in small letters"),
    function("initcap(s)", (TEXT,), TEXT, "initcap({0})", "each word with a capital letter"),
    function("trim(s)", (TEXT,), TEXT, "trim({0})", "without blanks at both ends"),
    function("ltrim(s)", (TEXT,), TEXT, "ltrim({0})", "without blanks at the beginning"),
    function("rtrim(s)", (TEXT,), TEXT, "rtrim({0})", "without blanks at the end"),
    function("length(s)", (TEXT,), INTEGER, "CAST(char_length({0}) AS BIGINT)", "the number of characters"),
    function(
        "substring(s, start[, length])",
        (TEXT, INTEGER, INTEGER),
        TEXT,
        {
            2: "substring({0}, try_cast({1} AS INT))",
            3: "substring({0}, try_cast({1} AS INT), try_cast({2} AS INT))",
        },
        "a part, from start (the first character is 1, -1 the last)",
        optional=1,
    ),
    function("left(s, n)", (TEXT, _LENGTH), TEXT, "left({0}, CAST({1} AS INT))", "the first n characters"),
    function("right(s, n)", (TEXT, _LENGTH), TEXT, "right({0}, CAST({1} AS INT))", "the last n characters"),
    function(
        "concat(a, b, …)", (TEXT,), TEXT, "concat({all})", "one behind the other; NULL if one is NULL", repeated=True
    ),
    function(
        "concat_ws(separator, a, b, …)",
        (Constant(TEXT), TEXT),
        TEXT,
        "concat_ws({all})",
        "with a separator in between; skips NULL",
        repeated=True,
    ),
    function(
        "replace(s, old, new)", (TEXT, TEXT, TEXT), TEXT, "replace({0}, {1}, {2})", "with every old replaced by new"
    ),
    function("reverse(s)", (TEXT,), TEXT, "reverse({0})", "backwards"),
    function("repeat(s, n)", (TEXT, _LENGTH), TEXT, "repeat({0}, CAST({1} AS INT))", "n times"),
    function(
        "lpad(s, n, fill)",
        (TEXT, _LENGTH, Constant(TEXT)),
        TEXT,
        "lpad({0}, CAST({1} AS INT), {2})",
        "filled up to n characters at the beginning",
    ),
    function(
        "rpad(s, n, fill)",
        (TEXT, _LENGTH, Constant(TEXT)),
        TEXT,
        "rpad({0}, CAST({1} AS INT), {2})",
        "filled up to n characters at the end",
    ),
    function(
        "instr(s, part)",
        (TEXT, TEXT),
        INTEGER,
        "CAST(instr({0}, {1}) AS BIGINT)",
        "where part begins, from 1; 0 if it is not in s",
    ),
    function("contains(s, part)", (TEXT, TEXT), BOOLEAN, "contains({0}, {1})", "whether part is in s"),
    function("startswith(s, part)", (TEXT, TEXT), BOOLEAN, "startswith({0}, {1})", "whether s begins with part"),
    function("endswith(s, part)", (TEXT, TEXT), BOOLEAN, "endswith({0}, {1})", "whether s ends with part"),
    function(
        "translate(s, from, to)",
        (TEXT, TEXT, TEXT),
        TEXT,
        "translate({0}, {1}, {2})",
        "with single characters exchanged",
    ),
    function(
        "split(s, separator)",
        (TEXT, Constant(TEXT, constants.not_empty)),
        list_of(TEXT),
        "split({0}, concat('\\\\Q', replace({1}, '\\\\E', ''), '\\\\E'))",
        "the parts between separators, as a list",
    ),
    function(
        "split_part(s, separator, n)",
        (TEXT, Constant(TEXT, constants.not_empty), _NTH),
        TEXT,
        "get(split({0}, concat('\\\\Q', replace({1}, '\\\\E', ''), '\\\\E')), CAST({2} AS INT) - 1)",
        "the n-th part, from 1; NULL if there is none",
    ),
    function(
        "topic_level(n)",
        (_NTH,),
        TEXT,
        "get(split(topic, '/'), CAST({0} AS INT) - 1)",
        "the n-th level of the topic, from 1; NULL if there is none",
    ),
    function(
        "regexp_like(s, pattern)",
        (TEXT, _PATTERN),
        BOOLEAN,
        "rlike({0}, {1})",
        "whether the pattern is somewhere in s (as s RLIKE pattern)",
        probe="rlike('', {1})",
    ),
    function(
        "regexp_extract(s, pattern[, group])",
        (TEXT, _PATTERN, Constant(INTEGER, constants.number_between(0, 99))),
        TEXT,
        {2: "regexp_extract({0}, {1}, 0)", 3: "regexp_extract({0}, {1}, CAST({2} AS INT))"},
        "what the pattern, or a group of it, matches; an empty text if nothing does",
        optional=1,
        probe={  # with an empty alternative it always matches; only then Spark looks at the number of the group
            2: "regexp_extract('', {1}, 0)",
            3: "regexp_extract('', concat({1}, '|'), CAST({2} AS INT))",
        },
    ),
    function(
        "regexp_replace(s, pattern, new)",
        (
            TEXT,
            _PATTERN,
            Constant(TEXT, lambda text: "$ and \\ are not allowed here" if set(text) & {"$", "\\"} else ""),
        ),
        TEXT,
        "regexp_replace({0}, {1}, {2})",
        "with every match replaced",
        probe="regexp_replace('', {1}, {2})",
    ),
    function("md5(s)", (BYTES,), TEXT, "md5({0})", "the MD5 sum in hexadecimal digits"),
    function("sha256(s)", (BYTES,), TEXT, "sha2({0}, 256)", "the SHA-256 sum in hexadecimal digits"),
    function("crc32(s)", (BYTES,), INTEGER, "crc32({0})", "the CRC-32 sum"),
    function("hex(s)", (BYTES,), TEXT, "hex({0})", "bytes in hexadecimal digits"),
    function("unhex(s)", (TEXT,), BYTES, "unhex({0})", "bytes from hexadecimal digits; NULL if they are not"),
    function("base64(s)", (BYTES,), TEXT, "base64({0})", "bytes in base 64"),
    function("unbase64(s)", (TEXT,), BYTES, "try_to_binary({0}, 'base64')", "bytes from base 64; NULL if it is not"),
    function("url_encode(s)", (TEXT,), TEXT, "url_encode({0})", "as a part of an address"),
    function("url_decode(s)", (TEXT,), TEXT, "try_url_decode({0})", "from a part of an address; NULL if it is not"),
)

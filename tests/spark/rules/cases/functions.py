"""Functions, by groups of the guide."""

from __future__ import annotations

from tests.spark.rules.cases.shape import Case, Message

CASES = [
    Case(
        "rounding",
        "SELECT abs(payload.x) AS a, ceil(payload.x) AS c, floor(payload.x) AS f, round(payload.x) AS r, "
        'round(payload.x, 2) AS r2, sign(payload.x) AS s FROM "s/+"',
        [
            ({"x": -2.345}, [{"a": 2.345, "c": -2, "f": -3, "r": -2.0, "r2": -2.35, "s": -1.0}]),
            ({"x": 2.5}, [{"a": 2.5, "c": 3, "f": 2, "r": 3.0, "r2": 2.5, "s": 1.0}]),
        ],
        [({"x": "ab"}, [{"a": None, "c": None, "f": None, "r": None, "r2": None, "s": None}])],
        [({}, [{"a": None, "c": None, "f": None, "r": None, "r2": None, "s": None}])],
    ),
    Case(
        "powers and logarithms",
        "SELECT power(payload.x, 2) AS p, sqrt(payload.x) AS s, ln(payload.x) AS l, log10(payload.x) AS l10, "
        'log2(payload.x) AS l2, exp(payload.x - 4) AS e FROM "s/+"',
        [({"x": 4}, [{"p": 16.0, "s": 2.0, "l": 1.3862943611198906, "l10": 0.6020599913279624, "l2": 2.0, "e": 1.0}])],
        [({"x": []}, [{"p": None, "s": None, "l": None, "l10": None, "l2": None, "e": None}])],
        [({}, [{"p": None, "s": None, "l": None, "l10": None, "l2": None, "e": None}])],
    ),
    Case(
        "angles",
        "SELECT round(sin(radians(payload.a)), 6) AS s, round(cos(radians(payload.a)), 6) AS c, "
        'round(degrees(atan2(payload.a, payload.a)), 6) AS d, round(pi(), 4) AS p FROM "s/+"',
        [({"a": 90}, [{"s": 1.0, "c": 0.0, "d": 45.0, "p": 3.1416}])],
        [({"a": "right"}, [{"s": None, "c": None, "d": None, "p": 3.1416}])],
        [({}, [{"s": None, "c": None, "d": None, "p": 3.1416}])],
    ),
    Case(
        "the greatest and the least",
        'SELECT greatest(payload.a, payload.b, 10) AS g, least(payload.a, payload.b) AS l FROM "s/+"',
        [({"a": 11, "b": 9}, [{"g": 11.0, "l": 9.0}]), ({"a": 1, "b": 2}, [{"g": 10.0, "l": 1.0}])],
        [({"a": "x", "b": "12"}, [{"g": 12.0, "l": 12.0}])],
        [({}, [{"g": 10.0, "l": None}])],
    ),
    Case(
        "cases and blanks",
        "SELECT upper(payload.s) AS u, lower(payload.s) AS l, initcap(payload.s) AS i, trim(payload.s) AS t, "
        'ltrim(payload.s) AS lt, rtrim(payload.s) AS rt FROM "s/+"',
        [
            (
                {"s": " aB cD "},
                [{"u": " AB CD ", "l": " ab cd ", "i": " Ab Cd ", "t": "aB cD", "lt": "aB cD ", "rt": " aB cD"}],
            )
        ],
        [({"s": 5}, [{"u": "5", "l": "5", "i": "5", "t": "5", "lt": "5", "rt": "5"}])],
        [({}, [dict.fromkeys(("u", "l", "i", "t", "lt", "rt"))])],
    ),
    Case(
        "parts of a text",
        "SELECT substring(payload.s, 2, 3) AS m, substring(payload.s, -2) AS e, left(payload.s, 2) AS l, "
        'right(payload.s, 2) AS r, length(payload.s) AS n FROM "s/+"',
        [({"s": "größer"}, [{"m": "röß", "e": "er", "l": "gr", "r": "er", "n": 6}])],
        [({"s": 12345}, [{"m": "234", "e": "45", "l": "12", "r": "45", "n": 5}])],
        [({}, [{"m": None, "e": None, "l": None, "r": None, "n": None}])],
    ),
    Case(
        "a part of a text by numbers of the message",
        'SELECT substring(topic, payload.from, payload.n) AS p FROM "s/+"',
        [({"from": 1, "n": 2}, [{"p": "s/"}])],
        [({"from": "x", "n": 2}, [{"p": None}]), ({"from": 1, "n": 1e18}, [{"p": None}])],
        [({"from": 1}, [{"p": None}])],
    ),
    Case(
        "texts together",
        "SELECT concat(topic, '-', payload.a) AS c, topic || payload.b AS p, concat_ws(',', payload.a, payload.b) AS w "
        'FROM "s/+"',
        [({"a": "x", "b": 1.5}, [{"c": "s/1-x", "p": "s/11.5", "w": "x,1.5"}])],
        [({"a": {"k": 1}, "b": [1]}, [{"c": 's/1-{"k":1}', "p": "s/1[1]", "w": '{"k":1},[1]'}])],
        [({"a": "x"}, [{"c": "s/1-x", "p": None, "w": "x"}])],
    ),
    Case(
        "replacing, padding, repeating",
        "SELECT replace(payload.s, 'a', 'b') AS r, lpad(payload.s, 4, '0') AS l, rpad(payload.s, 4, '.') AS p, "
        "repeat(payload.s, 2) AS t, reverse(payload.s) AS v, translate(payload.s, 'ab', 'xy') AS x FROM \"s/+\"",
        [({"s": "ab"}, [{"r": "bb", "l": "00ab", "p": "ab..", "t": "abab", "v": "ba", "x": "xy"}])],
        [({"s": True}, [{"r": "true", "l": "true", "p": "true", "t": "truetrue", "v": "eurt", "x": "true"}])],
        [({}, [dict.fromkeys(("r", "l", "p", "t", "v", "x"))])],
    ),
    Case(
        "looking into a text",
        "SELECT contains(payload.s, 'b') AS c, startswith(payload.s, 'a') AS s, endswith(payload.s, 'a') AS e, "
        "instr(payload.s, 'b') AS i FROM \"s/+\"",
        [({"s": "abc"}, [{"c": True, "s": True, "e": False, "i": 2}])],
        [({"s": 1}, [{"c": False, "s": False, "e": False, "i": 0}])],
        [({}, [{"c": None, "s": None, "e": None, "i": None}])],
    ),
    Case(
        "splitting, with separators that patterns know",
        "SELECT split(payload.s, '.') AS l, split_part(payload.s, '.', 2) AS p, split(payload.s, '.')[0] AS f, "
        'topic_level(1) AS t, topic_level(3) AS none FROM "s/+"',
        [({"s": "a.b.c"}, [{"l": ["a", "b", "c"], "p": "b", "f": "a", "t": "s", "none": None}])],
        [({"s": 1.5}, [{"l": ["1", "5"], "p": "5", "f": "1", "t": "s", "none": None}])],
        [({}, [{"l": None, "p": None, "f": None, "t": "s", "none": None}])],
    ),
    Case(
        "regular expressions",
        "SELECT regexp_like(payload.s, '^a') AS m, regexp_extract(payload.s, '(\\d+)-(\\d+)', 2) AS g, "
        "regexp_replace(payload.s, '[0-9]+', '#') AS r FROM \"s/+\"",
        [({"s": "a12-34"}, [{"m": True, "g": "34", "r": "a#-#"}])],
        [({"s": 12}, [{"m": False, "g": "", "r": "#"}])],
        [({}, [{"m": None, "g": None, "r": None}])],
    ),
    Case(
        "sums of bytes",
        'SELECT md5(payload) AS m, crc32(payload) AS c, left(sha256(payload), 8) AS s FROM "s/+"',
        [("abc", [{"m": "900150983cd24fb0d6963f7d28e17f72", "c": 891568578, "s": "ba7816bf"}])],
        [(b"\xff", [{"m": "00594fd4f42ba43fc1ca0427a0576295", "c": 4278190080, "s": "a8100ae6"}])],
        [("", [{"m": "d41d8cd98f00b204e9800998ecf8427e", "c": 0, "s": "e3b0c442"}])],
    ),
    Case(
        "encodings",
        "SELECT CAST(unhex(payload.h) AS STRING) AS h, CAST(unbase64(payload.b) AS STRING) AS b, "
        'url_encode(payload.u) AS e, url_decode(payload.d) AS d FROM "s/+"',
        [
            (
                {"h": "4869", "b": "SGk=", "u": "a b/c", "d": "a%20b"},
                [{"h": "Hi", "b": "Hi", "e": "a+b%2Fc", "d": "a b"}],
            )
        ],
        [({"h": "zz", "b": "!!", "u": 1, "d": "%zz"}, [{"h": None, "b": None, "e": "1", "d": None}])],
        [({}, [{"h": None, "b": None, "e": None, "d": None}])],
    ),
    Case(
        "timestamps from texts and numbers",
        "SELECT to_timestamp(payload.t) AS t, from_unix(payload.s) AS s, from_unix_millis(payload.m) AS m, "
        "to_timestamp(payload.p, 'dd.MM.yyyy HH:mm') AS p, to_date(payload.t) AS d FROM \"s/+\"",
        [
            (
                {"t": "2026-01-31T13:00:00+01:00", "s": 1769860800.5, "m": 1769860800250, "p": "31.01.2026 12:00"},
                [
                    {
                        "t": "2026-01-31T12:00:00.000Z",
                        "s": "2026-01-31T12:00:00.500Z",
                        "m": "2026-01-31T12:00:00.250Z",
                        "p": "2026-01-31T12:00:00.000Z",
                        "d": "2026-01-31",
                    }
                ],
            )
        ],
        [
            ({"t": "soon", "s": "x", "m": {}, "p": "31.13.2026"}, [dict.fromkeys("tsmpd")]),
            ({"t": 5, "s": 1e300, "m": 10**30, "p": 5}, [dict.fromkeys("tsmpd")]),
        ],
        [({}, [dict.fromkeys("tsmpd")])],
    ),
    Case(
        "parts of a timestamp",
        "SELECT year(published_at) AS y, quarter(published_at) AS q, month(published_at) AS mo, "
        "week(published_at) AS w, day(published_at) AS d, day_of_week(published_at) AS dw, "
        "day_of_year(published_at) AS dy, "
        'hour(published_at) AS h, minute(published_at) AS mi, second(published_at) AS s FROM "s/+"',
        [
            (
                Message(second=3723, payload=""),
                [{"y": 2026, "q": 1, "mo": 1, "w": 5, "d": 31, "dw": 6, "dy": 31, "h": 13, "mi": 2, "s": 3}],
            )
        ],
        [(Message(topic="t", payload=""), [])],
        [
            (
                Message(published_at=None, payload=""),
                [dict.fromkeys(("y", "q", "mo", "w", "d", "dw", "dy", "h", "mi", "s"))],
            )
        ],
    ),
    Case(
        "parts of a timestamp of the payload",
        "SELECT hour(payload.t) AS h, date_format(payload.t, 'yyyy-MM-dd HH:mm') AS f FROM \"s/+\"",
        [({"t": "2026-01-31T12:34:56Z"}, [{"h": 12, "f": "2026-01-31 12:34"}])],
        [({"t": 1769860800}, [{"h": 12, "f": "2026-01-31 12:00"}]), ({"t": "never"}, [{"h": None, "f": None}])],
        [({}, [{"h": None, "f": None}])],
    ),
    Case(
        "truncating and other zones",
        "SELECT date_trunc('hour', published_at) AS h, "
        "date_format(in_zone(published_at, 'Europe/Berlin'), 'HH:mm') AS b, "
        'unix_seconds(published_at) AS u, unix_millis(published_at) AS m FROM "s/+"',
        [
            (
                Message(second=90, payload=""),
                [{"h": "2026-01-31T12:00:00.000Z", "b": "13:01", "u": 1769860890, "m": 1769860890000}],
            )
        ],
        [(Message(topic="t", payload=""), [])],
        [(Message(published_at=None, payload=""), [{"h": None, "b": None, "u": None, "m": None}])],
    ),
    Case(
        "time between",
        "SELECT seconds_between(payload.t, published_at) AS s, days_between(payload.t, published_at) AS d, "
        "published_at - INTERVAL 30 MINUTE AS e FROM \"s/+\" WHERE published_at >= '2026-01-31 12:00:00'",
        [
            (
                Message(second=0, payload={"t": "2026-01-30T11:59:58.5Z"}),
                [{"s": 86401.5, "d": 1, "e": "2026-01-31T11:30:00.000Z"}],
            )
        ],
        [(Message(second=0, payload={"t": "x"}), [{"s": None, "d": None, "e": "2026-01-31T11:30:00.000Z"}])],
        [(Message(second=-1, payload={}), [])],
    ),
    Case(
        "intervals of several units",
        "SELECT published_at + INTERVAL '1' DAY - INTERVAL '2 hours' AS a, "
        'published_at + INTERVAL 1500 MILLISECOND AS b FROM "s/+"',
        [
            (
                Message(second=0, payload=""),
                [{"a": "2026-02-01T10:00:00.000Z", "b": "2026-01-31T12:00:01.500Z"}],
            )
        ],
        [(Message(topic="x", payload=""), [])],
        [(Message(published_at=None, payload=""), [{"a": None, "b": None}])],
    ),
    Case(
        "CASE with conditions",
        "SELECT CASE WHEN payload.t > 30 THEN 'hot' WHEN payload.t < 0 THEN 'cold' ELSE 'mild' END AS c FROM \"s/+\"",
        [({"t": 31}, [{"c": "hot"}]), ({"t": -1}, [{"c": "cold"}]), ({"t": 5}, [{"c": "mild"}])],
        [({"t": "x"}, [{"c": "mild"}])],
        [({}, [{"c": "mild"}])],
    ),
    Case(
        "CASE with values",
        "SELECT CASE payload.s WHEN 'on' THEN 1 WHEN 'off' THEN 0 END AS n FROM \"s/+\"",
        [({"s": "on"}, [{"n": 1}]), ({"s": "off"}, [{"n": 0}])],
        [({"s": True}, [{"n": None}])],
        [({}, [{"n": None}])],
    ),
    Case(
        "if, coalesce and nullif",
        "SELECT if(payload.ok, payload.a, 0) AS i, coalesce(payload.a, payload.b, -1) AS c, nullif(payload.a, 5) AS n "
        'FROM "s/+"',
        [({"ok": True, "a": 5, "b": 6}, [{"i": 5.0, "c": 5.0, "n": None}])],
        [({"ok": "maybe", "a": "x", "b": "6"}, [{"i": 0.0, "c": 6.0, "n": None}])],
        [({}, [{"i": 0.0, "c": -1.0, "n": None}]), ({"a": None, "b": 1}, [{"i": 0.0, "c": 1.0, "n": None}])],
    ),
    Case(
        "coalesce of fields skips null",
        'SELECT coalesce(payload.a, payload.b) AS c FROM "s/+"',
        [({"a": "x", "b": 1}, [{"c": "x"}]), ({"a": None, "b": {"k": 1}}, [{"c": {"k": 1}}])],
        [({"a": [1], "b": 2}, [{"c": [1]}])],
        [({}, [{"c": None}])],
    ),
    Case(
        "JSON inside of a text",
        'SELECT json(payload.text).a.b AS b, to_json(payload.o) AS o, to_json(topic) AS t FROM "s/+"',
        [({"text": '{"a": {"b": 5}}', "o": {"x": [1, "y"]}}, [{"b": 5, "o": '{"x":[1,"y"]}', "t": '"s/1"'}])],
        [({"text": "{", "o": 1}, [{"b": None, "o": "1", "t": '"s/1"'}])],
        [({}, [{"b": None, "o": None, "t": '"s/1"'}])],
    ),
    Case(
        "an object of one's own",
        "SELECT object('t', payload.t, 'd', topic_level(2), 'n', payload.t + 1) AS o, "
        "to_json(object('t', payload.t)) AS j FROM \"s/+\"",
        [({"t": 1}, [{"o": {"t": 1, "d": "1", "n": 2.0}, "j": '{"t":1}'}])],
        [({"t": "x"}, [{"o": {"t": "x", "d": "1", "n": None}, "j": '{"t":"x"}'}])],
        [({}, [{"o": {"t": None, "d": "1", "n": None}, "j": "{}"}])],
    ),
    Case(
        "items of a list",
        "SELECT size(payload.l) AS n, nth(payload.l, 2) AS s, last(payload.l) AS e, array_contains(payload.l, 2) AS c, "
        "array_contains(payload.l, 'x') AS t FROM \"s/+\"",
        [({"l": [1, 2, 3]}, [{"n": 3, "s": 2, "e": 3, "c": True, "t": False}])],
        [
            ({"l": ["x", "2"]}, [{"n": 2, "s": "2", "e": "2", "c": True, "t": True}]),
            ({"l": 5}, [{"n": None, "s": None, "e": None, "c": None, "t": None}]),
        ],
        [
            ({}, [{"n": None, "s": None, "e": None, "c": None, "t": None}]),
            ({"l": []}, [{"n": 0, "s": None, "e": None, "c": False, "t": False}]),
        ],
    ),
    Case(
        "numbers of a list",
        "SELECT array_sum(payload.l) AS s, array_avg(payload.l) AS a, array_min(payload.l) AS n, "
        'array_max(payload.l) AS x, array_sort(payload.l) AS o FROM "s/+"',
        [({"l": [3, 1.5, 2]}, [{"s": 6.5, "a": 6.5 / 3, "n": 1.5, "x": 3.0, "o": [1.5, 2.0, 3.0]}])],
        [
            ({"l": ["3", "x", None, 1]}, [{"s": 4.0, "a": 2.0, "n": 1.0, "x": 3.0, "o": [1.0, 3.0, None, None]}]),
            ({"l": "3"}, [{"s": None, "a": None, "n": None, "x": None, "o": None}]),
        ],
        [({"l": []}, [{"s": 0.0, "a": None, "n": None, "x": None, "o": []}])],
    ),
    Case(
        "texts of a list",
        "SELECT array_join(payload.l, '-') AS j, array_distinct(payload.l) AS d, "
        "array(payload.a, 'b') AS m FROM \"s/+\"",
        [({"l": ["x", "y", "x"], "a": "a"}, [{"j": "x-y-x", "d": ["x", "y"], "m": ["a", "b"]}])],
        [({"l": [1, None, True], "a": 1}, [{"j": "1-true", "d": ["1", None, "true"], "m": ["1", "b"]}])],
        [({}, [{"j": None, "d": None, "m": [None, "b"]}])],
    ),
    Case(
        "a user property",
        "SELECT user_property('unit') AS u FROM \"s/+\" WHERE user_property('v') = '1'",
        [
            (
                Message(
                    payload="",
                    user_properties=[
                        {"name": "v", "value": "1"},
                        {"name": "unit", "value": "C"},
                        {"name": "unit", "value": "F"},
                    ],
                ),
                [{"u": "C"}],
            )
        ],
        [(Message(payload="", user_properties=[{"name": "v", "value": "one"}]), [])],
        [
            (Message(payload=""), []),
            (Message(payload="", user_properties=[{"name": "v", "value": "1"}]), [{"u": None}]),
        ],
    ),
]

"""Payloads with a schema: declared JSON, CSV, text. Those that Python decodes are in test_decoding."""

from __future__ import annotations

from typing import Any

from tests.spark.rules.cases.shape import Case

DECLARED: tuple[str, dict[str, Any]] = (
    "json",
    {
        "fields": "temp double, n bigint, name string, ok boolean, at timestamp, tags array<string>, "
        "place struct<lat: double, lon: double>, extra map<string, double>, free json"
    },
)
CSV: tuple[str, dict[str, Any]] = ("csv", {"fields": "temp double, name string, n int", "separator": ";"})

CASES = [
    Case(
        "declared fields have types",
        "SELECT payload.temp AS temp, payload.n + 1 AS n, payload.name AS name, payload.at AS at, "
        'payload.place.lat AS lat FROM "s/+" WHERE payload.ok',
        [
            (
                {"temp": 1, "n": 2, "name": "x", "ok": True, "at": "2026-01-31T12:00:00Z", "place": {"lat": 5}},
                [{"temp": 1.0, "n": 3, "name": "x", "at": "2026-01-31T12:00:00.000Z", "lat": 5.0}],
            )
        ],
        [
            (
                {"temp": "hot", "n": 2, "ok": True},
                [{"temp": None, "n": 3, "name": None, "at": None, "lat": None}],
            ),
            ("no json", []),
        ],
        [({"ok": True}, [{"temp": None, "n": None, "name": None, "at": None, "lat": None}]), ({}, [])],
        DECLARED,
        failed=2,
    ),
    Case(
        "declared lists, maps and free parts",
        "SELECT payload.tags[1] AS second, size(payload.tags) AS n, payload.extra.k AS k, payload.free.a AS a, "
        "array_contains(payload.tags, 'y') AS y FROM \"s/+\"",
        [
            (
                {"tags": ["x", "y"], "extra": {"k": 1.5}, "free": {"a": [1]}},
                [{"second": "y", "n": 2, "k": 1.5, "a": [1], "y": True}],
            )
        ],
        [({"tags": "x"}, [{"second": None, "n": None, "k": None, "a": None, "y": None}])],
        [({}, [{"second": None, "n": None, "k": None, "a": None, "y": None}])],
        DECLARED,
        failed=1,
    ),
    Case(
        "FOREACH over a declared list",
        'FOREACH payload.tags AS tag DO upper(tag) AS t FROM "s/+"',
        [({"tags": ["x", "y"]}, [{"t": "X"}, {"t": "Y"}])],
        [({"tags": {"a": 1}}, [])],
        [({}, [])],
        DECLARED,
        failed=1,
    ),
    Case(
        "a whole declared record",
        'SELECT payload.place AS p, to_json(payload.place) AS j FROM "s/+"',
        [({"place": {"lat": 1, "lon": 2}}, [{"p": {"lat": 1.0, "lon": 2.0}, "j": '{"lat":1.0,"lon":2.0}'}])],
        [({"place": 5}, [{"p": None, "j": None}])],
        [({}, [{"p": None, "j": None}])],
        DECLARED,
        failed=1,
    ),
    Case(
        "CSV",
        'SELECT payload.temp * 2 AS t, payload.name AS name, payload.n AS n FROM "s/+"',
        [('1.5;"a;b";7', [{"t": 3.0, "name": "a;b", "n": 7}])],
        [("hot;x;7", [{"t": None, "name": "x", "n": 7}]), ("1;x;7;8", [{"t": 2.0, "name": "x", "n": 7}])],
        [("1.5", [{"t": 3.0, "name": None, "n": None}]), (";;", [{"t": None, "name": None, "n": None}])],
        CSV,
        failed=3,
    ),
    Case(
        "text",
        "SELECT payload, split_part(payload, ' ', 2) AS second, CAST(payload AS DOUBLE) AS n FROM \"s/+\" "
        "WHERE payload NOT LIKE '#%'",
        [
            ("a b", [{"payload": "a b", "second": "b", "n": None}]),
            ("1.5", [{"payload": "1.5", "second": None, "n": 1.5}]),
        ],
        [(b"\xff", []), ("#x", [])],
        [("", [{"payload": "", "second": None, "n": None}])],
        ("text", {}),
    ),
]

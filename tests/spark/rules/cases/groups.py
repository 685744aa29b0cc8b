"""GROUP BY, HAVING and windows."""

from __future__ import annotations

from tests.spark.rules.cases.shape import GroupCase, Message

ROOMS = [{"room": "a", "t": 1}, {"room": "b", "t": 5}, {"room": "a", "t": 3}]

CASES = [
    GroupCase(
        "aggregates by a field",
        "SELECT payload.room AS room, count(*) AS n, sum(payload.t) AS s, avg(payload.t) AS a, min(payload.t) AS lo, "
        'max(payload.t) AS hi FROM "s/+" GROUP BY payload.room',
        ROOMS,
        [
            {"room": "a", "n": 2, "s": 4.0, "a": 2.0, "lo": 1.0, "hi": 3.0},
            {"room": "b", "n": 1, "s": 5.0, "a": 5.0, "lo": 5.0, "hi": 5.0},
        ],
        [{"room": "b", "t": "x"}, {"t": 7}, "no json"],
        [
            {"room": "a", "n": 2, "s": 4.0, "a": 2.0, "lo": 1.0, "hi": 3.0},
            {"room": "b", "n": 2, "s": 5.0, "a": 5.0, "lo": 5.0, "hi": 5.0},
            {"room": None, "n": 2, "s": 7.0, "a": 7.0, "lo": 7.0, "hi": 7.0},
        ],
        failed=1,
    ),
    GroupCase(
        "HAVING by an alias and by an aggregate",
        'SELECT payload.room AS room, avg(payload.t) AS mean FROM "s/+" GROUP BY room HAVING mean > 2 AND count(*) < 3',
        ROOMS,
        [{"room": "b", "mean": 5.0}],
        [{"room": "a", "t": "90"}, {"room": "b", "t": {}}],
        [{"room": "b", "mean": 5.0}],
    ),
    GroupCase(
        "a group over everything",
        'SELECT count(*) AS n, count(payload.t) AS k, count_if(payload.t > 2) AS hot, avg(payload.t) AS a FROM "s/+"',
        ROOMS,
        [{"n": 3, "k": 3, "hot": 2, "a": 3.0}],
        [{"t": "x"}, {}, {"t": None}],
        [{"n": 6, "k": 4, "hot": 2, "a": 3.0}],
    ),
    GroupCase(
        "sums of integers stay exact",
        'SELECT sum(qos) AS s, sum(CAST(payload.n AS BIGINT)) AS n FROM "s/+"',
        [{"n": 9007199254740993}, {"n": 2}],
        [{"s": 2, "n": 9007199254740995}],
        [{"n": 9223372036854775807}],
        [{"s": 3, "n": None}],
    ),
    GroupCase(
        "windows that follow each other",
        'SELECT window.start AS s, window.end AS e, topic, avg(payload.t) AS a FROM "s/+" '
        "GROUP BY window(published_at, '1 minute'), topic",
        [
            Message(second=0, payload={"t": 1}),
            Message(second=59, payload={"t": 3}),
            Message(second=60, payload={"t": 9}),
        ],
        [
            {"s": "2026-01-31T12:00:00.000Z", "e": "2026-01-31T12:01:00.000Z", "topic": "s/1", "a": 2.0},
            {"s": "2026-01-31T12:01:00.000Z", "e": "2026-01-31T12:02:00.000Z", "topic": "s/1", "a": 9.0},
        ],
        [Message(second=10, payload={"t": "x"}), Message(second=61, payload={}), Message(second=150, payload={})],
        [
            {"s": "2026-01-31T12:00:00.000Z", "e": "2026-01-31T12:01:00.000Z", "topic": "s/1", "a": 2.0},
            {"s": "2026-01-31T12:01:00.000Z", "e": "2026-01-31T12:02:00.000Z", "topic": "s/1", "a": 9.0},
            {"s": "2026-01-31T12:02:00.000Z", "e": "2026-01-31T12:03:00.000Z", "topic": "s/1", "a": None},
        ],
    ),
    GroupCase(
        "windows that overlap",
        "SELECT date_format(window.start, 'mm:ss') AS s, count(*) AS n FROM \"s/+\" "
        "GROUP BY window(published_at, '1 minute', '30 seconds') HAVING n > 1 WATERMARK '5 seconds'",
        [Message(second=0, payload=""), Message(second=31, payload=""), Message(second=61, payload="")],
        [{"s": "00:00", "n": 2}, {"s": "00:30", "n": 2}],
        [Message(topic="x", second=0, payload="")],
        [{"s": "00:00", "n": 2}, {"s": "00:30", "n": 2}],
    ),
    GroupCase(
        "the whole window as a column",
        "SELECT window, max(topic) AS t FROM \"s/+\" GROUP BY window(published_at, '1 hour')",
        [Message(second=1, payload="")],
        [{"window": {"start": "2026-01-31T12:00:00.000Z", "end": "2026-01-31T13:00:00.000Z"}, "t": "s/1"}],
        [Message(second=2, topic="s/2", payload=b"\xff")],
        [{"window": {"start": "2026-01-31T12:00:00.000Z", "end": "2026-01-31T13:00:00.000Z"}, "t": "s/2"}],
    ),
    GroupCase(
        "the first and the last value",
        "SELECT client_id, first_value(payload.t) AS f, last_value(payload.t) AS l, "
        'last_value(payload) AS p FROM "s/+" GROUP BY clientid',
        [
            Message(second=2, payload='{"t":2}'),
            Message(second=3, payload='{"t":3}'),
            Message(second=1, payload='{"t":1}'),
        ],
        [{"client_id": "c1", "f": 1, "l": 3, "p": '{"t":3}'}],
        [Message(second=9, payload='{"t":"x"}'), Message(second=0, payload='{"t":0}', client_id="c2")],
        [
            {"client_id": "c1", "f": 1, "l": "x", "p": '{"t":"x"}'},
            {"client_id": "c2", "f": 0, "l": 0, "p": '{"t":0}'},
        ],
    ),
    GroupCase(
        "spread and distinct values",
        "SELECT round(stddev(payload.t), 4) AS s, variance(payload.t) AS v, percentile(payload.t, 0.5) AS p, "
        'approx_count_distinct(payload.t) AS d FROM "s/+"',
        [{"t": 1}, {"t": 2}, {"t": 3}],
        [{"s": 1.0, "v": 1.0, "p": 2.0, "d": 3}],
        [{"t": "x"}, {}],
        [{"s": 1.0, "v": 1.0, "p": 2.0, "d": 4}],
    ),
    GroupCase(
        "whether it holds for all or for one",
        'SELECT bool_and(payload.ok) AS every, bool_or(payload.ok) AS some FROM "s/+"',
        [{"ok": True}, {"ok": True}],
        [{"every": True, "some": True}],
        [{"ok": False}, {"ok": "?"}, {}],
        [{"every": False, "some": True}],
    ),
    GroupCase(
        "groups by an expression",
        'SELECT topic_level(2) AS device, floor(payload.t / 10) AS bucket, count(*) AS n FROM "s/+" '
        "GROUP BY topic_level(2), floor(payload.t / 10)",
        [{"t": 11}, {"t": 19}, {"t": 25}],
        [{"device": "1", "bucket": 1, "n": 2}, {"device": "1", "bucket": 2, "n": 1}],
        [{"t": "x"}],
        [
            {"device": "1", "bucket": 1, "n": 2},
            {"device": "1", "bucket": 2, "n": 1},
            {"device": "1", "bucket": None, "n": 1},
        ],
    ),
    GroupCase(
        "groups of items",
        'FOREACH payload.l AS i DO i.k AS k, sum(i.v) AS s FROM "s/+" GROUP BY i.k',
        [{"l": [{"k": "a", "v": 1}, {"k": "b", "v": 2}]}, {"l": [{"k": "a", "v": 3}]}],
        [{"k": "a", "s": 4.0}, {"k": "b", "s": 2.0}],
        [{"l": [{"k": "b", "v": "x"}, 5]}, {"l": 1}, {}],
        [{"k": "a", "s": 4.0}, {"k": "b", "s": 2.0}, {"k": None, "s": None}],
    ),
    GroupCase(
        "expressions of keys and aggregates",
        'SELECT upper(payload.room) AS r, round(sum(payload.t) / count(*), 1) AS m FROM "s/+" '
        "WHERE payload.t IS NOT NULL GROUP BY payload.room",
        ROOMS,
        [{"r": "A", "m": 2.0}, {"r": "B", "m": 5.0}],
        [{"room": "a", "t": None}, {"room": "a", "t": "x"}],
        [{"r": "A", "m": 1.3}, {"r": "B", "m": 5.0}],
    ),
]

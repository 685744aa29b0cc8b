"""FOREACH: rows from the items of lists."""

from __future__ import annotations

from tests.spark.rules.cases.shape import Case, Message

CASES = [
    Case(
        "FOREACH, DO and INCASE",
        'FOREACH payload.items AS i DO i.name AS name, topic INCASE i.ok FROM "s/+"',
        [
            (
                {"items": [{"name": "a", "ok": True}, {"name": "b", "ok": False}, {"name": "c", "ok": 1}]},
                [{"name": "a", "topic": "s/1"}, {"name": "c", "topic": "s/1"}],
            )
        ],
        [({"items": "abc"}, []), ({"items": [1, "x", None]}, []), ({"items": [{"name": 5, "ok": "no!"}]}, [])],
        [({}, []), ({"items": []}, []), ({"items": [{"name": "a"}]}, [])],
    ),
    Case(
        "FOREACH without DO",
        'FOREACH payload.values FROM "s/+"',
        [({"values": [1, "b"]}, [{"item": 1}, {"item": "b"}])],
        [({"values": {"a": 1}}, [])],
        [({}, [])],
    ),
    Case(
        "FOREACH over the whole payload",
        'FOREACH payload AS v DO v.t * 2 AS t FROM "s/+" WHERE qos = 1',
        [([{"t": 1}, {"t": 2.5}], [{"t": 2.0}, {"t": 5.0}])],
        [([1, {"t": "x"}], [{"t": None}, {"t": None}]), ("no json", []), (Message(payload=[{"t": 1}], qos=0), [])],
        [([], []), ([{}], [{"t": None}])],
        failed=1,
    ),
    Case(
        "FOREACH over a list inside of lists",
        'FOREACH payload.rooms[0].lamps AS lamp DO lamp.id AS id, payload.house AS house FROM "s/+"',
        [({"house": 7, "rooms": [{"lamps": [{"id": 1}, {"id": 2}]}]}, [{"id": 1, "house": 7}, {"id": 2, "house": 7}])],
        [({"house": 7, "rooms": {"lamps": []}}, [])],
        [({"house": 7, "rooms": []}, [])],
    ),
    Case(
        "FOREACH over parts of the topic",
        """FOREACH split(topic, '/') AS level DO level, payload.t AS t INCASE level <> 's' FROM "s/#" """,
        [(Message(topic="s/a/b", payload={"t": 1}), [{"level": "a", "t": 1}, {"level": "b", "t": 1}])],
        [(Message(topic="s/a", payload="x"), [{"level": "a", "t": None}])],
        [(Message(topic="s", payload={}), [])],
        failed=1,
    ),
    Case(
        "FOREACH over user properties",
        'FOREACH user_properties AS p DO p.name AS name, p.value AS value FROM "s/+"',
        [
            (
                Message(payload="", user_properties=[{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]),
                [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}],
            )
        ],
        [(Message(payload="", user_properties=[]), [])],
        [(Message(payload=""), [])],
    ),
    Case(
        "an event",
        'SELECT client_id, clientid AS c, at, protocol_version AS v FROM "$events/client_online"',
        [
            (
                Message(
                    topic="$events/client_online",
                    client_id=None,
                    payload={"client_id": "d7", "at": 1769860800.5, "protocol_version": 5},
                ),
                [{"client_id": "d7", "c": "d7", "at": 1769860800.5, "v": 5}],
            )
        ],
        [
            (
                Message(topic="$events/client_online", payload={"client_id": 7, "at": "soon", "protocol_version": "x"}),
                [{"client_id": "7", "c": "7", "at": None, "v": None}],
            ),
            (Message(topic="$events/client_offline", payload={"client_id": "d7"}), []),
        ],
        [(Message(topic="$events/client_online", payload={}), [{"client_id": None, "c": None, "at": None, "v": None}])],
    ),
    Case(
        "all events",
        'SELECT event, client_id, reason, filter, count, from_unix(at) AS t FROM "$events/#"',
        [
            (
                Message(
                    topic="$events/message_dropped", payload={"event": "message_dropped", "reason": "full", "count": 7}
                ),
                [
                    {
                        "event": "message_dropped",
                        "client_id": None,
                        "reason": "full",
                        "filter": None,
                        "count": 7,
                        "t": None,
                    }
                ],
            ),
            (
                Message(topic="$events/client_offline", payload={"client_id": "d1", "reason": 142, "at": 1769860800}),
                [
                    {
                        "event": None,
                        "client_id": "d1",
                        "reason": "142",
                        "filter": None,
                        "count": None,
                        "t": "2026-01-31T12:00:00.000Z",
                    }
                ],
            ),
        ],
        [
            (
                Message(topic="$events/subscribed", payload="x"),
                [dict.fromkeys(("event", "client_id", "reason", "filter", "count", "t"))],
            )
        ],
        [
            (
                Message(topic="$events/subscribed", payload={}),
                [dict.fromkeys(("event", "client_id", "reason", "filter", "count", "t"))],
            )
        ],
        failed=1,
    ),
    Case(
        "several events by their topic",
        'SELECT topic_level(2) AS event, client_id FROM "$events/client_online", "$events/client_offline" '
        "WHERE client_id LIKE 'd%'",
        [
            (
                Message(topic="$events/client_offline", payload={"client_id": "d1"}),
                [{"event": "client_offline", "client_id": "d1"}],
            )
        ],
        [(Message(topic="$events/client_online", payload={"client_id": [1]}), [])],
        [(Message(topic="$events/client_online", payload={}), [])],
    ),
]

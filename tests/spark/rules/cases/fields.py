"""Fields, conditions and operators."""

from __future__ import annotations

from tests.spark.rules.cases.shape import Case, Message

CASES = [
    Case(
        "a field and a comparison with a number",
        'SELECT payload.temp AS t, clientid, topic FROM "s/+" WHERE payload.temp > 30',
        [({"temp": 31.5}, [{"t": 31.5, "clientid": "c1", "topic": "s/1"}]), ({"temp": 30}, []), ({"temp": 29}, [])],
        [
            ({"temp": "31"}, [{"t": "31", "clientid": "c1", "topic": "s/1"}]),
            ({"temp": True}, []),
            ({"temp": "hot"}, []),
            ({"temp": {"c": 31}}, []),
            ({"temp": [31]}, []),
            ("not json", []),
        ],
        [({}, []), ({"temp": None}, []), ("", [])],
        failed=2,
    ),
    Case(
        "a path through lists",
        'SELECT payload.items[0].name AS n, payload.items[1] AS second FROM "s/+"',
        [({"items": [{"name": "a"}, {"name": "b"}]}, [{"n": "a", "second": {"name": "b"}}])],
        [({"items": {"0": 1}}, [{"n": None, "second": None}]), ({"items": "ab"}, [{"n": None, "second": None}])],
        [({}, [{"n": None, "second": None}]), ({"items": []}, [{"n": None, "second": None}])],
    ),
    Case(
        "names with blanks, capitals and words of SQL",
        """SELECT payload."Room Name" AS room, payload['select'] AS s, payload.order.from AS f FROM "s/+" """,
        [({"Room Name": "a", "select": 1, "order": {"from": 2}}, [{"room": "a", "s": 1, "f": 2}])],
        [({"Room Name": 5, "order": 6}, [{"room": 5, "s": None, "f": None}])],
        [({"room name": "a"}, [{"room": None, "s": None, "f": None}])],
    ),
    Case(
        "equal to a text",
        """SELECT payload.state AS s FROM "s/+" WHERE payload.state = 'on'""",
        [({"state": "on"}, [{"s": "on"}]), ({"state": "off"}, [])],
        [({"state": True}, []), ({"state": 1}, [])],
        [({}, []), ({"state": None}, [])],
    ),
    Case(
        "not equal leaves out what is missing",
        """SELECT payload.state AS s FROM "s/+" WHERE payload.state <> 'on'""",
        [({"state": "off"}, [{"s": "off"}]), ({"state": "on"}, [])],
        [({"state": 7}, [{"s": 7}])],
        [({}, [])],
    ),
    Case(
        "a boolean alone",
        'SELECT payload.id AS id FROM "s/+" WHERE payload.ok',
        [({"id": 1, "ok": True}, [{"id": 1}]), ({"id": 2, "ok": False}, [])],
        [({"id": 3, "ok": "true"}, [{"id": 3}]), ({"id": 4, "ok": 2}, [{"id": 4}]), ({"id": 5, "ok": "yes!"}, [])],
        [({"id": 6}, []), ({"id": 7, "ok": None}, [])],
    ),
    Case(
        "AND, OR and NOT with NULL",
        'SELECT payload.id AS id FROM "s/+" WHERE payload.a > 1 AND (payload.b < 5 OR NOT payload.c)',
        [
            ({"id": 1, "a": 2, "b": 4, "c": True}, [{"id": 1}]),
            ({"id": 2, "a": 2, "b": 6, "c": False}, [{"id": 2}]),
            ({"id": 3, "a": 0, "b": 4, "c": False}, []),
        ],
        [({"id": 4, "a": "x", "b": 4, "c": False}, []), ({"id": 5, "a": 2, "b": "x", "c": False}, [{"id": 5}])],
        [({"id": 6, "a": 2}, []), ({"id": 7, "a": 2, "b": 1}, [{"id": 7}])],
    ),
    Case(
        "IS NULL holds for missing and for null",
        'SELECT payload.a IS NULL AS none, payload.a IS NOT NULL AS some FROM "s/+"',
        [({"a": 1}, [{"none": False, "some": True}]), ({"a": ""}, [{"none": False, "some": True}])],
        [({"a": {"b": 1}}, [{"none": False, "some": True}])],
        [({"a": None}, [{"none": True, "some": False}]), ({}, [{"none": True, "some": False}])],
    ),
    Case(
        "IS TRUE and IS NOT TRUE are never NULL",
        'SELECT payload.ok IS TRUE AS yes, payload.ok IS NOT TRUE AS no FROM "s/+"',
        [({"ok": True}, [{"yes": True, "no": False}]), ({"ok": False}, [{"yes": False, "no": True}])],
        [({"ok": "what"}, [{"yes": False, "no": True}])],
        [({}, [{"yes": False, "no": True}])],
    ),
    Case(
        "BETWEEN",
        'SELECT payload.v AS v FROM "s/+" WHERE payload.v BETWEEN 1 AND 2.5',
        [({"v": 1}, [{"v": 1}]), ({"v": 2.5}, [{"v": 2.5}]), ({"v": 2.51}, [])],
        [({"v": "2"}, [{"v": "2"}]), ({"v": "two"}, [])],
        [({}, [])],
    ),
    Case(
        "NOT BETWEEN",
        'SELECT payload.v AS v FROM "s/+" WHERE payload.v NOT BETWEEN 1 AND 2',
        [({"v": 3}, [{"v": 3}]), ({"v": 2}, [])],
        [({"v": [3]}, [])],
        [({}, [])],
    ),
    Case(
        "IN with texts",
        """SELECT payload.s AS s FROM "s/+" WHERE payload.s IN ('a', 'b')""",
        [({"s": "a"}, [{"s": "a"}]), ({"s": "c"}, [])],
        [({"s": ["a"]}, [])],
        [({}, [])],
    ),
    Case(
        "IN with numbers",
        'SELECT payload.n AS n FROM "s/+" WHERE payload.n NOT IN (1, 2)',
        [({"n": 3}, [{"n": 3}]), ({"n": 1}, []), ({"n": 1.5}, [{"n": 1.5}])],
        [({"n": "2"}, []), ({"n": "x"}, [])],
        [({}, [])],
    ),
    Case(
        "LIKE",
        """SELECT payload.s AS s FROM "s/+" WHERE payload.s LIKE 'ab%_z'""",
        [({"s": "ab-z"}, [{"s": "ab-z"}]), ({"s": "abz"}, []), ({"s": "ab\n-z"}, [{"s": "ab\n-z"}])],
        [({"s": 5}, [])],
        [({}, [])],
    ),
    Case(
        "RLIKE",
        """SELECT payload.s AS s FROM "s/+" WHERE payload.s RLIKE '^[a-c]+\\d$'""",
        [({"s": "abc1"}, [{"s": "abc1"}]), ({"s": "abc"}, [])],
        [({"s": 1}, [])],
        [({}, [])],
    ),
    Case(
        "arithmetic, with a division by zero",
        "SELECT payload.a + payload.b AS s, payload.a * 2 - 1 AS m, payload.a / payload.b AS d, -payload.a AS n "
        'FROM "s/+"',
        [
            ({"a": 3, "b": 2}, [{"s": 5.0, "m": 5.0, "d": 1.5, "n": -3.0}]),
            ({"a": 1, "b": 0}, [{"s": 1.0, "m": 1.0, "d": None, "n": -1.0}]),
        ],
        [
            ({"a": "3", "b": "2"}, [{"s": 5.0, "m": 5.0, "d": 1.5, "n": -3.0}]),
            ({"a": "x", "b": 2}, [{"s": None, "m": None, "d": None, "n": None}]),
        ],
        [({"a": 3}, [{"s": None, "m": 5.0, "d": None, "n": -3.0}])],
    ),
    Case(
        "the rest of a division",
        'SELECT payload.a % 3 AS r, mod(payload.a, payload.b) AS m, div(payload.a, payload.b) AS q FROM "s/+"',
        [({"a": 7, "b": 2}, [{"r": 1.0, "m": 1.0, "q": 3}]), ({"a": -7, "b": 2}, [{"r": -1.0, "m": -1.0, "q": -3}])],
        [
            ({"a": 7, "b": 0}, [{"r": 1.0, "m": None, "q": None}]),
            ({"a": [], "b": 1}, [{"r": None, "m": None, "q": None}]),
        ],
        [({"b": 2}, [{"r": None, "m": None, "q": None}])],
    ),
    Case(
        "integers stay exact, and overflow to NULL",
        'SELECT CAST(payload.n AS BIGINT) + 1 AS n FROM "s/+"',
        [({"n": 9007199254740993}, [{"n": 9007199254740994}])],
        [({"n": 9223372036854775807}, [{"n": None}]), ({"n": "12"}, [{"n": 13}]), ({"n": 1e300}, [{"n": None}])],
        [({}, [{"n": None}])],
    ),
    Case(
        "columns of the message",
        'SELECT topic, qos, retain, client_id, clientid AS c, username, node, partition FROM "s/+"',
        [
            (
                Message(topic="s/2", payload=b"\xff", qos=2, retain=True),
                [
                    {
                        "topic": "s/2",
                        "qos": 2,
                        "retain": True,
                        "client_id": "c1",
                        "c": "c1",
                        "username": "u1",
                        "node": "n1",
                        "partition": 0,
                    }
                ],
            )
        ],
        [(Message(topic="t/2", payload=b""), [])],
        [
            (
                Message(client_id=None, username=None, node=None, payload=b""),
                [
                    {
                        "topic": "s/1",
                        "qos": 1,
                        "retain": False,
                        "client_id": None,
                        "c": None,
                        "username": None,
                        "node": None,
                        "partition": 0,
                    }
                ],
            )
        ],
    ),
    Case(
        "several topic filters",
        'SELECT topic FROM "a/+/x", "b/#", "c" WHERE qos >= 0',
        [
            (Message(topic="a/1/x", payload=""), [{"topic": "a/1/x"}]),
            (Message(topic="b", payload=""), [{"topic": "b"}]),
            (Message(topic="b/1/2", payload=""), [{"topic": "b/1/2"}]),
            (Message(topic="c", payload=""), [{"topic": "c"}]),
        ],
        [(Message(topic="a/1/y", payload=""), []), (Message(topic="c/1", payload=""), [])],
        [(Message(topic="a/x", payload=""), [])],
    ),
    Case(
        "a filter with characters that patterns know",
        'SELECT topic FROM "d.e/+/[x]", "{1}/#"',
        [
            (Message(topic="d.e/1/[x]", payload=""), [{"topic": "d.e/1/[x]"}]),
            (Message(topic="{1}/a", payload=""), [{"topic": "{1}/a"}]),
        ],
        [(Message(topic="dxe/1/[x]", payload=""), []), (Message(topic="d.e/1/x", payload=""), [])],
        [(Message(topic="d.e/1", payload=""), [])],
    ),
    Case(
        "all topics but those of the system",
        'SELECT topic FROM "#"',
        [(Message(topic="x", payload=""), [{"topic": "x"}]), (Message(topic="/", payload=""), [{"topic": "/"}])],
        [(Message(topic="$SYS/x", payload=""), [])],
        [(Message(topic="$events/client_online", payload=""), [])],
    ),
    Case(
        "the whole payload is its text",
        'SELECT payload, payload AS again, length(payload) AS n FROM "s/+"',
        [("hello", [{"payload": "hello", "again": "hello", "n": 5}])],
        [(b"\xff\xfe", [{"payload": None, "again": None, "n": None}])],
        [("", [{"payload": "", "again": "", "n": 0}])],
    ),
    Case(
        "the whole payload as a number",
        'SELECT payload * 2 AS double FROM "s/+" WHERE payload > 20',
        [("21.5", [{"double": 43.0}]), ("19", [])],
        [("hot", []), ({"v": 30}, []), ('"30"', [{"double": 60.0}])],
        [("", [])],
        failed=2,
    ),
    Case(
        "the whole payload compared with a text",
        """SELECT topic FROM "s/+" WHERE payload = 'ON'""",
        [("ON", [{"topic": "s/1"}]), ("OFF", [])],
        [(b"\xff", []), ('"ON"', [])],
        [("", [])],
    ),
    Case(
        "the bytes of the payload",
        'SELECT CAST(payload AS BINARY) AS b, hex(payload) AS h, base64(payload) AS e FROM "s/+"',
        [(b"\x00\xff", [{"b": "AP8=", "h": "00FF", "e": "AP8="}])],
        [("{}", [{"b": "e30=", "h": "7B7D", "e": "e30="}])],
        [("", [{"b": "", "h": "", "e": ""}])],
    ),
    Case(
        "CAST of fields",
        "SELECT CAST(payload.v AS DOUBLE) AS d, CAST(payload.v AS BIGINT) AS i, CAST(payload.v AS STRING) AS s, "
        'payload.v::boolean AS b FROM "s/+"',
        [({"v": 31.7}, [{"d": 31.7, "i": 31, "s": "31.7", "b": True}])],
        [
            ({"v": "31"}, [{"d": 31.0, "i": 31, "s": "31", "b": None}]),
            ({"v": True}, [{"d": 1.0, "i": 1, "s": "true", "b": True}]),
            ({"v": "x"}, [{"d": None, "i": None, "s": "x", "b": None}]),
            ({"v": {"a": 1}}, [{"d": None, "i": None, "s": '{"a":1}', "b": None}]),
        ],
        [({}, [{"d": None, "i": None, "s": None, "b": None}])],
    ),
    Case(
        "CAST of texts and numbers of known type",
        'SELECT CAST(topic_level(2) AS BIGINT) AS n, CAST(qos AS STRING) AS q, CAST(qos AS BOOLEAN) AS b FROM "s/+"',
        [(Message(topic="s/42", payload="", qos=1), [{"n": 42, "q": "1", "b": True}])],
        [(Message(topic="s/x", payload="", qos=0), [{"n": None, "q": "0", "b": False}])],
        [(Message(topic="s/", payload="", qos=0), [{"n": None, "q": "0", "b": False}])],
    ),
    Case(
        "two fields compared: equal as texts, ordered as numbers",
        'SELECT payload.a = payload.b AS same, payload.a < payload.b AS less FROM "s/+"',
        [({"a": 9, "b": 10}, [{"same": False, "less": True}]), ({"a": "x", "b": "x"}, [{"same": True, "less": None}])],
        [({"a": 1, "b": "1"}, [{"same": True, "less": False}])],
        [({"a": 1}, [{"same": None, "less": None}])],
    ),
    Case(
        "JSON that is not clean",
        'SELECT payload.a AS a FROM "s/+"',
        [('{"a": 1}', [{"a": 1}]), ('  {"a" : [1, 2.5, "x", null]}  ', [{"a": [1, 2.5, "x", None]}])],
        [('{"a": 1, "a": 2}', [{"a": None}]), ('{"a": 1', [{"a": None}]), (b'{"a": "\xff"}', [{"a": None}])],
        [("[]", [{"a": None}]), ("null", [{"a": None}])],
        failed=3,
    ),
    Case(
        "large numbers",
        'SELECT payload.n AS n, payload.n > 1 AS big FROM "s/+"',
        [({"n": 123456789012345678901}, [{"n": 123456789012345678901, "big": True}])],
        [({"n": "123456789012345678901"}, [{"n": "123456789012345678901", "big": True}])],
        [({}, [{"n": None, "big": None}])],
    ),
    Case(
        "a constant column",
        "SELECT 'it''s \\ a \"text\" ${env:HOME}' AS t, 1 AS i, 1.5 AS d, true AS b, NULL AS n, -2 AS m FROM \"s/+\"",
        [({}, [{"t": 'it\'s \\ a "text" ${env:HOME}', "i": 1, "d": 1.5, "b": True, "n": None, "m": -2}])],
        [("x", [{"t": 'it\'s \\ a "text" ${env:HOME}', "i": 1, "d": 1.5, "b": True, "n": None, "m": -2}])],
        [("", [{"t": 'it\'s \\ a "text" ${env:HOME}', "i": 1, "d": 1.5, "b": True, "n": None, "m": -2}])],
    ),
    Case(
        "names without AS",
        'SELECT payload.temp, upper(topic), qos + 1 FROM "s/+"',
        [({"temp": 1}, [{"temp": 1, "upper": "S/1", "column_3": 2}])],
        [("x", [{"temp": None, "upper": "S/1", "column_3": 2}])],
        [({}, [{"temp": None, "upper": "S/1", "column_3": 2}])],
        failed=1,
    ),
]

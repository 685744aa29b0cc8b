"""Asking a node: failures are one sentence that names the option or the address, and what passes is waited out."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from brookmq.spark import node_client
from brookmq.spark.node_client import ROWS, NodeClient, RowRefusedError, Run
from tests.harness.node import free_port

FACTS = {
    "cluster": "c", "journal": "id", "node": "n@h", "capture": ["#"],
    "shards": [{"shard": 0, "stream": "JOURNAL_0", "first": 3, "end": 9}],
    "store": {
        "servers": ["nats://127.0.0.1:1"], "user": "u", "password": "secret", "expires_at": 5.0, "inbox": "_I",
        "ca": None,
    },
}  # fmt: skip

Answer = tuple[int, Any]


class StandIn(ThreadingHTTPServer):
    """Answers as ``answer`` says, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: Callable[[str], Answer] = lambda path: (200, FACTS)
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.connections = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(size)
        is_json = self.headers.get("Content-Type") == "application/json"
        body = json.loads(data) if is_json else (self.headers.get("Content-Type"), data) if size else None
        self.server.asked.append((self.command, self.path, body, self.headers.get("Authorization")))
        status, answer = self.server.answer(self.path)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the library's names

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def node() -> Iterator[StandIn]:
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(node: StandIn) -> Iterator[NodeClient]:
    found = NodeClient([node.url])
    yield found
    found.close()


def test_the_journal(node: StandIn, client: NodeClient) -> None:
    facts, store = client.access()
    assert (facts.journal, facts.node, facts.firsts, facts.ends) == ("id", "n@h", {0: 3}, {0: 9})
    assert store.servers == ("nats://127.0.0.1:1",)
    assert "secret" not in repr(facts)
    assert not store.lasts(0)
    client.journal()
    assert [path for _, path, *_ in node.asked] == ["/api/v1/journal?credential=true", "/api/v1/journal"]
    assert node.connections == 1


def test_a_credential_without_an_end(node: StandIn, client: NodeClient) -> None:
    store = {"servers": ["tls://a:1"], "user": None, "password": None, "expires_at": None, "inbox": "_I", "ca": "PEM"}
    node.answer = lambda path: (200, {**FACTS, "store": store})
    _, access = client.access()
    assert access.lasts(1e9)
    assert (access.user, access.ca, access.inbox) == (None, "PEM", "_I")


def test_a_plan(node: StandIn, client: NodeClient) -> None:
    node.answer = lambda path: (200, {"0": [[5, 9, 100, 200], [12, 12, 300, 301]], "lost": {"1": 7}})
    plan = client.plan({0: (100, 400), 1: (0, 7)}, ["a/#"], (1.5, 2.5))
    assert plan.runs == {0: [Run(5, 9, 100, 200), Run(12, 12, 300, 301)], 1: []}
    assert plan.lost == {1: 7}
    body = {"ranges": {"0": [100, 400], "1": [0, 7]}, "filters": ["a/#"], "time": [1.5, 2.5]}
    assert node.asked == [("POST", "/api/v1/journal/plan", body, None)]


def test_times_and_readers(node: StandIn) -> None:
    client = NodeClient([node.url], "the-token")
    node.answer = lambda path: (200, {"0": 17})
    assert client.at_time(1794744000.25) == {0: 17}
    node.answer = lambda path: (200, {"name": "a.b", "lost": 5})
    assert client.put_reader("a.b", {0: 4}, ["#"]) == 5
    client.lose("a.b", {0: [(2, 4), (6, 7)]})
    client.close()
    assert [asked[:3] for asked in node.asked] == [
        ("GET", "/api/v1/journal/time/1794744000.25", None),
        ("PUT", "/api/v1/readers/a.b", {"position": {"0": 4}, "filter": ["#"]}),
        ("POST", "/api/v1/readers/a.b/lost", {"ranges": {"0": [[2, 4], [6, 7]]}}),
    ]
    assert {asked[3] for asked in node.asked} == {"Bearer the-token"}


def test_a_reader_that_the_node_does_not_know(node: StandIn, client: NodeClient) -> None:
    node.answer = lambda path: (404, {"code": "not_found", "message": "no reader 'me' on this node"})
    with pytest.raises(LookupError, match="no reader 'me'"):
        client.lose("me", {0: [(0, 1)]})
    node.answer = lambda path: (200, [])
    with pytest.raises(ValueError, match="but not as BrookMQ's HTTP API does"):
        client.put_reader("me", {}, [])


def test_rows(node: StandIn, client: NodeClient) -> None:
    node.answer = lambda path: (200, {"batch": 3, "row": 17})
    assert client.publish_rows("a/b c", 5, b"\x00rows") == (3, 17)
    node.answer = lambda path: (204, b"")
    client.forget_query("a/b c")
    assert [asked[:3] for asked in node.asked] == [
        ("POST", "/api/v1/publish/exactly-once/a%2Fb%20c/5", (ROWS, b"\x00rows")),
        ("DELETE", "/api/v1/publish/exactly-once/a%2Fb%20c", None),
    ]


@pytest.mark.parametrize(
    ("said", "reason", "code"),
    [
        ("row 12: topic name: empty (MQTT reason 0x90)", "topic name: empty", 0x90),
        ("row 12: what (ever) it is", "what (ever) it is", 0),
    ],
)
def test_a_row_that_is_refused(node: StandIn, client: NodeClient, said: str, reason: str, code: int) -> None:
    node.answer = lambda path: (400, {"code": "bad_request", "message": said})
    with pytest.raises(RowRefusedError) as raised:
        client.publish_rows("q", 0, b"rows")
    assert (raised.value.row, raised.value.reason, raised.value.code) == (12, reason, code)


def test_rows_that_are_refused_for_another_reason(node: StandIn, client: NodeClient) -> None:
    node.answer = lambda path: (400, {"code": "bad_request", "message": "rows: no batch and row"})
    with pytest.raises(ValueError, match="rows: no batch and row") as raised:
        client.publish_rows("q", 0, b"rows")
    assert not isinstance(raised.value, RowRefusedError)


def test_a_node_that_is_known_is_waited_for_from_the_start() -> None:
    client = NodeClient([f"http://127.0.0.1:{free_port()}"], known=True)
    client.patience_s = 0.3
    before = time.monotonic()
    with pytest.raises(ConnectionError, match="refused"):
        client.journal()
    assert time.monotonic() - before >= 0.1


@pytest.mark.parametrize(
    ("status", "answer", "kind", "message"),
    [
        (401, {"code": "unauthorized", "message": "who are you?"}, PermissionError, "option token .* who are you?"),
        (403, {"code": "forbidden", "message": "not you"}, PermissionError, "option token .* not you"),
        (400, {"code": "bad_request", "message": "body: wrong"}, ValueError, "says: body: wrong"),
        (404, {"code": "not_found", "message": "nothing here"}, LookupError, "says: nothing here"),
        (503, {"code": "unavailable", "message": "no store"}, ConnectionError, "option servers.*no store"),
        (404, {"detail": "Not Found"}, ValueError, "not as BrookMQ's HTTP API"),
        (200, b"<html>", ValueError, "not as BrookMQ's HTTP API"),
        (200, {"shards": []}, ValueError, "not as BrookMQ's HTTP API"),
        (200, [], ValueError, "not as BrookMQ's HTTP API"),
    ],
)
def test_answers_that_are_none(
    node: StandIn, client: NodeClient, status: int, answer: Any, kind: type[Exception], message: str
) -> None:
    node.answer = lambda path: (status, answer)
    client.patience_s = 0.2
    with pytest.raises(kind, match=message) as raised:
        client.journal()
    assert str(raised.value).startswith("brookmq: ")
    assert node.url in str(raised.value)


def test_nobody_is_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ConnectionError, match=rf"^brookmq: no node answers \(option servers\): {url} \(refused\)$"):
        NodeClient([url]).journal()


def test_the_next_node_is_asked_when_one_is_gone(node: StandIn) -> None:
    client = NodeClient([f"http://127.0.0.1:{free_port()}", node.url])
    assert client.journal().journal == "id"
    client.close()


def test_a_node_that_is_there_is_waited_for(node: StandIn, client: NodeClient) -> None:
    answers = iter([(503, {"message": "starting"}), (503, {"message": "starting"}), (200, FACTS)])
    node.answer = lambda path: next(answers)
    assert client.journal().journal == "id"
    client.patience_s = 0.3
    node.answer = lambda path: (503, {"message": "starting"})
    with pytest.raises(ConnectionError, match="starting"):
        client.journal()


def test_a_connection_that_was_idle_too_long_is_made_anew(node: StandIn, client: NodeClient) -> None:
    client.journal()
    assert client._connection is not None
    assert client._connection.sock is not None
    client._connection.sock.close()
    client.patience_s = 0.0
    client.journal()
    assert node.connections == 2


def test_it_travels_without_its_connection(node: StandIn, client: NodeClient) -> None:
    client.journal()
    copy: NodeClient = pickle.loads(pickle.dumps(client))
    assert copy.journal() == client.journal()
    copy.close()
    assert copy.patience_s == node_client.PATIENCE_S

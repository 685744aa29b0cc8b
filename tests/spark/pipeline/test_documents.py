"""What a pipeline asks its node: over HTTP, against a server that answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from brookmq.spark.pipeline.documents import PipelineNode, ReaderFacts
from tests.spark.pipeline.test_wanted import rule, table

DOCUMENTS = {"revision": 7, "rules": [rule()], "tables": [table()], "schemas": [], "resources": []}


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        status, content = self.server.answers.get(self.path, (404, {"message": "no"}))
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815 - the names that are looked for

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def node(server: Server) -> Iterator[PipelineNode]:
    found = PipelineNode([server.url], None)
    yield found
    found.close()


def test_documents_are_read_when_they_changed(server: Server, node: PipelineNode) -> None:
    server.answers["/api/v1/pipeline?secrets=true"] = (200, DOCUMENTS)
    found = node.documents()
    assert (found.revision, set(found.rules), set(found.tables)) == (7, {"r"}, {"t"})
    assert node.documents(found) is found
    server.answers["/api/v1/pipeline?secrets=true"] = (200, {**DOCUMENTS, "revision": 8, "rules": []})
    assert node.documents(found).rules == {}


@pytest.mark.parametrize("answer", [{}, [], {"revision": 1}, {**DOCUMENTS, "rules": [{}]}])
def test_an_answer_of_somebody_else(server: Server, node: PipelineNode, answer: Any) -> None:
    server.answers["/api/v1/pipeline?secrets=true"] = (200, answer)
    with pytest.raises(ValueError, match="not one of this version"):
        node.documents()


def test_readers(server: Server, node: PipelineNode) -> None:
    server.answers["/api/v1/readers"] = (200, [{"name": "rule.a", "position": {"0": 5}, "seen_at": 7.5, "lag": 1}])
    assert node.reader("rule.a") == ReaderFacts({0: 5}, 7.5)
    assert node.reader("rule.b") is None
    node.drop_reader("a b")  # somebody else has dropped it
    assert server.asked[-1] == ("DELETE", "/api/v1/readers/a%20b", None)


def test_tables_and_capture(server: Server, node: PipelineNode) -> None:
    server.answers["/api/v1/pipeline?secrets=true"] = (200, DOCUMENTS)
    server.answers["/api/v1/tables/t"] = (200, {})
    server.answers["/api/v1/journal"] = (200, {"capture": ["a/#"]})
    assert node.tables()["t"].path == "/lake/t"
    node.put_table("t", {"kind": "bronze"})
    assert server.asked[-1] == ("PUT", "/api/v1/tables/t", {"kind": "bronze"})
    assert node.capture() == ["a/#"]

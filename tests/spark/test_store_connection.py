"""The protocol of the store, against a server that says what the test wants, byte for byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from brookmq.spark.node_client import StoreAccess
from brookmq.spark.store_connection import StoreConnection, StoreRefusedError

STORE = StoreAccess((), "reader-1", "secret", 1e12, "_INBOX.reader")
INFO = b'INFO {"server_id":"x","headers":true}\r\n'


class Server:
    """Takes one connection and hands it to ``talk``; what goes wrong there fails the test."""

    def __init__(self, talk: Callable[[Server], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self._listener.getsockname()[1]}"
        self._talk = talk
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        connection, _ = self._listener.accept()
        with connection, connection.makefile("rb") as self.file:
            self.connection = connection
            try:
                self._talk(self)
            except BaseException as error:  # noqa: BLE001 - it belongs to the test's thread
                self._failure = error

    def line(self) -> bytes:
        return self.file.readline().strip()

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def greet(self) -> dict[str, object]:
        self.send(INFO)
        word, _, hello = self.line().partition(b" ")
        assert word == b"CONNECT"
        assert self.line().startswith(b"SUB _INBOX.reader.")
        assert self.line() == b"PING"
        self.send(b"PONG\r\n")
        found: dict[str, object] = json.loads(hello)
        return found

    def question(self) -> tuple[bytes, bytes, dict[str, int]]:
        word, subject, reply, _ = self.line().split(b" ")
        assert word == b"PUB"
        return subject, reply, json.loads(self.line())

    def answer(self, reply: bytes, headers: bytes, data: bytes = b"") -> None:
        headers = b"NATS/1.0" + headers + b"\r\n\r\n"
        self.send(b"HMSG %s 1 %d %d\r\n%s%s\r\n" % (reply, len(headers), len(headers) + len(data), headers, data))

    def join(self) -> None:
        self._thread.join(10)
        self._listener.close()
        if self._failure is not None:
            raise self._failure


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Server], None]], str]]:
    servers: list[Server] = []

    def start(talk: Callable[[Server], None]) -> str:
        servers.append(Server(talk))
        return servers[-1].url

    yield start
    for server in servers:
        server.join()


Serve = Callable[[Callable[[Server], None]], str]


def connect(url: str) -> StoreConnection:
    return StoreConnection(url, STORE)


def test_records_of_an_answer(serve: Serve) -> None:
    def talk(server: Server) -> None:
        hello = server.greet()
        assert (hello["user"], hello["pass"], hello["headers"]) == ("reader-1", "secret", True)
        subject, reply, query = server.question()
        assert subject == b"$JS.API.DIRECT.GET.JOURNAL_0"
        assert (query["seq"], query["batch"]) == (5, 7)
        server.send(b"PING\r\n")
        server.answer(reply, b"\r\nNats-Stream: JOURNAL_0\r\nNats-Sequence: 5\r\nNats-Num-Pending: 3", b"one\r\ntwo")
        server.answer(b"_INBOX.reader.of.another.0", b"\r\nNats-Sequence: 4", b"too late")
        server.send(b"MSG something 1 3\r\nabc\r\n+OK\r\n")
        server.answer(reply, b"\r\nNats-Sequence: 8", b"")
        server.answer(reply, b" 204 EOB\r\nNats-Num-Pending: 0")
        assert server.line() == b"PONG"
        _, reply, query = server.question()
        assert (query["seq"], query["batch"]) == (9, 512)
        server.answer(reply, b" 404 Message Not Found")

    connection = connect(serve(talk))
    records = connection.fetch("JOURNAL_0", 5, 7)
    assert [(record.sequence, record.message[record.start :]) for record in records] == [(5, b"one\r\ntwo"), (8, b"")]
    assert connection.fetch("JOURNAL_0", 9, 100_000) == []
    connection.close()


def test_a_wrong_password(serve: Serve) -> None:
    def talk(server: Server) -> None:
        server.send(INFO)
        server.line()
        server.send(b"-ERR 'Authorization Violation'\r\n")

    with pytest.raises(StoreRefusedError, match=r"^Authorization Violation$"):
        connect(serve(talk))


def test_a_stream_that_is_not_allowed(serve: Serve) -> None:
    def talk(server: Server) -> None:
        server.greet()
        server.question()
        server.send(b"-ERR 'Permissions Violation for Publish to \"$JS.API.DIRECT.GET.OTHER\"'\r\n")

    connection = connect(serve(talk))
    with pytest.raises(StoreRefusedError, match="Permissions Violation"):
        connection.fetch("OTHER", 1, 1)
    connection.close()


@pytest.mark.parametrize("status", [b" 503", b" 408 Bad Request"])
def test_an_answer_that_is_none(serve: Serve, status: bytes) -> None:
    def talk(server: Server) -> None:
        server.greet()
        server.answer(server.question()[1], status)

    connection = connect(serve(talk))
    with pytest.raises(ConnectionError, match=status.split()[0].decode()):
        connection.fetch("JOURNAL_0", 1, 1)
    connection.close()


@pytest.mark.parametrize("part", [b"", b"HMSG _INBOX.reader.x.1 1 20 30\r\nNATS/1.0", b"HMSG _INB"])
def test_a_connection_that_ends_in_the_middle(serve: Serve, part: bytes) -> None:
    def talk(server: Server) -> None:
        server.greet()
        server.question()
        server.send(part)

    connection = connect(serve(talk))
    with pytest.raises(ConnectionError, match="closed the connection"):
        connection.fetch("JOURNAL_0", 1, 1)
    connection.close()


def test_something_else_answers(serve: Serve) -> None:
    with pytest.raises(ConnectionError, match="is no store"):
        connect(serve(lambda server: server.send(b"220 mail\r\n")))
    with pytest.raises(ConnectionError, match="closes the connection at once"):
        connect(serve(lambda server: None))
    with pytest.raises(ValueError, match="no address"):
        connect("nowhere")


def test_nothing_is_told_to_a_server_without_tls_that_should_have_it(serve: Serve) -> None:
    heard: list[bytes] = []

    def talk(server: Server) -> None:
        server.send(INFO)
        heard.append(server.file.read(1))
        server.send(b"this is no TLS\r\n")

    with pytest.raises(OSError, match=r"(?i)ssl"):
        connect(serve(talk).replace("nats:", "tls:"))
    assert heard == [b"\x16"]  # a handshake, and no CONNECT

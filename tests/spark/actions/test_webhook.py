"""Rows posted to an HTTP server that sometimes has other things to do."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest

from brookmq.base.rule_documents import parse_action, parse_resource
from brookmq.spark.actions import Action, ActionError, make_action, webhook
from tests.spark.actions.frames import NODE, ROWS, key, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer = tuple[int, dict[str, str], bytes] | None  # None: the connection is closed without one


@dataclass
class Receiver:
    """Keeps what came; answers what ``answers`` says, then 200."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[tuple[dict[str, str], list[dict[str, Any]]]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [headers["idempotency-key"] for headers, _ in self.requests]

    def taken_once(self) -> list[int]:
        """The numbers of the rows, as a server has them that knows the keys."""
        by_key = {headers["idempotency-key"]: rows for headers, rows in self.requests}
        return [row["number"] for rows in by_key.values() for row in rows]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhook, "PAUSE_FIRST_S", 0.01)
    found = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.times.append(time.monotonic())
            found.requests.append(({name.lower(): text for name, text in self.headers.items()}, json.loads(body)))
            answer = found.answers.pop(0) if found.answers else (200, {}, b"")
            if answer is None:
                self.close_connection = True
                return
            status, headers, text = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        found.url = f"http://127.0.0.1:{server.server_address[1]}/rows?secret=1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def make(receiver: Receiver) -> Iterator[Callable[..., Action]]:
    made: list[Action] = []

    def make_it(frame: DataFrame, *, steady: bool = True, **settings: Any) -> Action:
        document = parse_action({"type": "webhook", "url": receiver.url, **settings})
        made.append(make_action(document, {}, NODE, frame.schema, steady=steady))
        return made[-1]

    yield make_it
    for action in made:
        action.close()


Make = Callable[..., Action]


def frame_of(spark: SparkSession, batch: int = 0) -> DataFrame:
    return rows(spark, batch, "number", "topic", "reading", "published_at")


def test_rows_come_in_order_as_arrays_with_a_key_each(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    assert make(frame_of(spark), rows_per_request=30).write(frame_of(spark), key(3)) == ROWS

    assert [len(objects) for _, objects in receiver.requests] == [30, 30, 30, 10]
    sent = [row for _, objects in receiver.requests for row in objects]
    assert [row["number"] for row in sent] == list(range(ROWS))
    assert sent[0] == {
        "number": 0, "topic": "sensors/0", "reading": {"t": 0}, "published_at": "2026-01-31T23:59:10.000000Z",
    }  # fmt: skip
    assert len(set(receiver.keys)) == 4
    assert all(name.startswith(f"{key(3).tag}-3-{number}-") for number, name in enumerate(receiver.keys))
    assert receiver.requests[0][0]["content-type"] == "application/json"
    assert receiver.requests[0][0]["user-agent"].startswith("brookmq/")


def test_a_batch_that_comes_again_has_the_same_keys(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    frame = frame_of(spark)
    make(frame, rows_per_request=30).write(frame, key())
    make(frame, rows_per_request=30).write(frame.repartition(3, "number").sortWithinPartitions("number"), key())
    make(frame, rows_per_request=30).write(frame.coalesce(1), key())
    assert receiver.keys[:4] == receiver.keys[8:], "however Spark has cut it"
    assert not set(receiver.keys[:4]) & set(receiver.keys[4:8]), "other rows never have the key of these"


def test_rows_without_an_order_are_sorted_so_that_keys_stay(
    spark: SparkSession, receiver: Receiver, make: Make
) -> None:
    frame = frame_of(spark)
    make(frame, steady=False, rows_per_request=30).write(frame, key())
    make(frame, steady=False, rows_per_request=30).write(frame.repartition(3, "number"), key())
    assert receiver.keys[:4] == receiver.keys[4:]


def test_a_batch_that_was_answered_is_not_sent_again(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    action = make(frame_of(spark))
    assert action.write(frame_of(spark), key(0)) == ROWS
    assert action.write(frame_of(spark), key(0)) == 0
    assert action.write(frame_of(spark, 1), key(1)) == ROWS
    assert len(receiver.requests) == 2


@pytest.mark.parametrize("answer", [(503, {}, b""), (500, {}, b"oops"), (429, {}, b""), (408, {}, b""), None])
def test_what_may_pass_is_tried_again_with_the_same_key(
    spark: SparkSession, receiver: Receiver, make: Make, answer: Answer
) -> None:
    receiver.answers = [answer, answer]
    assert make(frame_of(spark), tries=3).write(frame_of(spark), key()) == ROWS
    assert len(receiver.keys) == 3
    assert len(set(receiver.keys)) == 1
    assert receiver.taken_once() == list(range(ROWS))


def test_after_some_tries_the_batch_fails_and_goes_on_where_it_was(
    spark: SparkSession, receiver: Receiver, make: Make
) -> None:
    receiver.answers = [(200, {}, b""), (503, {}, b"busy\n  now"), (503, {}, b"busy\n  now")]
    action = make(frame_of(spark), rows_per_request=60, tries=2)
    expected = r"webhook http://127\.0\.0\.1:\d+/rows: answered 503 Service Unavailable: busy now, 2 times"
    with pytest.raises(ActionError, match=expected) as raised:
        action.write(frame_of(spark), key())
    assert "secret" not in str(raised.value)
    assert action.write(frame_of(spark), key()) == 40, "the first request was answered"
    assert receiver.taken_once() == list(range(ROWS))


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 422])
def test_a_refusal_is_an_error_at_once(spark: SparkSession, receiver: Receiver, make: Make, status: int) -> None:
    receiver.answers = [(status, {"Location": "/elsewhere"}, b"x" * 1000)]
    with pytest.raises(ActionError, match=f"answered {status}") as raised:
        make(frame_of(spark)).write(frame_of(spark), key())
    assert len(receiver.requests) == 1
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(("asked", "waited_s"), [("1", 1.0), ("date", 0.5)])
def test_the_time_that_the_server_asks_for_is_waited(
    spark: SparkSession, receiver: Receiver, make: Make, asked: str, waited_s: float
) -> None:
    frame = frame_of(spark).localCheckpoint()  # no time goes by for the rows
    when = formatdate(time.time() + 2, usegmt=True) if asked == "date" else asked  # a date has whole seconds
    receiver.answers = [(429, {"Retry-After": when}, b"")]
    make(frame).write(frame, key())
    first, second = receiver.times
    assert second - first >= waited_s


def test_a_server_that_asks_for_too_long_is_an_error(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    receiver.answers = [(503, {"Retry-After": "86400"}, b"")]
    with pytest.raises(ActionError, match="left alone for 86400 s"):
        make(frame_of(spark)).write(frame_of(spark), key())


def test_nonsense_in_retry_after_is_passed_over(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    receiver.answers = [(503, {"Retry-After": "soon"}, b"")]
    assert make(frame_of(spark)).write(frame_of(spark), key()) == ROWS


def test_a_server_that_never_answers_is_an_error(spark: SparkSession) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        frame = frame_of(spark)
        document = parse_action({"type": "webhook", "url": url, "timeout_s": 0.2, "tries": 2})
        action = make_action(document, {}, NODE, frame.schema)
        with pytest.raises(ActionError, match="no answer: timed out, 2 times"):
            action.write(frame, key())
        action.close()


def test_closing_ends_a_pause(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    receiver.answers = [(503, {"Retry-After": "200"}, b"")]
    frame = frame_of(spark).localCheckpoint()
    action = make(frame)
    errors: list[str] = []

    def write() -> None:
        with pytest.raises(ActionError) as raised:
            action.write(frame, key())
        errors.append(str(raised.value))

    thread = threading.Thread(target=write)
    thread.start()
    deadline = time.monotonic() + 60
    while not receiver.requests and time.monotonic() < deadline:
        time.sleep(0.01)
    action.close()
    thread.join(60)
    assert not thread.is_alive()
    assert "the pipeline ends" in errors[0]


def test_long_rows_make_shorter_requests(
    spark: SparkSession, receiver: Receiver, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "REQUEST_BYTES_MAX", 1000)
    frame = rows(spark, 0, "number", text="repeat('x', 400)")
    make(frame).write(frame, key())
    assert [len(objects) for _, objects in receiver.requests] == [2] * (ROWS // 2)


def test_a_row_longer_than_a_request_is_sent_alone(
    spark: SparkSession, receiver: Receiver, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "REQUEST_BYTES_MAX", 10)
    frame = rows(spark, 0, "number", "topic").where("number < 3")
    make(frame).write(frame, key())
    assert [len(objects) for _, objects in receiver.requests] == [1, 1, 1]


def test_a_batch_without_rows_is_no_request(spark: SparkSession, receiver: Receiver, make: Make) -> None:
    assert make(frame_of(spark)).write(frame_of(spark).where("number < 0"), key()) == 0
    assert receiver.requests == []


def test_address_token_and_headers_of_a_resource(spark: SparkSession, receiver: Receiver) -> None:
    settings = {"url": receiver.url, "token": "t0ken", "headers": {"X-Site": "nord", "X-Both": "resource"}}
    resource = parse_resource({"type": "webhook", "name": "hook", "settings": settings})
    document = parse_action({"type": "webhook", "resource": "hook", "headers": {"X-Both": "action"}})
    frame = frame_of(spark)
    action = make_action(document, {"hook": resource}, NODE, frame.schema)
    action.write(frame, key())
    action.close()
    headers, _ = receiver.requests[0]
    assert (headers["authorization"], headers["x-site"], headers["x-both"]) == ("Bearer t0ken", "nord", "action")

"""What Spark asks a node over HTTP: where the journal is, which records to fetch, how far a named reader has come; and
the rows that it hands over to be published.

Nodes are tried in turn. Whatever goes wrong is one sentence that names the option or the address, since it is all that
a user of Spark sees of it. ``ConnectionError`` may pass (nobody answers, the node's store is down), ``ValueError`` and
``PermissionError`` do not.

The standard library's client is enough, and a worker that starts for one task has it loaded at once.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from brookmq.spark.positions import Position

ANSWER_WAIT_S: Final = 20.0
PAUSE_FIRST_S: Final = 0.1
PAUSE_MAX_S: Final = 1.0
PATIENCE_S: Final = 60.0  # longer than the restart of a node takes

ROWS: Final = "application/vnd.brookmq.rows"
BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # that a node takes in one request

_REFUSED_ROW: Final = re.compile(r"says: row (\d+): (.*?)(?: \(MQTT reason 0x(..)\))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of the journal: ``first`` is the oldest offset that is there, ``end`` the one behind the newest."""

    number: int
    stream: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """The way to the store, for a while."""

    servers: tuple[str, ...]
    user: str | None
    password: str | None = field(repr=False)
    expires_at: float  # unix seconds; infinite where an operator's own user is given out
    inbox: str = "_INBOX"  # below which answers of the store have to go
    ca: str | None = None  # certificates (PEM) that those of tls:// servers are checked against; None: the system's

    def lasts(self, seconds: float) -> bool:
        return self.expires_at - time.time() > seconds


@dataclass(frozen=True, slots=True)
class JournalFacts:
    """The journal as a node describes it."""

    journal: str
    node: str
    shards: tuple[Shard, ...]
    store: StoreAccess | None

    @property
    def firsts(self) -> Position:
        return {shard.number: shard.first for shard in self.shards}

    @property
    def ends(self) -> Position:
        return {shard.number: shard.end for shard in self.shards}


@dataclass(frozen=True, slots=True)
class Run:
    """Records in the store, sequences ``first`` to ``last``, for the offsets from ``start`` to before ``end``."""

    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be read of each shard, and how many offsets of the range are gone."""

    runs: dict[int, list[Run]]
    lost: Position


class RowRefusedError(ValueError):
    """A node does not publish this row; and nothing of the request that it was in."""

    def __init__(self, row: int, reason: str, code: int) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason
        self.code = code  # of MQTT


class ConflictError(ValueError):
    """A node does not do it as things are."""


class NodeClient:
    """Speaks to the first of some nodes that answers, and stays with it as long as it does.

    ``known``: the nodes were there before, so that nobody at an address means a restart and not a wrong address.
    """

    def __init__(self, servers: Sequence[str], token: str | None = None, *, known: bool = False) -> None:
        self._servers = tuple(servers)
        self._token = token
        self._current = 0
        self._connection: http.client.HTTPConnection | None = None
        self._answered = known
        self.patience_s = PATIENCE_S

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def journal(self, *, credential: bool = False) -> JournalFacts:
        """Shards and ends; with ``credential`` also how to reach the store."""
        answer = self._ask("GET", "/journal?credential=true" if credential else "/journal")
        try:
            store = answer.get("store")
            return JournalFacts(
                str(answer["journal"]),
                str(answer["node"]),
                tuple(
                    Shard(int(one["shard"]), str(one["stream"]), int(one["first"]), int(one["end"]))
                    for one in answer["shards"]
                ),
                None if store is None else _access(store),
            )
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._not_ours() from None

    def access(self) -> tuple[JournalFacts, StoreAccess]:
        """The journal, and the way to its store."""
        facts = self.journal(credential=True)
        if facts.store is None:
            raise self._not_ours()
        return facts, facts.store

    def plan(
        self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: tuple[float, float] | None = None
    ) -> Plan:
        """The records that may hold something for one of the filters in these ranges of offsets."""
        body = {
            "ranges": {str(shard): list(one) for shard, one in ranges.items()},
            "filters": list(filters),
            "time": None if between is None else list(between),
        }
        answer = self._ask("POST", "/journal/plan", body)
        try:
            lost = {int(shard): int(count) for shard, count in answer.get("lost", {}).items()}
            runs = {shard: [Run(*map(int, run)) for run in answer.get(str(shard), [])] for shard in ranges}
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._not_ours() from None
        return Plan(runs, lost)

    def at_time(self, moment: float) -> Position:
        """For each shard the first offset that was published at this time or later."""
        answer = self._ask("GET", f"/journal/time/{moment!r}")
        return {int(shard): int(offset) for shard, offset in answer.items()}

    def put_reader(self, name: str, position: Mapping[int, int], filters: Sequence[str]) -> int:
        """How far a named reader has come: retention leaves what it has not read. How much it has lost in all its time
        is the answer."""
        offsets = {str(shard): offset for shard, offset in position.items()}
        answer = self._ask("PUT", _reader_path(name), {"position": offsets, "filter": list(filters)})
        try:
            return int(answer["lost"])
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._not_ours() from None

    def lose(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        """Offsets that a named reader has to skip: the node counts each of them once. ``LookupError`` when it does not
        know the reader."""
        told = {str(shard): [list(one) for one in found] for shard, found in ranges.items()}
        self._ask("POST", f"{_reader_path(name)}/lost", {"ranges": told})

    def publish_rows(self, query: str, partition: int, rows: bytes) -> tuple[int, int]:
        """Batch and row up to which all rows of this partition are published then. Sending again does no harm."""
        try:
            answer = self._ask("POST", f"{_query_path(query)}/{partition}", rows)
        except ValueError as error:
            refused = _REFUSED_ROW.search(str(error))
            if refused is None:
                raise
            raise RowRefusedError(int(refused[1]), refused[2], int(refused[3] or "0", 16)) from None
        try:
            return int(answer["batch"]), int(answer["row"])
        except (AttributeError, LookupError, TypeError, ValueError):
            raise self._not_ours() from None

    def forget_query(self, query: str) -> None:
        """The node need not know any more what was published under this name."""
        self._ask("DELETE", _query_path(query))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # One request

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Any other request below ``/api/v1``: its decoded answer."""
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer of the first node that has one. Patient with nodes that are known to be there: what they
        lack comes back, while an address at which nobody is will be a wrong one."""
        began = time.monotonic()
        pause_s = PAUSE_FIRST_S
        while True:
            failures = []
            for _ in self._servers:
                try:
                    answer = self._exchange(method, f"/api/v1{path}", body)
                except (OSError, http.client.HTTPException) as error:
                    if isinstance(error, PermissionError):
                        raise
                    failures.append(f"{self._server} ({_reason(error)})")
                    self._current = (self._current + 1) % len(self._servers)
                else:
                    self._answered = True
                    return answer
            if not self._answered or time.monotonic() + pause_s >= began + self.patience_s:
                raise ConnectionError(f"brookmq: no node answers (option servers): {', '.join(failures)}") from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    @property
    def _server(self) -> str:
        return self._servers[self._current]

    def _exchange(self, method: str, path: str, body: object) -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": ROWS if data is body else "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        kept = self._connection is not None
        try:
            response, content = self._send(method, path, data, headers)
        except (OSError, http.client.HTTPException):
            if not kept:
                raise
            # The node closes what is idle: that says nothing about the node.
            response, content = self._send(method, path, data, headers)
        return self._judged(response.status, content)

    def _send(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        try:
            if self._connection is None:
                self._connection = _connect(self._server)
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def _judged(self, status: int, content: bytes) -> Any:
        try:
            answer = json.loads(content) if content else None
        except ValueError:
            raise self._not_ours() from None
        if status < HTTPStatus.BAD_REQUEST:
            return answer
        if not isinstance(answer, dict) or "message" not in answer:
            raise self._not_ours()
        said = f"{self._server} says: {answer['message']}"
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise PermissionError(f"brookmq: the option token does not open this node: {said}")
        self._answered = True
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise ConnectionError(said)
        if status == HTTPStatus.CONFLICT:
            raise ConflictError(f"brookmq: {said}")
        if status == HTTPStatus.NOT_FOUND:
            raise LookupError(f"brookmq: {said}")
        raise ValueError(f"brookmq: {said}")

    def _not_ours(self) -> ValueError:
        return ValueError(
            f"brookmq: {self._server} answers, but not as BrookMQ's HTTP API does; the option servers takes the "
            "address after `http=` in the node's ready line"
        )


def _connect(server: str) -> http.client.HTTPConnection:
    parts = urlsplit(server)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=ANSWER_WAIT_S)


def _reader_path(name: str) -> str:
    return f"/readers/{quote(name, safe='')}"


def _query_path(query: str) -> str:
    return f"/publish/exactly-once/{quote(query, safe='')}"


def _access(store: Mapping[str, Any]) -> StoreAccess:
    expires_at = store["expires_at"]
    return StoreAccess(
        tuple(map(str, store["servers"])),
        store["user"],
        store["password"],
        math.inf if expires_at is None else float(expires_at),
        str(store["inbox"]),
        store.get("ca"),
    )


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ANSWER_WAIT_S:g} s"
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    return str(error) or type(error).__name__

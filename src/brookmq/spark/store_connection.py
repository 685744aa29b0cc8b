"""A connection to the store for one thing alone: fetching records of a stream by sequence.

The store's protocol is lines and counted bytes, and one request brings many records. An executor reads in one thread,
batch after batch, so this blocks; it takes about a third of the time that the store's asynchronous client takes for the
same records, and needs no event loop in a worker of Spark's.

An answer is read to its end before anybody sees its first record: the store ends connections that don't take what they
asked for, and how long Spark takes for a batch of rows is not ours to say.
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from brookmq import __version__
from brookmq.spark.node_client import StoreAccess

TIME_LIMIT_S: Final = 10.0
BUFFER_BYTES: Final = 128 * 1024
LINE_BYTES_MAX: Final = 64 * 1024
RECORDS_MAX: Final = 512  # in one answer
ANSWER_BYTES: Final = 2 * 1024 * 1024  # about: the memory of a reader; a larger record comes alone
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024

_SEQUENCE: Final = b"\r\nNats-Sequence: "
_END_OF_ANSWER: Final = "204"
_NOTHING_THERE: Final = "404"


class Record(NamedTuple):
    """``message`` has headers of the store in front; the record itself begins at ``start``."""

    sequence: int
    message: bytes
    start: int


class StoreRefusedError(Exception):
    """The store says no: a credential that is not (or no longer) good, most of the time."""


class StoreConnection:
    """Connected from the beginning. ``OSError`` when it is lost: it is of no use any more then."""

    def __init__(self, server: str, store: StoreAccess) -> None:
        self.server = server
        parts = urlsplit(server)
        if parts.hostname is None or parts.port is None:
            raise ValueError(f"brookmq: the node names a store at {server!r}, which is no address")
        self._inbox = f"{store.inbox}.{secrets.token_hex(8)}"
        self._asked = 0
        self._socket = socket.create_connection((parts.hostname, parts.port), TIME_LIMIT_S)
        try:
            self._greet(parts.scheme == "tls", parts.hostname, store)
        except BaseException:
            self._socket.close()
            raise

    def _greet(self, tls: bool, host: str, store: StoreAccess) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = _first_line(self._socket)
        if not greeting.startswith(b"INFO "):
            raise ConnectionError(f"{self.server} is no store: it begins with {greeting[:40]!r}")
        # The password goes to nobody who leaves TLS out: the scheme says it, and not the greeting.
        if tls or json.loads(greeting[5:]).get("tls_required"):
            context = ssl.create_default_context(cadata=store.ca)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._file = self._socket.makefile("rb", BUFFER_BYTES)
        hello: dict[str, object] = {
            "verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1,
            "lang": "python", "version": __version__, "name": "brookmq-spark",
        }  # fmt: skip
        if store.user is not None:
            hello |= {"user": store.user, "pass": store.password or ""}
        subscribe = f"SUB {self._inbox}.* 1"
        self._socket.sendall(f"CONNECT {json.dumps(hello)}\r\n{subscribe}\r\nPING\r\n".encode())
        while self._line() != b"PONG":
            pass

    def fetch(self, stream: str, first: int, count: int) -> list[Record]:
        """Records from sequence ``first`` on, at most ``count``; none when there is none at or behind it."""
        self._asked += 1
        reply = f"{self._inbox}.{self._asked}"
        query = json.dumps({"seq": first, "batch": min(count, RECORDS_MAX), "max_bytes": ANSWER_BYTES})
        self._socket.sendall(f"PUB $JS.API.DIRECT.GET.{stream} {reply} {len(query)}\r\n{query}\r\n".encode())
        wanted = reply.encode()
        records: list[Record] = []
        while True:
            words = self._line().split(b" ")
            if words[0] == b"MSG":
                self._take(words[-1])
                continue
            if words[0] != b"HMSG" or len(words) < 5:
                continue
            message = self._take(words[-1])
            if words[1] != wanted:
                continue  # to an earlier question, whose answer was given up
            headers = message[: int(words[-2])]
            at = headers.find(_SEQUENCE)
            if at >= 0:
                end = headers.index(b"\r", at + len(_SEQUENCE))
                records.append(Record(int(headers[at + len(_SEQUENCE) : end]), message, len(headers)))
                continue
            status, _, reason = headers.partition(b"\r\n")[0].decode(errors="replace")[9:].partition(" ")
            if status in (_END_OF_ANSWER, _NOTHING_THERE):
                return records
            raise ConnectionError(f"{self.server}, {stream}: {reason or 'refused'} ({status})")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _line(self) -> bytes:
        """The next line for us; the store's questions whether somebody is there are answered on the way."""
        while True:
            line = self._file.readline(LINE_BYTES_MAX)
            if not line.endswith(b"\r\n"):
                raise ConnectionError(f"{self.server} has closed the connection")
            line = line[:-2]
            if line.startswith(b"-ERR"):
                raise StoreRefusedError(line[5:].decode(errors="replace").strip("'"))
            if line == b"PING":
                self._socket.sendall(b"PONG\r\n")
                continue
            return line

    def _take(self, size_text: bytes) -> bytes:
        size = int(size_text)
        if size > MESSAGE_BYTES_MAX:
            raise ConnectionError(f"{self.server} sends {size} bytes at once")
        message: bytes = self._file.read(size)
        if len(message) != size or self._file.read(2) != b"\r\n":
            raise ConnectionError(f"{self.server} has closed the connection")
        return message


def _first_line(connection: socket.socket) -> bytes:
    """Byte by byte: what follows may be TLS, and must be left for it."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(line) > LINE_BYTES_MAX:
            raise ConnectionError("it closes the connection at once")
        line += byte
    return bytes(line)

"""A connection to the store, one for each role that a node plays there.

The client library reconnects for ever, quickly, and pings every second: a store that was killed is back within a
second, and its default of two minutes would hide a stopped one. A request here has one of three outcomes: an answer, a
refusal (``errors.error_of_answer``), or ``Ambiguous``. There is no "failed": what was sent may be in the store.

The library gives up for good when the server sends it an error line (such as refused credentials after a change); the
link then makes a new client and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from brookmq.base.ending import end
from brookmq.store.client import StoreClient
from brookmq.store.errors import Ambiguous, RecordTooLarge, error_of_answer

RECONNECT_WAIT_S: Final = 0.05
PING_INTERVAL_S: Final = 1
PINGS_OUTSTANDING_MAX: Final = 2
CONNECT_TIMEOUT_S: Final = 2
REQUEST_TIME_LIMIT_S: Final = 2.0  # shorter than an election, so that a new leader is found soon after it
# The library's own buffer: the largest record twice, so that a full one is written at once and not waited for.
PENDING_BYTES_MAX: Final = 16 * 1024 * 1024
HEADERS_BYTES_MAX: Final = 1024  # room that is kept for ours in a message of the store's maximum size

API: Final = "$JS.API"


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """Where the store is and who we are there."""

    servers: Sequence[str]
    role: str  # shown in the store's own monitoring
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    token: str | None = field(default=None, repr=False)  # instead of user and password


class Link:
    """One connection. ``up`` and ``reason`` say how it is; ``watch`` tells changes."""

    def __init__(self, settings: LinkSettings) -> None:
        self.up = False
        self.reason = "not connected yet"
        self._settings = settings
        self._client: StoreClient | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._watchers: list[Callable[[bool, str], None]] = []
        self._left: list[StoreClient] = []  # of where the store was before, to be closed
        self._ended = False
        self._changed = asyncio.Event()

    def begin(self) -> None:
        """Starts to connect, and goes on trying until ``close``; ``watch`` tells when it is up."""
        self._connect_anew()

    def point_to(self, servers: Sequence[str]) -> None:
        """The store is there from now on: connects anew, unless that is where the link goes already."""
        if list(servers) == list(self._settings.servers) or self._ended:
            return
        self._settings = replace(self._settings, servers=tuple(servers))
        if self._client is not None:
            self._left.append(self._client)
            self._client = None  # its end is no reason to connect any more
        self._connecting = asyncio.create_task(self._move(self._connecting))
        self._turn(False, "the store has moved")

    async def open(self, time_limit_s: float = 5.0) -> None:
        """Connects, or raises ``Ambiguous`` with the reason and goes on trying until ``close``."""
        self.begin()
        try:
            async with asyncio.timeout(time_limit_s):
                while not self.up:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Ambiguous(f"no connection to the store within {time_limit_s:g} s: {self.reason}") from None

    async def close(self) -> None:
        """Ends the connection; what is under way stays without an answer."""
        self._ended = True
        if self._connecting is not None:
            await end([self._connecting])
        await self._close_left()
        if self._client is not None:
            await _end(self._client)
        self._turn(False, "closed")

    def watch(self, watcher: Callable[[bool, str], None]) -> Callable[[], None]:
        """Calls ``watcher(up, reason)`` at each change; returns what ends that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    @property
    def client(self) -> Client:
        """The library's client, for subscriptions."""
        if self._client is None or not self.up:
            raise Ambiguous(f"no connection to the store: {self.reason}")
        return self._client

    @property
    def record_bytes_max(self) -> int:
        """The largest record that the store takes."""
        return self.client.max_payload - HEADERS_BYTES_MAX

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        time_limit_s: float = REQUEST_TIME_LIMIT_S,
    ) -> Msg:
        """Asks and returns the one answer."""
        client = self.client
        try:
            return await client.request(subject, payload, time_limit_s, headers=dict(headers) if headers else None)
        except nats.errors.NoRespondersError:
            raise Ambiguous(f"{subject}: nobody answers there") from None
        except nats.errors.TimeoutError:
            raise Ambiguous(f"{subject}: no answer within {time_limit_s:g} s") from None
        except nats.errors.MaxPayloadError:
            raise RecordTooLarge(f"{subject}: {len(payload)} bytes are more than the store takes") from None
        except (nats.errors.Error, OSError) as error:
            raise Ambiguous(f"{subject}: {describe(error)}") from error

    async def api(
        self, name: str, body: Mapping[str, Any] | None = None, *, time_limit_s: float = REQUEST_TIME_LIMIT_S
    ) -> dict[str, Any]:
        """Asks the store's API, such as ``STREAM.INFO.X``; a refusal is raised."""
        payload = b"" if body is None else json.dumps(body).encode()
        answer = await self.request(f"{API}.{name}", payload, time_limit_s=time_limit_s)
        return checked(answer.data, name)

    # The library's side

    def _connect_anew(self) -> None:
        self._connecting = asyncio.create_task(self._connect(), name=f"store link {self._settings.role}")

    async def _move(self, connecting: asyncio.Task[None] | None) -> None:
        if connecting is not None:
            await end([connecting])
        await self._close_left()
        await self._connect()

    async def _close_left(self) -> None:
        while self._left:
            await _end(self._left[-1])
            self._left.pop()

    async def _connect(self) -> None:
        client = self._client = StoreClient()
        settings = self._settings

        async def disconnected() -> None:
            self._turn(
                False, f"connection lost: {describe(client.last_error)}" if client.last_error else "connection lost"
            )

        async def reconnected() -> None:
            self._turn(True, "connected")

        async def closed() -> None:
            if not self._ended and client is self._client:
                self._turn(False, f"ended by the store: {describe(client.last_error)}")
                await asyncio.sleep(RECONNECT_WAIT_S)
                self._connect_anew()

        async def failed(error: Exception) -> None:
            if not self.up:
                self.reason = describe(error)

        await client.connect(
            list(settings.servers),
            name=settings.role,
            user=settings.user,
            password=settings.password,
            token=settings.token,
            tls=settings.tls,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # seconds; the library sleeps for it
            ping_interval=PING_INTERVAL_S,
            max_outstanding_pings=PINGS_OUTSTANDING_MAX,
            connect_timeout=CONNECT_TIMEOUT_S,
            pending_size=PENDING_BYTES_MAX,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            closed_cb=closed,
            error_cb=failed,
        )
        # The first request makes the subscription for all answers; made here, later requests leave in their order.
        # Whether JetStream answers is not the question; the first real request will tell.
        with contextlib.suppress(nats.errors.Error):
            await client.request(f"{API}.INFO", timeout=CONNECT_TIMEOUT_S)
        if client.is_connected:
            self._turn(True, "connected")

    def _turn(self, up: bool, reason: str) -> None:
        if (up, reason) == (self.up, self.reason):
            return
        changed, self.up, self.reason = up != self.up, up, reason
        self._changed.set()
        if changed:
            for watcher in tuple(self._watchers):
                watcher(up, reason)


async def _end(client: StoreClient) -> None:
    """Closes a client of the library, whatever its connection went through."""
    with contextlib.suppress(
        OSError, RuntimeError
    ):  # what it still had to say finds nobody; a closed transport says so
        await client.finish()


def checked(data: bytes, what: str) -> dict[str, Any]:
    """An answer of the store as a dictionary, unless it is a refusal."""
    try:
        answer = json.loads(data)
    except ValueError:
        raise Ambiguous(f"{what}: the answer is no JSON") from None
    if "error" in answer:
        raise error_of_answer(answer["error"], what)
    return dict(answer)


def describe(error: BaseException | None) -> str:
    """An error for people: the library's have no text of their own in places."""
    return (str(error) or type(error).__name__) if error is not None else "no reason given"

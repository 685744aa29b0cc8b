"""One face for the client libraries, so that each scenario is written once and runs with all of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from tests.interop.broker import Endpoint

DEADLINE_SECONDS = 60.0
INFLIGHT_MAX = 20  # of a library that limits itself: fewer than the messages of a burst


class Received(NamedTuple):
    """A message as the library gave it; ``properties`` by their names in snake case, user properties as pairs."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: dict[str, Any]


class Will(NamedTuple):
    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False


class Client(ABC):
    """A client of one library. ``version`` is 3, 4 or 5."""

    def __init__(
        self,
        endpoint: Endpoint,
        version: int,
        client_id: str,
        *,
        clean: bool = True,
        session_expiry: int = 0,
        will: Will | None = None,
        keep_alive: int = 60,
    ) -> None:
        self.endpoint = endpoint
        self.version = version
        self.client_id = client_id
        self.clean = clean
        self.session_expiry = session_expiry
        self.will = will
        self.keep_alive = keep_alive
        self.session_present: bool | None = None  # None: the library does not tell
        self._messages: asyncio.Queue[Received] = asyncio.Queue()

    @abstractmethod
    async def connect(self) -> None: ...

    @abstractmethod
    async def disconnect(self) -> None:
        """With a DISCONNECT packet."""

    @abstractmethod
    async def drop(self) -> None:
        """Without one, as when the network breaks."""

    @abstractmethod
    async def ended(self) -> int | None:
        """Wait until the broker has ended the connection; the reason code of its DISCONNECT, where there is one."""

    @abstractmethod
    async def subscribe(self, topic_filter: str, qos: int = 0, **options: Any) -> int:
        """The granted QoS or the error. Options of MQTT 5: no_local, retain_as_published, retain_handling."""

    @abstractmethod
    async def unsubscribe(self, topic_filter: str) -> None: ...

    @abstractmethod
    async def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False, **properties: Any) -> None:
        """Returns when the broker has acknowledged it."""

    async def receive(self, seconds: float = DEADLINE_SECONDS) -> Received:
        async with asyncio.timeout(seconds):
            return await self._messages.get()

    async def receive_many(self, count: int) -> list[Received]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return [await self._messages.get() for _ in range(count)]

    def nothing_more(self) -> bool:
        return self._messages.empty()

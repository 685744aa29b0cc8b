"""A node of a few dicts behind :class:`brookmq.ops.view.NodeView`, so that operations are tested without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from brookmq.base.errors import OperationError, PeerError
from brookmq.ops.paging import Listing
from brookmq.ops.view import (
    AlarmInfo,
    ClientDetail,
    ClientInfo,
    ImportResult,
    ListenerInfo,
    LogLevel,
    NodeInfo,
    Page,
    PublishRequest,
    PublishResult,
    RetainedInfo,
    RetainedMessage,
    StoreInfo,
    SubscriptionInfo,
    TopicInfo,
)
from tests.node.rules_world import Rules
from tests.ops.memory_pipeline import MemoryPipeline

STARTED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOPIC_NAME_INVALID = 0x90


def client(client_id: str, *, connected: bool = True, username: str | None = None) -> ClientDetail:
    """A client with plausible figures."""
    return ClientDetail(
        client_id=client_id,
        connected=connected,
        address="127.0.0.1:50123" if connected else None,
        listener="default" if connected else None,
        protocol_version=5,
        username=username,
        keep_alive_s=60,
        clean_start=True,
        session_expiry_s=0 if connected else 3600,
        connected_at=STARTED_AT + timedelta(minutes=1),
        disconnected_at=None if connected else STARTED_AT + timedelta(minutes=2),
        subscriptions=1,
        queued=0,
        behind=0,
        in_flight=2,
        queued_bytes=0,
        messages_received=10,
        messages_sent=20,
        messages_dropped=0,
        bytes_received=1000,
        bytes_sent=2000,
    )


class MemoryNode:
    """Implements ``NodeView``. Tests fill its dicts."""

    def __init__(self) -> None:
        self.table: dict[str, ClientDetail] = {}
        self.subscribed: dict[str, SubscriptionInfo] = {}
        self.retained_table: dict[str, RetainedMessage] = {}
        self.counted: dict[str, int] = {"publishes_received": 0, "messages_sent": 0, "dropped_expired": 0}
        self.measured: dict[str, float] = {"connections": 0, "loop_lag_s": 0.001}
        self.raised: list[AlarmInfo] = []
        self.not_ready = ""
        self.stored: StoreInfo | None = None
        self.level: LogLevel = "info"
        self.published: list[PublishRequest] = []
        self.waiting = False
        self.journal = MemoryPipeline()
        self.kept_rules = Rules()
        self.data: list[bytes] = []  # what an export gives, piece by piece
        self.no_data = ""  # why there is none
        self.imported = b""
        self.asked: dict[str, bool] = {}  # how the last export or import was asked for
        self._clients: Listing[ClientInfo] = Listing(lambda: (self.table,), self.table.get)
        self._subscriptions: Listing[SubscriptionInfo] = Listing(lambda: (self.subscribed,), self.subscribed.get)
        self._topics: Listing[TopicInfo] = Listing(lambda: (set(self._filters()),), self._topic)
        self._retained: Listing[RetainedInfo] = Listing(lambda: (self.retained_table,), self._retained_info)

    def add_client(self, client_id: str, *, connected: bool = True, username: str | None = None) -> None:
        self.table[client_id] = client(client_id, connected=connected, username=username)

    def add_subscription(self, client_id: str, topic_filter: str, qos: int = 0) -> None:
        self.subscribed[f"{client_id}\0{topic_filter}"] = SubscriptionInfo(client_id, topic_filter, qos)

    def add_retained(self, topic: str, payload: bytes) -> None:
        self.retained_table[topic] = RetainedMessage(topic, 1, len(payload), STARTED_AT, None, payload)

    def info(self) -> NodeInfo:
        listeners = (
            ListenerInfo("default", "tcp", "127.0.0.1:1883", 3, 1000),
            ListenerInfo("web", "ws", "127.0.0.1:8083", 0),
        )
        return NodeInfo(
            "brookmq@127.0.0.1", "core", "0.1.0", True, STARTED_AT, 90.5, 65536, 65000, listeners, self.stored
        )

    def ready(self) -> tuple[bool, str]:
        return not self.not_ready, self.not_ready

    def counters(self) -> Mapping[str, int]:
        return self.counted

    def gauges(self) -> Mapping[str, float]:
        return self.measured

    def alarms(self) -> Sequence[AlarmInfo]:
        return self.raised

    def log_level(self) -> LogLevel:
        return self.level

    def set_log_level(self, level: LogLevel) -> None:
        self.level = level

    def recent_clients(self, limit: int) -> Sequence[ClientInfo]:
        return list(reversed(self.table.values()))[:limit]

    async def clients(
        self, after: str, limit: int, *, search: str = "", connected: bool | None = None
    ) -> Page[ClientInfo]:
        def matches(row: ClientInfo) -> bool:
            return search.lower() in f"{row.client_id}\0{row.username}".lower() and connected in (None, row.connected)

        return await self._clients.page(after, limit, matches)

    async def client(self, client_id: str) -> ClientDetail | None:
        if client_id == "bug":
            raise ZeroDivisionError("a secret of the node")
        return self.table.get(client_id)

    async def kick(self, client_id: str) -> bool:
        return self.table.pop(client_id, None) is not None

    async def forget(self, client_id: str) -> bool:
        return await self.kick(client_id)

    async def export_data(self, *, journal: bool) -> AsyncIterator[bytes]:
        self.asked = {"journal": journal}
        if self.no_data:
            raise OperationError(self.no_data)
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in self.data:
            yield piece

    async def import_data(self, pieces: AsyncIterator[bytes], *, replace: bool) -> ImportResult:
        self.asked = {"replace": replace}
        self.imported = b""
        if self.no_data:
            raise OperationError(self.no_data)
        async for piece in pieces:
            self.imported += piece
        return ImportResult(1, 2, 3, 4, same_configuration=not replace)

    async def subscriptions(
        self, after: str, limit: int, *, client_id: str | None = None, topic_filter: str | None = None
    ) -> Page[SubscriptionInfo]:
        def matches(row: SubscriptionInfo) -> bool:
            return client_id in (None, row.client_id) and topic_filter in (None, row.filter)

        return await self._subscriptions.page(after, limit, matches)

    async def topics(self, after: str, limit: int, *, match: str | None = None) -> Page[TopicInfo]:
        return await self._topics.page(after, limit, lambda row: match in (None, row.filter))

    async def retained(self, after: str, limit: int, *, match: str | None = None) -> Page[RetainedInfo]:
        return await self._retained.page(after, limit, lambda row: match in (None, row.topic))

    async def retained_message(self, topic: str) -> RetainedMessage | None:
        return self.retained_table.get(topic)

    async def delete_retained(self, topic: str) -> bool:
        return self.retained_table.pop(topic, None) is not None

    async def publish(self, request: PublishRequest) -> PublishResult:
        if "#" in request.topic:
            raise PeerError(TOPIC_NAME_INVALID, "a topic name has no wildcards")
        if request.topic == "stuck":
            self.waiting = True
            await asyncio.Event().wait()
        self.published.append(request)
        return PublishResult(receivers=sum(row.filter == request.topic for row in self.subscribed.values()))

    def pipeline(self) -> MemoryPipeline:
        return self.journal

    def rules(self) -> Rules:
        return self.kept_rules

    def _filters(self) -> Iterator[str]:
        return (row.filter for row in self.subscribed.values())

    def _topic(self, topic_filter: str) -> TopicInfo:
        return TopicInfo(topic_filter, sum(row.filter == topic_filter for row in self.subscribed.values()))

    def _retained_info(self, topic: str) -> RetainedInfo | None:
        message = self.retained_table.get(topic)
        if message is None:
            return None
        return RetainedInfo(message.topic, message.qos, message.payload_bytes, message.stored_at, message.expires_at)

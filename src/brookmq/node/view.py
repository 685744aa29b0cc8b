"""What operations see of this node: the interface of ``ops.view`` answered from the broker's tables."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from brookmq import __version__, _pure
from brookmq.base import logs
from brookmq.base.errors import OperationError, PeerError
from brookmq.base.events import PREFIX_BYTES as EVENTS_PREFIX
from brookmq.base.message import Message
from brookmq.broker.acknowledging import Settlement
from brookmq.broker.channel import Channel
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.session import Session
from brookmq.broker.topics import Entry, Node
from brookmq.mqtt import reasons
from brookmq.mqtt.properties import Properties
from brookmq.node.pipeline_view import PipelineFacts
from brookmq.node.rule_view import RuleFacts
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
    SubscriptionInfo,
    TopicInfo,
)

if TYPE_CHECKING:
    from brookmq.node.backup import Backup
    from brookmq.node.node import Node as RunningNode
    from brookmq.ops.pipeline_view import PipelineView
    from brookmq.ops.rule_view import RuleView

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SEPARATOR = "\x00"  # stands in no client id and no filter [MQTT-1.5.4-2]


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class View:
    def __init__(self, node: RunningNode) -> None:
        self._node = node
        self._broker = node.broker
        self.backup: Backup | None = None  # once what the node keeps is open
        self.pipeline_facts = PipelineFacts(node.config, node.storage, node.sink)
        self.rule_facts = RuleFacts(node.storage, float(node.config.store.wait), node.checker, node.pipeline_health)
        self._most = 0
        self._compiled = "plain" not in _pure.form()
        sessions = self._broker.sessions.by_client_id
        self._clients = Listing(lambda: sessions.parts, self._client_info)
        self._subscriptions = Listing(self._subscription_keys, self._subscription_info)
        self._topics = Listing(lambda: [self._filters()], self._topic_info)

    # -- the node

    def info(self) -> NodeInfo:
        node = self._node
        listeners = tuple(
            ListenerInfo(
                listener.context.name,
                listener.context.kind,
                ",".join(listener.addresses),
                listener.context.connections,
                node.config.listeners[listener.context.name].connections_max,
            )
            for listener in node.listeners
        )
        return NodeInfo(
            node.config.node.name,
            node.config.node.role,
            __version__,
            self._compiled,
            _moment(node.started_at),
            time.time() - node.started_at,
            node.open_files.limit,
            node.open_files.connections,
            listeners,
            node.storage.info(),
        )

    def ready(self) -> tuple[bool, str]:
        return self._node.readiness()

    def counters(self) -> Mapping[str, int]:
        counters = self._broker.counters
        counters.hook_errors = self._broker.hooks.failures()  # each hook counts its own
        return {**counters.as_dict(), **self._node.storage.counters()}

    def gauges(self) -> Mapping[str, float]:
        broker = self._broker
        connected = broker.sessions.connected_count
        self._most = max(self._most, connected)
        return {
            "connections": float(connected),
            "connections_most": float(self._most),
            "transports": float(len(self._node.hub.connections)),
            "sessions": float(len(broker.sessions.by_client_id)),
            "subscriptions": float(broker.subscriptions.count),
            "shared_subscriptions": float(broker.subscriptions.shared_count),
            "filters": float(broker.index.entry_count),
            "topics_cached": float(len(broker.index.audiences)),
            "retained": float(broker.retained.count),
            "retained_bytes": float(broker.retained.bytes),
            "delayed": float(broker.delayed.count),
            "publishers_waiting_for": float(len(broker.turn.pressed)),
            "loop_lag_s": self._node.loop_lag,
            "resident_memory_bytes": float(_resident_bytes()),
            **self._node.storage.gauges(),
        }

    def alarms(self) -> Sequence[AlarmInfo]:
        active = self._node.alarms.active()
        return [AlarmInfo(alarm.name, alarm.message, _moment(alarm.activated_at)) for alarm in active]

    def log_level(self) -> LogLevel:
        return logs.level()

    def set_log_level(self, level: LogLevel) -> None:
        logs.set_level(level)

    # -- clients

    def _client_info(self, client_id: str) -> ClientInfo | None:
        session = self._broker.sessions.by_client_id.get(client_id)
        return None if session is None else self._info_of(session)

    def _info_of(self, session: Session) -> ClientInfo:
        behind = 0
        if session.cursors is not None:
            ends = self._broker.journaling.heads()
            behind = sum(max(0, end - cursor) for end, cursor in zip(ends, session.cursors, strict=False))
        return _client_info(session, behind)

    def recent_clients(self, limit: int) -> Sequence[ClientInfo]:
        found: list[ClientInfo] = []
        for connection in islice(reversed(self._node.hub.connections), 10 * limit):
            channel = connection.channel
            if channel is not None and channel.session is not None and len(found) < limit:
                found.append(self._info_of(channel.session))
        return found

    async def clients(
        self, after: str, limit: int, *, search: str = "", connected: bool | None = None
    ) -> Page[ClientInfo]:
        wanted = search.casefold()

        def matches(row: ClientInfo) -> bool:
            if connected is not None and row.connected != connected:
                return False
            return wanted in row.client_id.casefold() or wanted in (row.username or "").casefold()

        return await self._clients.page(after, limit, matches)

    async def client(self, client_id: str) -> ClientDetail | None:
        session = await self._session(client_id)
        if session is None:
            return None
        channel = session.channel
        return ClientDetail(
            **asdict(self._info_of(session)),
            queued_bytes=session.queue_bytes,
            messages_received=session.received_count,
            messages_sent=session.sent_count,
            messages_dropped=session.dropped_count,
            bytes_received=channel.bytes_received if isinstance(channel, Channel) else 0,
            bytes_sent=channel.outlet.bytes_sent if isinstance(channel, Channel) else 0,
        )

    async def _session(self, client_id: str) -> Session | None:
        """A session, also one that is not loaded yet after a start."""
        if not self._broker.knows(client_id, clean=False):
            found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._broker.find_session(client_id, lambda: _settle(found))
            try:
                async with asyncio.timeout(float(self._node.config.store.wait)):
                    await found
            except TimeoutError:
                raise OperationError("the store does not answer") from None
        return self._broker.sessions.by_client_id.get(client_id)

    async def kick(self, client_id: str) -> bool:
        sessions = self._broker.sessions
        session = await self._session(client_id)
        if session is None:
            return False
        channel = session.channel
        if isinstance(channel, Channel):
            channel.end(reasons.ADMINISTRATIVE_ACTION)
        if sessions.by_client_id.get(client_id) is session:
            sessions.end(session, reasons.ADMINISTRATIVE_ACTION, time.time())
        return True

    async def forget(self, client_id: str) -> bool:
        session = await self._session(client_id)
        if session is not None:
            session.will = None  # kicking would publish it
        removed = await self.backup.forget(client_id) if self.backup is not None else False
        return await self.kick(client_id) or removed

    # -- data

    def _backup(self) -> Backup:
        if self.backup is None:
            raise OperationError("what this node keeps can't be had now: its store is not in use")
        return self.backup

    async def export_data(self, *, journal: bool) -> AsyncIterator[bytes]:
        return await self._backup().export(journal=journal)

    async def import_data(self, pieces: AsyncIterator[bytes], *, replace: bool) -> ImportResult:
        return await self._backup().restore(pieces, replace=replace)

    def pipeline(self) -> PipelineView:
        return self.pipeline_facts

    def rules(self) -> RuleView:
        return self.rule_facts

    # -- subscriptions and topics

    def _subscription_keys(self) -> Iterable[Iterable[str]]:
        for session in [*self._broker.sessions.by_client_id.values()]:
            if session.subscriptions:
                yield [session.client_id + SEPARATOR + filter for filter in session.subscriptions]

    def _subscription_info(self, key: str) -> SubscriptionInfo | None:
        client_id, _, filter = key.partition(SEPARATOR)
        session = self._broker.sessions.by_client_id.get(client_id)
        subscription = None if session is None else session.subscriptions.get(filter)
        if subscription is None:
            return None
        return SubscriptionInfo(
            client_id,
            filter,
            subscription.qos,
            subscription.no_local,
            subscription.retain_as_published,
            subscription.retain_handling,
            subscription.identifiers[0] if subscription.identifiers else None,
        )

    async def subscriptions(
        self, after: str, limit: int, *, client_id: str | None = None, topic_filter: str | None = None
    ) -> Page[SubscriptionInfo]:
        if client_id is not None:
            session = await self._session(client_id)
            filters = sorted(() if session is None else session.subscriptions)
            keys = [client_id + SEPARATOR + filter for filter in filters if topic_filter in (None, filter)]
            keys = [key for key in keys if key > after]
            rows = [row for key in keys[:limit] if (row := self._subscription_info(key)) is not None]
            return Page(rows, keys[limit - 1] if len(keys) > limit else None)
        return await self._subscriptions.page(
            after, limit, None if topic_filter is None else lambda row: row.filter == topic_filter
        )

    def _filters(self) -> Iterable[str]:
        index = self._broker.index
        for filter in [*index.exact]:
            yield filter.decode()
        stack: list[Node] = [index.root]
        while stack:
            node = stack.pop()
            for entry in (node.here, node.below):
                if entry is not None:
                    yield entry.filter.decode()
            stack.extend(node.children.values())
            if node.plus is not None:
                stack.append(node.plus)

    def _topic_info(self, filter: str) -> TopicInfo | None:
        entry = self._broker.index.find(filter.encode())
        return None if entry is None else TopicInfo(filter, _subscribers(entry))

    async def topics(self, after: str, limit: int, *, match: str | None = None) -> Page[TopicInfo]:
        if match is None:
            return await self._topics.page(after, limit)
        entries = sorted(self._broker.index.match(match.encode()), key=lambda entry: entry.filter)
        rows = [TopicInfo(entry.filter.decode(), _subscribers(entry)) for entry in entries]
        rows = [row for row in rows if row.filter > after]
        return Page(rows[:limit], rows[limit - 1].filter if len(rows) > limit else None)

    # -- messages

    async def retained(self, after: str, limit: int, *, match: str | None = None) -> Page[RetainedInfo]:
        wanted = None if match is None else match.encode()
        messages, following = self._broker.retained.page(after.encode(), limit, wanted, time.time())
        rows = [_retained_info(message) for message in messages]
        return Page(rows, None if following is None else following.decode())

    async def retained_message(self, topic: str) -> RetainedMessage | None:
        message = self._broker.retained.get(topic.encode(), time.time())
        if message is None:
            return None
        info = _retained_info(message)
        return RetainedMessage(
            info.topic, info.qos, info.payload_bytes, info.stored_at, info.expires_at, message.payload
        )

    async def delete_retained(self, topic: str) -> bool:
        return self._broker.retained.delete(topic.encode())

    async def publish(self, request: PublishRequest) -> PublishResult:
        now = time.time()
        given = request.properties
        properties = Properties()
        properties.payload_format_indicator = given.payload_format
        properties.content_type = given.content_type
        properties.response_topic = given.response_topic
        properties.correlation_data = given.correlation_data
        properties.user_properties = given.user
        expires_at = 0.0 if given.message_expiry_s is None else now + given.message_expiry_s
        topic = request.topic.encode()
        if topic.startswith((SYS_PREFIX, EVENTS_PREFIX)):
            raise PeerError(reasons.NOT_AUTHORIZED, "$SYS and $events topics are the node's own")
        message = Message(
            topic, request.payload, request.qos, request.retain, properties.forwardable(), expires_at, now
        )
        return PublishResult(await self._publish(message, now))

    async def _publish(self, message: Message, now: float) -> int:
        """The number of receivers, once the message is where it has to be."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = Settlement(lambda: _settle(stored))
        count = self._broker.publish(message, None, now, ticket)
        ticket.settle(reasons.SUCCESS)
        await stored
        if ticket.reason >= reasons.UNSPECIFIED_ERROR:
            raise OperationError("the message could not be stored: the store does not answer")
        return count


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _client_info(session: Session, behind: int) -> ClientInfo:
    connected = session.channel is not None
    last = session.last_client
    return ClientInfo(
        client_id=session.client_id,
        connected=connected,
        address=None if last is None else last.address,
        listener=None if last is None else last.listener,
        protocol_version=session.version,
        username=session.username,
        keep_alive_s=session.keep_alive,
        clean_start=session.clean_start,
        session_expiry_s=int(session.expiry),
        connected_at=_moment(session.connected_at) if session.connected_at else None,
        disconnected_at=None if connected or not session.disconnected_at else _moment(session.disconnected_at),
        subscriptions=len(session.subscriptions),
        queued=len(session.queue or ()),
        behind=behind,
        in_flight=0 if session.window is None else session.window.count,
    )


def _subscribers(entry: Entry) -> int:
    return len(entry.subscriptions) + sum(len(group.members) for group in entry.groups.values())


def _retained_info(message: Message) -> RetainedInfo:
    expires = _moment(message.expires_at) if message.expires_at else None
    stored = _moment(message.published_at)
    return RetainedInfo(message.topic.decode(), message.qos, len(message.payload), stored, expires)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * PAGE_BYTES

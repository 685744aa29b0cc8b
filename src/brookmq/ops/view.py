"""What operations may see of a node, and the few things they may do to it.

The HTTP API, the metrics and the overview page know a node only through :class:`NodeView`; ``node.py`` implements it.
So a resource can be tested over a handful of rows, and later a node of several processes answers the same questions.

Rules for an implementation:

- Everything runs on the node's event loop, beside MQTT. A plain method answers from what is at hand in well under a
  millisecond. An ``async`` method may have much to look at: it works in slices and gives the loop back in between
  (:class:`brookmq.ops.paging.Listing` does this for anything that has keys).
- A listing is read by cursor: ``after`` is ``""`` for the first page and then the ``next`` of the page before. A page
  can be shorter than ``limit``, even empty, and still have a ``next``: a search that finds little stops after a bounded
  number of rows. Rows that come or go meanwhile may or may not be seen; all others are seen once.
- Names, topics and filters are ``str`` here; payloads are ``bytes``.
- Units stand last in names: ``_s`` seconds, ``_bytes`` bytes. Points in time are aware ``datetime`` values in UTC.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

from brookmq.ops.pipeline_view import PipelineView
from brookmq.ops.rule_view import RuleView

Row = TypeVar("Row")
LogLevel = Literal["debug", "info", "warning", "error", "critical"]


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """One part of a listing. ``next`` is where the following part begins; ``None`` after the last one."""

    items: Sequence[Row]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class ListenerInfo:
    """A socket that the node listens on. ``connections_max`` is ``None`` where nothing but the node's limit holds."""

    name: str
    kind: str
    address: str
    connections: int = 0
    connections_max: int | None = None


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What keeps a node's sessions and messages. ``reason`` is why it cannot be used; empty while it can."""

    addresses: tuple[str, ...]
    own: bool  # started by the node itself
    reason: str
    restarts: int


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a node is. ``connections_fit`` is how many connections its limit of open files leaves room for."""

    name: str
    role: str
    version: str
    compiled: bool
    started_at: datetime
    uptime_s: float
    open_files_max: int
    connections_fit: int
    listeners: tuple[ListenerInfo, ...] = ()
    store: StoreInfo | None = None


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """A session and, while ``connected``, its channel. The fields of the channel keep their last value afterwards."""

    client_id: str
    connected: bool
    address: str | None
    listener: str | None
    protocol_version: int
    username: str | None
    keep_alive_s: int
    clean_start: bool
    session_expiry_s: int
    connected_at: datetime | None
    disconnected_at: datetime | None
    subscriptions: int
    queued: int  # in memory, of a client whose session ends with its connection
    behind: int  # messages in the journal that a kept session has not looked at yet; not all of them are for it
    in_flight: int


@dataclass(frozen=True, slots=True)
class ClientDetail(ClientInfo):
    """One client with what is too costly, or too much, for a row of a listing."""

    queued_bytes: int
    messages_received: int
    messages_sent: int
    messages_dropped: int
    bytes_received: int
    bytes_sent: int


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """One subscription of one client; ``filter`` as the client gave it, ``$share/group/`` included."""

    client_id: str
    filter: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifier: int | None = None


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic filter in use, with the number of its subscribers on this node."""

    filter: str
    subscribers: int


@dataclass(frozen=True, slots=True)
class RetainedInfo:
    """A retained message without its payload."""

    topic: str
    qos: int
    payload_bytes: int
    stored_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RetainedMessage(RetainedInfo):
    """A retained message with its payload."""

    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class PublishProperties:
    """The MQTT 5 properties that a publisher may set. User properties keep their order and their repeated names."""

    payload_format: int | None = None
    message_expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation_data: bytes | None = None
    user: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A message to be published in the name of an operator."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: PublishProperties = field(default_factory=PublishProperties)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """What became of it: ``receivers`` is the number of subscriptions of this node that it was handed to."""

    receivers: int


@dataclass(frozen=True, slots=True)
class AlarmInfo:
    """A state that needs somebody's attention, from ``raised_at`` on."""

    name: str
    message: str
    raised_at: datetime


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What came of a backup: ``values`` are retained and delayed messages, ``messages`` those of the journal,
    ``pipeline`` positions of queries, rules and what belongs to them.
    ``messages_left`` had been sent to their clients and not acknowledged, and are not in the backup's journal."""

    values: int
    sessions: int
    messages: int
    messages_left: int
    same_configuration: bool
    pipeline: int = 0


class NodeView(Protocol):
    """One node, as operations see it. ``node.py`` implements it; see the rules at the top of the module."""

    def info(self) -> NodeInfo: ...

    def ready(self) -> tuple[bool, str]:
        """Whether clients can be served now, and if not, what is missing (one sentence for a person)."""

    def counters(self) -> Mapping[str, int]:
        """Every counter by name: it begins at 0 with the node and never falls."""

    def gauges(self) -> Mapping[str, float]:
        """Every present value by name: connections, sessions, ``loop_lag_s``, ``resident_memory_bytes`` and so on."""

    def alarms(self) -> Sequence[AlarmInfo]:
        """What is wrong at the moment, the oldest first."""

    def log_level(self) -> LogLevel: ...

    def set_log_level(self, level: LogLevel) -> None: ...

    def recent_clients(self, limit: int) -> Sequence[ClientInfo]:
        """The clients that connected last, the newest first."""

    async def clients(
        self, after: str, limit: int, *, search: str = "", connected: bool | None = None
    ) -> Page[ClientInfo]:
        """Clients by id; ``search`` is a part of the client id or user name, whatever the case of its letters."""

    async def client(self, client_id: str) -> ClientDetail | None: ...

    async def kick(self, client_id: str) -> bool:
        """End the client's connection (reason 0x98, administrative action) and its session; false if it has none."""

    async def forget(self, client_id: str) -> bool:
        """Kick the client and forget all that was kept for it, its will unpublished; false if there was nothing.
        Retained messages are their topics' values, and what is in the journal stays there until retention."""

    async def subscriptions(
        self, after: str, limit: int, *, client_id: str | None = None, topic_filter: str | None = None
    ) -> Page[SubscriptionInfo]:
        """Subscriptions by client id and filter; of one client, or of exactly one filter, where given."""

    async def topics(self, after: str, limit: int, *, match: str | None = None) -> Page[TopicInfo]:
        """Filters in use, by name; with ``match``, those that get a message published to that topic."""

    async def retained(self, after: str, limit: int, *, match: str | None = None) -> Page[RetainedInfo]:
        """Retained messages in any steady order; with ``match``, those that a subscription to it would get."""

    async def retained_message(self, topic: str) -> RetainedMessage | None: ...

    async def delete_retained(self, topic: str) -> bool:
        """Forget the retained message of a topic; false if it has none."""

    async def publish(self, request: PublishRequest) -> PublishResult:
        """Publish as a client would; ``PeerError`` with its reason for a message that a client could not send."""

    async def export_data(self, *, journal: bool) -> AsyncIterator[bytes]:
        """All that the node keeps, as the bytes of a backup; ``OperationError`` when it can't be had now."""

    async def import_data(self, pieces: AsyncIterator[bytes], *, replace: bool) -> ImportResult:
        """Take in a backup. Clients are refused meanwhile. ``OperationError`` when the node has sessions and may not
        ``replace`` them, or when the backup can't be read."""

    def pipeline(self) -> PipelineView:
        """What programs that process the journal may see."""

    def rules(self) -> RuleView:
        """Rules and what belongs to them."""

"""What the store keeps of a session, of a shared group and of the node's own epochs: plain data, no bytes in it.

A kept session has no queue. It has a cursor for each shard of the journal (the first offset that was not handed to it),
a window (what was handed out and is not finished) and, by value, the few messages that are in no journal.

*Live*: everything below each shard's end has been handed to the session, so that its cursors need not be written all
the time. ``live`` is the number of the epoch in which that holds; after a crash its cursors are its own or the last
watermark of that epoch, whichever is further on.

*Open ids*: inbound QoS 2 packet ids between PUBLISH and PUBREL. Those of journaled messages are not written one by one:
after a crash the batches from ``seen`` on are looked through, and what is not in ``released`` is open.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from brookmq.base.message import Message

SESSION_KEY: Final = b"c"  # + client id: a kept session; what is found with it has a byte 0xFF behind that
GROUP_KEY: Final = b"g"  # + group name, a zero byte, filter: a shared group with kept members
META_KEY: Final = b""

OFFSET_BITS: Final = 48
NOT_JOURNALED: Final = -1  # the position of what is in no journal
EPOCHS_MAX: Final = 4096  # epochs that are remembered; a session that was live in an older one reads from its cursors


def position_of(shard: int, offset: int) -> int:
    """Shard and offset as one number."""
    return shard << OFFSET_BITS | offset


def session_key(client_id: str) -> bytes:
    """The key of a kept session."""
    return SESSION_KEY + client_id.encode()


def will_key(client_id: str, connect_number: int) -> bytes:
    """The key under which the will of one connection stands alone, in the part of its client's session."""
    return session_key(client_id) + b"\xff" + connect_number.to_bytes(8, "big")


def is_will_key(key: bytes) -> bool:
    """Whether it is one of these."""
    return key[:1] == SESSION_KEY and b"\xff" in key


def group_key(name: str, topic_filter: bytes) -> bytes:
    """The key of a shared group. No name or filter has a zero byte. [MQTT-1.5.4-2]"""
    return GROUP_KEY + name.encode() + b"\0" + topic_filter


class WillRecord(NamedTuple):
    """A will: what is published, how long after the connection's end, and how long it lives from then."""

    message: Message
    delay: int  # seconds
    expiry: int | None  # seconds, None = for ever


class SubscriptionRecord(NamedTuple):
    """One subscription. ``since`` are the offsets, one for each shard, before which nothing is for it; None = from the
    beginning of the session."""

    filter: str  # as the client gave it
    indexed: bytes  # as the topic index has it: rewritten, mounted, without $share/GROUP/
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0
    identifiers: tuple[int, ...] = ()
    since: tuple[int, ...] | None = None
    replaying: bool = False  # its retained messages are not all sent yet


class WindowEntry(NamedTuple):
    """A message that was handed out and is not finished. ``state`` as in the broker's window: 1 PUBACK due, 2 PUBREC
    due, 3 PUBCOMP due."""

    packet_id: int
    state: int
    position: int = NOT_JOURNALED
    dup: bool = False
    group: bytes = b""  # the key of the shared group that it came through


class InlineDelivery(NamedTuple):
    """A message of the window that no journal has, with what differs per receiver."""

    message: Message
    qos: int
    retain: bool
    identifiers: bytes  # subscription identifiers as they stand in a packet


class SessionState:
    """A kept session, or (expiry 0, under another key) the will of a transient one."""

    __slots__ = (
        "client_id",
        "connect_number",
        "connected",
        "created_at",
        "cursors",
        "disconnected_at",
        "expiry",
        "inline",
        "live",
        "mount",
        "open_ids",
        "released",
        "seen",
        "subscriptions",
        "username",
        "version",
        "will",
        "will_due",
        "will_taken",
        "window",
    )

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.username: str | None = None
        self.version = 4
        self.expiry = 0.0  # seconds that it outlives its connection, inf = for ever
        self.created_at = 0.0
        self.connected = 0  # the epoch in which its client is connected, 0 = away
        self.connect_number = 0  # any number that is new for each connect: it names the will of this connection
        self.disconnected_at = 0.0
        self.mount = b""
        self.will: WillRecord | None = None
        self.will_due = 0.0  # unix seconds at which the will is due, 0.0 = its connection is still there
        self.will_taken = False  # about to be published: it is in the journal, or it has to be published
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.live = 0  # epoch, 0 = its cursors alone say how far it is
        self.cursors: list[int] = []  # the first offset not handed out, one for each shard
        self.window: dict[int, WindowEntry] = {}  # by packet id, in the order of sending
        self.inline: dict[int, InlineDelivery] = {}  # by packet id: of the window, what is not in the journal
        self.open_ids: dict[int, int] = {}  # inbound packet id → position of its message
        self.seen: tuple[int, ...] = ()  # offsets, one for each shard: open_ids is complete up to there
        self.released: set[int] = set()  # positions at or above ``seen`` whose packet ids are free again

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SessionState):
            return NotImplemented
        same = all(_plain(getattr(self, name)) == _plain(getattr(other, name)) for name in self.__slots__)
        return same and [*self.window] == [*other.window]  # its order is the order of sending

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SessionState({self.client_id!r}, {len(self.subscriptions)} subscriptions, cursors={self.cursors})"


def _plain(value: object) -> object:
    """The same with messages as tuples: a Message is compared by identity, and nobody else needs it otherwise."""
    if isinstance(value, Message):
        return (
            value.topic,
            value.payload,
            value.qos,
            value.retain,
            value.properties,
            value.expires_at,
            value.published_at,
            value.client_id,
            value.username,
        )
    if isinstance(value, (WillRecord, InlineDelivery)):
        return tuple(_plain(field) for field in value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


class GroupState(NamedTuple):
    """A shared group with kept members: a reader of the journal of its own, so that it queues while all are away."""

    live: int = 0  # epoch, as in SessionState
    cursors: tuple[int, ...] = ()
    returned: tuple[int, ...] = ()  # positions that a member left unfinished: they go to another one first
    taken: tuple[int, ...] = ()  # beyond the cursors: members that are no more have got them, and nobody else does


class Epoch(NamedTuple):
    """One start of the node, and how far it came."""

    started_at: float
    seen_at: float  # time of its last watermark: who was connected then and is not now left at that time
    watermark: tuple[int, ...]  # ends of the shards up to which every live session has been given everything


class MetaState(NamedTuple):
    """The epochs by number. Immutable: changes make a new one."""

    epochs: dict[int, Epoch]

    def current(self) -> int:
        """The number of the newest epoch, 0 when there was none yet."""
        return max(self.epochs, default=0)

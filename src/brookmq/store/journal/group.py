"""A group: messages of one publisher to one topic that came in together and are kept as the bytes that they came in.

A run of up to 500 plain packets is one group and costs what one message costs: a slice of bytes, with the facts about
it that no packet says. A message that took the slow way is a group of its own: one MQTT 5 PUBLISH packet, written with
the properties that are passed on. Either way the topic stands in the packets, and is not stored a second time.
"""

from __future__ import annotations

from brookmq.base.errors import InvariantError
from brookmq.base.message import Message
from brookmq.mqtt.kernel import Run, frame
from brookmq.store.errors import BadRecord

# What a group costs in memory beside its bytes: the object, its strings' and numbers' own, its places in lists.
OVERHEAD_BYTES = 400
FILTER_ID_BYTES = 4


class Group:
    """``first`` is the offset of its first message; the others follow without a gap."""

    __slots__ = (
        "captured",
        "client_id",
        "count",
        "expires_at",
        "filters",
        "first",
        "kept_publisher",
        "origin",
        "packets",
        "plain",
        "published_at",
        "qos",
        "retain",
        "topic",
        "username",
        "version5",
    )

    def __init__(
        self,
        packets: bytes,
        count: int,
        qos: int,
        retain: bool,
        version5: bool,
        plain: bool,
        topic: bytes,
        client_id: str,
        username: str | None,
        published_at: float,
        expires_at: float = 0.0,
        captured: bool = False,
        kept_publisher: bool = False,
        origin: bytes = b"",
        filters: bytes = b"",
    ) -> None:
        self.packets = packets  # ``count`` whole PUBLISH packets with the same first byte, and nothing else
        self.count = count
        self.qos = qos
        self.retain = retain
        self.version5 = version5  # how the packets are encoded
        self.plain = plain  # True: ``Run.scan`` takes them all as one run; False: one message, see ``message``
        self.topic = topic  # as it stands in the packets
        self.client_id = client_id  # of the publisher, "" when the node itself published it
        self.username = username
        self.published_at = published_at  # unix seconds
        self.expires_at = expires_at  # unix seconds, 0.0 = never
        self.captured = captured  # a capture filter matched
        self.kept_publisher = kept_publisher  # its session is kept: QoS 2 packet ids in here are open after a crash
        self.origin = origin  # an id by which a repeat is found (wills); b"": none
        self.filters = filters  # ids of the kept filters that matched, FILTER_ID_BYTES each, big endian
        self.first = -1  # given when its batch is sealed

    def size(self) -> int:
        """What it counts for in limits by bytes: about what it takes in a batch."""
        return len(self.packets) + len(self.filters) + len(self.client_id) + len(self.origin) + 16

    def message(self) -> Message:
        """The one message of a group that is not plain."""
        if self.plain:
            raise InvariantError("a plain group is read as a run")
        body, end = frame(self.packets, 0)
        at = body + 2 + len(self.topic) + (2 if self.qos else 0)
        properties = b""
        if end != len(self.packets) or at > end:
            raise BadRecord(f"the packet at offset {self.first} has {len(self.packets)} bytes and says {end}")
        if self.version5:
            length, at = _property_length(self.packets, at)
            if at + length > end:
                raise BadRecord(f"the properties at offset {self.first} are longer than their packet")
            properties = self.packets[at : at + length]
            at += length
        return Message(
            self.topic,
            self.packets[at:],
            self.qos,
            self.retain,
            properties,
            self.expires_at,
            self.published_at,
            self.client_id,
            self.username,
        )

    def packet_ids(self) -> bytes:
        """The packet ids under which the publisher sent them, two bytes each; none at QoS 0."""
        if self.qos == 0:
            return b""
        if self.plain:
            run = Run()
            if run.scan(self.packets, 0, self.version5, len(self.packets)) != len(self.packets):
                raise BadRecord(f"the packets at offset {self.first} are not a run")
            return run.ids()
        at = frame(self.packets, 0)[0] + 2 + len(self.topic)
        if at + 2 > len(self.packets):
            raise BadRecord(f"the packet at offset {self.first} has no packet id")
        return self.packets[at : at + 2]

    def __repr__(self) -> str:
        return f"Group({self.count} to {self.topic[:80]!r} from {self.client_id[:80]!r}, first={self.first})"


def topic_of(packets: bytes) -> bytes:
    """The topic name in the first of some PUBLISH packets."""
    size = len(packets)
    at = 1
    while at < size and at < 5 and packets[at] >= 0x80:
        at += 1
    at += 1
    if at + 2 > size:
        raise BadRecord(f"{size} bytes are no PUBLISH packet")
    end = at + 2 + (packets[at] << 8 | packets[at + 1])
    if end > size:
        raise BadRecord(f"a topic that ends at {end} in a packet that ends at {size}")
    return packets[at + 2 : end]


def _property_length(packet: bytes, at: int) -> tuple[int, int]:
    """The number in front of the properties, and where they begin."""
    value = shift = 0
    while at < len(packet) and shift < 28:
        byte = packet[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise BadRecord("a packet without the length of its properties")

"""What is known of one connection, and how it ends.

    CONNECTING ──CONNECT accepted──► CONNECTED ──► CLOSED
         └── AUTH ⇄ AUTH ──┘

The channel (``channel.py``) is this and what reads. What handles runs and acknowledgements needs no more of it than the
state, so that the channel can stand on top of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from brookmq.access.points import ClientInfo
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.journaling import Journaling
from brookmq.broker.outlet import Outlet, Turn
from brookmq.broker.session import Session
from brookmq.broker.settings import Settings
from brookmq.broker.topics import Audience, TopicIndex
from brookmq.mqtt import reasons
from brookmq.mqtt.codec import encode_connack, encode_disconnect
from brookmq.mqtt.properties import Properties

if TYPE_CHECKING:
    from brookmq.broker.acknowledging import Acknowledgement
    from brookmq.broker.authenticating import PendingConnect
    from brookmq.broker.broker import Broker

CONNECTING = 0
CONNECTED = 1
CLOSED = 2

PACKET_SIZE_SHORT = 5  # a CONNACK without properties: what a client whose CONNECT we could not read will take


class Obstacle(Protocol):
    """Something full: a subscriber's outlet, a shard of the journal, a table of the store."""

    def wait(self, waiter: Callable[[], None], /) -> None:
        """Calls back when there is room, or when it need not be waited for any longer."""


class Host(Protocol):
    """What carries the channel: a connection of the edge, or a test."""

    def close(self) -> None:
        """Write what the outlet has, then close."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def watch(self, seconds: float) -> None:
        """Look in so many seconds whether the peer was heard (``overdue``)."""

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        """Wait for something outside, then call ``done`` with the result, or with the exception."""


class ChannelState:
    """Invariants: ``session`` is there from when it was opened, which may be some time before the CONNACK;
    ``partial`` holds bytes only while they are not a whole packet or the channel is suspended; a CLOSED channel changes
    nothing any more."""

    def __init__(self, broker: Broker, host: Host, outlet: Outlet, listener: str, address: str) -> None:
        self.broker = broker
        self.settings: Settings = broker.settings
        self.counters: Counters = broker.counters
        self.turn: Turn = broker.turn
        self.index: TopicIndex = broker.index
        self.dispatcher: Dispatcher = broker.dispatcher
        self.journaling: Journaling = broker.journaling
        self.host = host
        self.outlet = outlet
        self.listener = listener
        self.address = address
        self.mount_template = ""
        self.certificate: Any = None
        self.client: ClientInfo | None = None
        self.session: Session | None = None
        self.state = CONNECTING
        self.version = 0
        self.version5 = False
        self.suspended = False
        self.singly = False  # no runs: a mount point, rewriting or a publish hook looks at each message
        self.guarded = False  # access hooks are asked for each topic
        self.decisions: dict[tuple[bytes, int], bool] | None = None
        self.partial: bytearray | None = None
        self.need = 0
        self.bytes_received = 0
        self.last_seen = 0.0  # monotonic seconds of the last bytes; before CONNECT is complete, of the beginning
        self.silence_max = 0.0  # seconds without a packet after which the peer counts as gone; 0 = never
        self.last_topic = b""  # of the run before, with its QoS and who gets it: the next is mostly the same
        self.last_qos = 0
        self.last_audience: Audience | None = None
        self.aliases: dict[int, bytes] | None = None  # inbound
        self.problem_information = True
        self.peer_packet_size_max = PACKET_SIZE_SHORT  # until its CONNECT has been read
        self.method = ""  # of enhanced authentication, "" = none
        self.authentication: PendingConnect | None = None
        self.unsettled: deque[Acknowledgement] | None = None  # in the order in which they have to go out
        self.unsettled_bytes = 0
        self.stalled = False  # not read from until less of it waits for the store
        self.obstacle: Obstacle | None = None  # what a run has to wait for

    def connected(self) -> None:
        self.state = CONNECTED

    def heard(self, now: float) -> None:
        """Silence is counted from now on (unix seconds)."""
        self.last_seen = max(self.last_seen, now - self.broker.wall)

    # -- the end

    def fail(self, error: PeerError) -> None:
        """The peer broke the protocol or a limit: tell it why where the protocol has words for it, and close.
        [MQTT-4.13.1-1]"""
        self.counters.protocol_errors += 1
        if self.state == CONNECTED:
            self.disconnect(error.reason, str(error))
            self.ended(True, error.reason)
        elif self.state != CLOSED:
            self.refuse(error.reason, str(error))

    def refuse(self, reason: int, message: str = "", properties: Properties | None = None) -> None:
        """Answer CONNECT with an error and close. Before a CONNECT could be read there is nobody to answer."""
        if self.version5 or (self.version and reason in reasons.CONNACK_V3):
            self.counters.connects_refused += 1
            explained = properties or Properties()
            if message and self.version5 and self.problem_information:
                explained.reason_string = message
            packet = encode_connack(False, reason, explained, self.version)
            if len(packet) > self.peer_packet_size_max:  # [MQTT-3.2.2-19]
                packet = encode_connack(False, reason, properties, self.version)
            if len(packet) <= self.peer_packet_size_max:
                self.outlet.put(packet)
        self.state = CLOSED
        self.host.close()

    def disconnect(self, reason: int, message: str = "") -> None:
        """Tell the client why (MQTT 5 has words for it) and close; the session is the caller's business."""
        if self.state == CONNECTING and self.session is not None:  # its CONNACK still waits for the store
            self.refuse(reason, message)
        if self.state != CONNECTED:
            return
        self.state = CLOSED
        self.counters.disconnects_by_server += 1
        if self.version5:
            properties = Properties()
            if reason in (reasons.USE_ANOTHER_SERVER, reasons.SERVER_MOVED) and self.settings.server_reference:
                properties.server_reference = self.settings.server_reference
            bare = encode_disconnect(reason, properties, 5)
            if message and self.problem_information:
                properties.reason_string = message
            packet = encode_disconnect(reason, properties, 5)
            if len(packet) > self.peer_packet_size_max:  # [MQTT-3.14.2-3]
                packet = bare
            if len(packet) <= self.peer_packet_size_max:
                self.outlet.put(packet)
        self.host.close()

    def end(self, reason: int, message: str = "") -> None:
        """The server ends this connection: an administrator, a time-out, a shutdown."""
        if self.state == CONNECTED:
            self.disconnect(reason, message)
            self.ended(True, reason)
        elif self.state != CLOSED:
            self.state = CLOSED
            self.host.close()

    def left(self, with_will: bool, reason: int) -> None:
        """The client said DISCONNECT. [MQTT-3.14.4-1, -2]"""
        self.state = CLOSED
        self.host.close()
        self.ended(with_will, reason)

    def give_up(self) -> None:
        """The client left before it was connected."""
        self.state = CLOSED
        self.host.close()

    def lost(self) -> None:
        """The transport is gone."""
        self.state = CLOSED
        self.partial = None
        self.ended(True, reasons.UNSPECIFIED_ERROR)
        self.outlet.close()

    def ended(self, with_will: bool, reason: int) -> None:
        """The session has no connection any more."""
        session = self.session
        if session is not None:
            self.broker.sessions.close(session, self, with_will, reason, self.broker.now)

    def overdue(self, monotonic: float) -> bool:
        """True when the peer has been silent for too long. A peer that we do not read from is not to blame, unless we
        wait for it to read our answers."""
        if self.suspended and self.outlet.size <= self.outlet.limit:
            return False
        return self.silence_max > 0 and monotonic - self.last_seen > self.silence_max

    def timed_out(self) -> None:
        """[MQTT-3.1.2-22], [MQTT-3.1.4-5]"""
        if self.state == CONNECTED:
            self.counters.keep_alive_timeouts += 1
            self.end(reasons.KEEP_ALIVE_TIMEOUT)
        elif self.state != CLOSED:
            self.counters.connect_timeouts += 1
            self.end(reasons.UNSPECIFIED_ERROR)

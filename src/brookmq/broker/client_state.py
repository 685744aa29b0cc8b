"""What the broker keeps of a client, and how acknowledgements and waiting messages change it.

Nothing is sent from here: that is the part of the session (``session.py``), which is this and more. So what makes
packets of a message (``encoding.py``) needs the state of its client alone, and the session needs what makes packets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from brookmq.base.counters import Counters
from brookmq.broker.inflight import FREE, PUBCOMP_DUE, InFlight, OpenIds, Window
from brookmq.broker.outlet import Outlet
from brookmq.broker.publication import Delivery
from brookmq.broker.settings import SessionLimits
from brookmq.broker.subscription import Subscription

if TYPE_CHECKING:
    from brookmq.broker.acknowledging import Acknowledgement
    from brookmq.broker.keeping import Keeper
    from brookmq.broker.session import Session
    from brookmq.broker.will import Will


class ClientState:
    """Invariants: ``outlet`` is None exactly while no client is connected; ``held`` and ``via`` have packet ids of the
    window only; the queue is not empty only while the window or the outlet is full, or the client is away; ``cursors``
    is there exactly while the session is not ``live``."""

    def __init__(self, client_id: str, limits: SessionLimits, counters: Counters) -> None:
        self.client_id = client_id
        self.username: str | None = None
        self.limits = limits
        self.counters = counters
        self.version = 4
        self.version5 = False
        self.expiry = 0.0  # seconds that it outlives its connection; inf = for ever
        self.kept = False  # it is in the store: it outlives its connection, or did so until now
        self.connect_number = 0  # names this connection, and so its will, in what is stored
        self.created_at = 0.0
        self.disconnected_at = 0.0
        self.last_client: Any = None  # ClientInfo of its last connection, for listings
        self.keep_alive = 0  # seconds, of its last connection, and so the next two
        self.clean_start = True
        self.connected_at = 0.0
        self.generation = 0  # raised at each connect: a timer of an earlier one is void
        self.channel: Any = None  # the Channel that holds it
        self.will: Will | None = None
        self.subscriptions: dict[str, Subscription] = {}  # by the filter that the client gave
        self.outlet: Outlet | None = None
        self.plain = True  # runs can be handed to it as they are: no mount point, no topic alias, no hook
        self.intercept: Callable[[Session, Delivery, float], None] | None = None  # the deliver hooks, if there are any
        self.mount = b""
        self.packet_size_max = 0xFFFFFFFF
        self.alias_max = 0
        self.aliases: dict[bytes, int] | None = None  # outbound, of this connection
        self.window: Window | None = None
        self.window_limit = limits.inflight_max
        self.held: dict[int, Delivery] | None = None  # by packet id, messages of the window that no journal has
        self.via: dict[int, Any] | None = None  # by packet id, the shared group that a message of the journal came by
        self.sharing: list[Any] | None = None  # readers of the groups that it is a member of
        self.to_resend: deque[InFlight] | None = None  # what this connection has not seen yet
        self.queue: deque[Delivery] | None = None
        self.replays: list[Any] | None = None  # of retained messages, for when the client is back
        self.queue_bytes = 0
        self.open_ids: OpenIds | None = None
        self.keeper: Keeper | None = None  # of a kept session: what writes it down and reads the journal for it
        self.live = True
        self.strict = False
        self.sending = 0  # writes of a strict one that are under way: what they are about goes out behind them
        self.moved = False  # its progress is not written down yet
        self.loading = False  # what it reads next is on its way from the store
        self.cursors: list[int] | None = None
        self.dup_below: list[int] | None = None  # per shard: what is below may have been sent before a crash
        self.wanted: frozenset[int] | None = None  # filter ids that it reads the journal for; made when needed
        self.matching: dict[bytes, Subscription | None] | None = None  # by topic, while it reads
        self.open_at: dict[int, int] | None = None  # inbound QoS 2: open packet id → position of its message
        self.doubtful_ids: set[int] | None = None  # of these, those from before a crash: see ``Keeper.disown``
        self.released: list[int] | None = None  # positions whose ids were released since progress was written
        self.storing: dict[int, Acknowledgement] | None = None  # inbound QoS 2: ids whose message is on its way
        self.sent_count = 0
        self.received_count = 0
        self.dropped_count = 0

    # -- progress

    def note_moved(self) -> None:
        """What is written of its progress is not true any more: it is written again, with that of all others."""
        if self.keeper is not None and not self.moved:
            self.keeper.note_moved(cast("Session", self))

    def acknowledged(self, ids: bytes, state: int) -> int:
        """PUBACK or PUBCOMP came for these ids. Returns how many of them were due."""
        window = self.window
        if window is None:
            return 0
        moved = window.move(ids, state, FREE)
        if self.held or self.via:
            self._let_go(ids)
        if moved:
            self.note_moved()
        return moved

    def received(self, ids: bytes) -> int:
        """PUBREC came for these ids: the message is the client's now, the id is not free yet. [MQTT-4.3.3-4]"""
        window = self.window
        if window is None:
            return 0
        moved = window.move(ids, 2, PUBCOMP_DUE)
        held = self.held
        if held:
            for i in range(0, len(ids), 2):
                packet_id = ids[i] << 8 | ids[i + 1]
                if window.state(packet_id) == PUBCOMP_DUE:
                    held.pop(packet_id, None)
        return moved

    def finish_taken(self, ids: bytes, qos: int) -> None:
        """What was to be sent is not to be sent: its packet ids are free."""
        if self.window is not None:
            self.window.move(ids, qos, FREE)
        self._let_go(ids)
        self.note_moved()

    def _let_go(self, ids: bytes) -> None:
        """Nothing more is needed of the messages of these ids, as far as they are free now."""
        window, held, via = self.window, self.held, self.via
        if window is None:
            return
        for i in range(0, len(ids), 2):
            packet_id = ids[i] << 8 | ids[i + 1]
            if window.state(packet_id) == FREE:  # else it was another kind of acknowledgement than is due
                if held:
                    held.pop(packet_id, None)
                if via:
                    via.pop(packet_id, None)

    def expired(self, now: float) -> bool:
        """Its client was away for too long; the timer that ends it may be late."""
        return self.channel is None and self.disconnected_at + self.expiry <= now

    # -- the queue

    def enqueue(self, delivery: Delivery) -> None:
        size = delivery.message.size()
        limits = self.limits
        if limits.queue_count_max == 0 or size > limits.queue_bytes_max:  # not even an empty queue has room for it
            self.counters.dropped_queue_full += 1
            self.dropped_count += 1
            return
        queue = self.queue
        if queue is None:
            queue = self.queue = deque()
            if self.outlet is not None and not self.outlet.blocked:
                self.outlet.fall_behind()
        while queue and (len(queue) >= limits.queue_count_max or self.queue_bytes + size > limits.queue_bytes_max):
            self.counters.dropped_queue_full += 1
            self.dropped_count += 1
            if not limits.drop_oldest:
                return
            self.queue_bytes -= queue.popleft().message.size()
        queue.append(delivery)
        self.queue_bytes += size
        self.counters.messages_queued += 1
        if self.outlet is not None and self.full():
            self.outlet.press()

    def full(self) -> bool:
        """More than half of the queue is in use: publishers should be slowed down while its client is there."""
        queue = self.queue
        return queue is not None and (
            len(queue) * 2 > self.limits.queue_count_max or self.queue_bytes * 2 > self.limits.queue_bytes_max
        )

    def waits(self) -> bool:
        """There is something to send that had no room."""
        return self.queue is not None or self.to_resend is not None or not self.live or self.sharing is not None

    # -- inbound QoS 2 of a kept session

    def opened(self, ids: bytes, position: int) -> None:
        """The messages of these ids are stored, from ``position`` on in the journal."""
        if self.open_at is None:
            self.open_at = {}
        for i in range(0, len(ids), 2):
            self.open_at[ids[i] << 8 | ids[i + 1]] = position
            position += 1
        self.note_moved()

    def store_ids(self, ids: bytes, ticket: Acknowledgement) -> None:
        """The messages of these ids are on their way to the store: a repeat waits for the same."""
        if self.storing is None:
            self.storing = {}
        for i in range(0, len(ids), 2):
            self.storing[ids[i] << 8 | ids[i + 1]] = ticket

    def stored_ids(self, ids: bytes) -> None:
        """Nothing is on its way any more for these ids."""
        storing = self.storing
        if storing:
            for i in range(0, len(ids), 2):
                storing.pop(ids[i] << 8 | ids[i + 1], None)

    # -- the end

    def take_shared(self) -> tuple[list[Delivery], list[tuple[Any, int, bool]]]:
        """The client has left for good: what came through shared groups, as messages that may go to another member, and
        as (group, position, whether it may). QoS 2 that was sent stays with its client. [MQTT-4.8.2-4, -5]"""
        left: list[Delivery] = []
        if self.held:
            left.extend(d for d in self.held.values() if d.group is not None and d.qos == 1)
        if self.queue:
            left.extend(d for d in self.queue if d.group is not None)
        stored: list[tuple[Any, int, bool]] = []
        if self.via and self.window is not None:
            for entry in self.window.in_flight():
                group = self.via.get(entry.packet_id)
                if group is not None and entry.position >= 0:
                    stored.append((group, entry.position, entry.state == 1))
        return left, stored

    def check_invariants(self) -> None:
        if self.window is not None:
            self.window.check_invariants()
            for packet_id in [*(self.held or ()), *(self.via or ())]:
                if self.window.state(packet_id) == FREE:
                    raise AssertionError(f"packet id {packet_id} is held but free")
        if self.queue_bytes != sum(d.message.size() for d in self.queue or ()):
            raise AssertionError("queue_bytes is not the size of the queue")
        if self.live != (self.cursors is None):
            raise AssertionError("a live session has no cursors, one that is behind has")

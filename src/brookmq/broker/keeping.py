"""Keeps sessions in the store: writes down what changes, and reads the journal for those who are behind.

What is written when (a crash in between must lose nothing that was promised):
- a session's beginning, subscriptions and end: before CONNACK, SUBACK, UNSUBACK;
- a strict session's packet ids and positions: before the PUBLISH; its PUBREC: before the PUBREL;
- a publisher's released QoS 2 ids: before the PUBCOMP;
- everything else (cursors, windows of QoS 1, open ids of journaled messages): every second, for all sessions that have
  moved, and then a *watermark*: up to there every live session has got everything. So a live session that gets nothing
  costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from brookmq.base import faults
from brookmq.base.counters import Counters
from brookmq.broker import session_image
from brookmq.broker.admission import Admission
from brookmq.broker.group_reading import GroupReader
from brookmq.broker.inflight import InFlight
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.journal_replays import JournalReplays
from brookmq.broker.journaling import Journaling
from brookmq.broker.outlet import Outlet, Turn
from brookmq.broker.publication import Delivery
from brookmq.broker.reading import AT_HEAD, FULL, LOADING, group_at, read_batch
from brookmq.broker.session import Session
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription
from brookmq.broker.topics import TopicIndex
from brookmq.mqtt.kernel import acks
from brookmq.store import meta_record, session_ops
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.group import Group
from brookmq.store.session_state import META_KEY, NOT_JOURNALED, OFFSET_BITS, group_key, session_key
from brookmq.store.table.interface import Table

PROGRESS_SECONDS = 1.0
WATERMARK_SECONDS_MAX = 5.0  # also when nothing moved: it says until when the connected clients were connected
PROGRESS_SLICE = 40  # sessions written down in one turn: a millisecond or two
BATCHES_IN_A_TURN = 8  # that one session reads before others get their turn
READERS_IN_A_TURN = 2  # sessions that read on in one turn: a few hundred µs each when they have just come back
TOPICS_REMEMBERED = 1024
OFFSET_MASK = (1 << OFFSET_BITS) - 1


class Keeper:
    """One for the node. Until ``attach`` nothing is stored, and nobody has a kept session."""

    def __init__(
        self, index: TopicIndex, journaling: Journaling, turn: Turn, counters: Counters, clock: Callable[[], float]
    ) -> None:
        self.index = index
        self.journaling = journaling
        self.turn = turn
        self.counters = counters
        self.clock = clock  # the store's own: how long something waits
        self.table: Table | None = None
        self.journal: Any = None
        self.epoch = 0
        self.readers = Admission(turn, READERS_IN_A_TURN)
        self.moved: list[Session] = []
        self.now = 0.0
        self.complete = False  # all that the store has is loaded
        self.group_readers: dict[bytes, Any] = {}
        self.replays = JournalReplays(self)
        self.floors: dict[bytes, list[int]] = {}  # what a start has to look for in the journal begins there
        self._relaxing: set[Session] = set()  # strict ones that are about to be so no more
        self._subscribing: dict[Session, int] = {}  # sessions with so many changes of subscriptions on their way
        self._replayed: dict[
            Session, list[Subscription]
        ] = {}  # have sent what is retained, and are stored as replaying
        self._progress_at = 0.0
        self._watermark_at = 0.0
        self._writing: list[Session] = []  # the rest of those whose progress is being written
        self._heads: list[int] = []  # ends of the shards when that began
        self.on_lost: Callable[[str, int], None] = lambda client_id, count: None
        self.on_watermark: Callable[[bytes], None] = lambda op: None
        self.behind_values: Callable[[list[int]], list[int]] = lambda heads: heads
        self.on_group_left: Callable[[bytes, bytes], None] = lambda key, op: None

    # -- writing down

    def change(self, session: Session, op: bytes, done: Callable[[], None] | None = None) -> None:
        assert self.table is not None
        self.table.change(session_key(session.client_id), op, done)

    def began(self, session: Session, present: bool, done: Callable[[], None] | None) -> None:
        """A client has connected to a kept session, new or not."""
        if present:
            op = session_ops.connected(session_image.scalars_of(session, self.epoch))
        else:
            op = session_ops.state(session_image.state_of(session, self.epoch, self.journaling.heads()))
        self.change(session, op, done)

    def left(self, session: Session) -> None:
        """The connection of a kept session is gone: from now on it is behind."""
        if session.live:
            session.cursors = self.journaling.heads()
            session.live = False
        session.loading = False
        will_due = 0.0 if session.will is None else session.will.due
        op = session_ops.disconnected(session.disconnected_at, will_due, session.expiry, self._progress(session))
        self.change(session, op)
        self.write_replays(session)

    def ended(self, session: Session, done: Callable[[], None] | None = None) -> None:
        self._replayed.pop(session, None)
        session.kept = False  # its client id may have another session: nothing more is written for this one
        self.change(session, session_ops.ended(), done)

    def subscribed(self, session: Session, granted: list[tuple[str, Subscription]], done: Callable[[], None]) -> None:
        session.wanted = session.matching = None
        strict = is_strict(session)
        if strict and not session.strict:
            self.write_progress(session)  # from here on each step is written down, so the place to begin is, too
            session.strict = True
        records = [session_image.subscription_record(filter, each) for filter, each in granted]
        self._change_subscriptions(session, session_ops.subscribed(records), done)

    def unsubscribed(self, session: Session, filters: list[str], done: Callable[[], None]) -> None:
        session.wanted = session.matching = None
        self._change_subscriptions(session, session_ops.unsubscribed(filters), done)

    def _change_subscriptions(self, session: Session, op: bytes, done: Callable[[], None]) -> None:
        self._subscribing[session] = self._subscribing.get(session, 0) + 1
        self.change(session, op, lambda: self._subscriptions_stored(session, done))

    def _subscriptions_stored(self, session: Session, done: Callable[[], None]) -> None:
        """A session is strict until the store has it as one that is not, since what it gets in between must be written;
        and until all that waits to be written is out, since nothing may overtake it."""
        left = self._subscribing.pop(session) - 1
        if left:
            self._subscribing[session] = left
        self._relaxing.add(session)
        self._relax(session)
        done()

    def _relax(self, session: Session) -> None:
        if session.sending == 0 and session not in self._subscribing:
            self._relaxing.discard(session)
            session.strict = is_strict(session)

    def sent(self, session: Session, ids: bytes, qos: int, position: int, packets: bytes) -> None:
        """A strict session: written down, then sent."""
        outlet = session.outlet
        group = None if session.via is None else session.via.get(ids[0] << 8 | ids[1])
        if position < 0:
            op = self._progress(session)
        else:
            shard = position >> OFFSET_BITS
            cursor = (position & OFFSET_MASK) + len(ids) // 2
            if group is not None:  # the group's cursor is its own, and is written behind this
                op = session_ops.sent_run(session_ops.NO_SHARD, 0, qos, ids, position, session_image.via_key(group))
            else:
                op = session_ops.sent_run(shard, cursor, qos, ids, position)
        session.sending += 1
        self.change(session, op, lambda: self._send(session, outlet, packets))
        if position < 0:
            self.write_replays(session)

    def _send(self, session: Session, outlet: Outlet | None, packets: bytes) -> None:
        if faults.armed:
            faults.hit("session.sent")
        session.sending -= 1
        if outlet is not None and session.outlet is outlet:
            outlet.put(packets)
        if session in self._relaxing:
            self._relax(session)

    def received(self, session: Session, ids: bytes) -> None:
        """PUBREC came: written down, then PUBREL. [MQTT-4.3.3-4]"""
        outlet = session.outlet

        def release() -> None:
            if faults.armed:
                faults.hit("session.pubrel")
            if outlet is not None and session.outlet is outlet:
                outlet.put(acks(0x62, ids))

        self.change(session, session_ops.received(ids), release)

    def opened(self, session: Session, ids: bytes, done: Callable[[], None]) -> None:
        """Inbound QoS 2 that no journal has: open from now on, since progress may be written before ``done``."""
        open_at = session.open_at = session.open_at or {}
        for i in range(0, len(ids), 2):
            open_at[ids[i] << 8 | ids[i + 1]] = NOT_JOURNALED
        self.change(session, session_ops.opened(ids), done)

    def refused(self, session: Session, ids: bytes, position: int) -> None:
        """The client was told that these were not taken, and the journal has them, or will: their ids are free."""
        session.released = session.released or []
        session.released.extend(range(position, position + len(ids) // 2))
        pairs = [(ids[i] << 8 | ids[i + 1], position + i // 2) for i in range(0, len(ids), 2)]
        for packet_id, _ in pairs:
            if session.open_at is not None:
                session.open_at.pop(packet_id, None)
        self.change(session, session_ops.released(pairs))

    def disown(self, session: Session, packet_id: int) -> bool:
        """A new message came under an id that was open when the node died: its client was told that the one before was
        refused, and the node died before that was stored. A repeat would have DUP [MQTT-3.3.1-1]."""
        doubtful, open_ids, open_at = session.doubtful_ids, session.open_ids, session.open_at
        if not doubtful or packet_id not in doubtful or open_ids is None or open_at is None:
            return False
        ids = packet_id.to_bytes(2, "big")
        doubtful.discard(packet_id)
        open_ids.release(ids)
        self.change(session, session_ops.released([(packet_id, open_at.get(packet_id, NOT_JOURNALED))]))
        open_at.pop(packet_id, None)
        return True

    def released(self, session: Session, ids: bytes, answer: bytes) -> None:
        """PUBREL came: written down, then ``answer`` (PUBCOMP) goes out. [MQTT-4.3.3-11]"""
        outlet = session.outlet
        open_at = session.open_at or {}
        pairs = []
        for i in range(0, len(ids), 2):
            packet_id = ids[i] << 8 | ids[i + 1]
            position = open_at.pop(packet_id, NOT_JOURNALED)
            if session.doubtful_ids:
                session.doubtful_ids.discard(packet_id)
            pairs.append((packet_id, position))
            if position != NOT_JOURNALED:
                if session.released is None:
                    session.released = []
                session.released.append(position)

        def complete() -> None:
            if faults.armed:
                faults.hit("session.released")
            if outlet is not None and session.outlet is outlet:
                outlet.put(answer)

        self.change(session, session_ops.released(pairs), complete)

    # -- shared groups

    def group_needs_reader(self, group: SharedGroup) -> None:
        """A group has its first kept member, or has lost its last; while sessions are loading nobody knows whether it
        was the last, and another may come for what it has left."""
        if group.kept_count and group.reader is None:
            reader = self.group_readers.get(group_key(group.name, group.filter.encode()))
            if reader is not None:
                reader.group, group.reader = group, reader
                return
            group.reader = GroupReader(group, self)
            self.group_readers[group.reader.key] = group.reader
            group.reader.write_down()
        elif group.kept_count or group.reader is None or not self.complete:
            return
        elif group.reader.drained() or not group.members:
            group.reader.ended()
            del self.group_readers[group.reader.key]
            group.reader = None

    # -- progress

    def note_moved(self, session: Session) -> None:
        session.moved = True
        self.moved.append(session)

    def write_progress(self, session: Session) -> None:
        self.change(session, self._progress(session))
        self.write_replays(session)
        if session in self._replayed:
            self._write_replayed(session)

    def replay_is_over(self, subscription: Subscription) -> None:
        """All its retained messages are sent, or wait in the session's queue."""
        session = subscription.session
        if subscription.replaying and session.kept:
            self._replayed.setdefault(session, []).append(subscription)
            if not session.moved:
                self.note_moved(session)

    def _write_replayed(self, session: Session) -> None:
        """What was sent is written down just now: the next life has nothing to repeat. Unless some of it waits."""
        if session.queue:
            if session.outlet is not None and not session.moved:
                self.note_moved(session)
            return
        over = self._replayed.pop(session)
        records = []
        for name, subscription in session.subscriptions.items():
            if any(each is subscription for each in over):
                subscription.replaying = False
                records.append(session_image.subscription_record(name, subscription))
        if records:
            self.change(session, session_ops.subscribed(records))

    def write_replays(self, session: Session) -> None:
        """How far its replays are: behind each record of its window, since what is before the cursors and not in the
        window counts as finished."""
        if session.sharing is None:
            return
        replays = [each for each in session.sharing if isinstance(each, JournalReplay) and each.begun]
        for replay in replays:
            replay.written_at = self.now
        records = [session_image.subscription_record(replay.name, replay) for replay in replays]
        if records:
            self.change(session, session_ops.subscribed(records))

    def _progress(self, session: Session) -> bytes:
        heads = self.journaling.heads()
        return session_ops.dynamic(
            self.epoch if session.live else 0,
            self._cursors(session, heads),
            session_image.window_of(session),
            session_image.inline_of(session),
            session.open_at,
            heads,
            released_behind(session, heads),
        )

    def _cursors(self, session: Session, heads: list[int]) -> list[int]:
        if faults.armed and faults.broken("cursor_too_early"):
            return heads  # it has not read that far
        return session_image.cursors_of(session, heads)

    def tick(self, now: float) -> None:
        self.now = now
        if self.table is None:
            return
        if self._writing or self.table.full:
            return
        quiet = now - self._watermark_at < WATERMARK_SECONDS_MAX
        if now - self._progress_at < PROGRESS_SECONDS or (not self.moved and quiet):
            return
        self._progress_at = now
        self._writing, self.moved = self.moved, []
        self._heads = self.behind_values(self.journaling.heads())
        self._write_slice()

    def _write_slice(self) -> None:
        """Sessions that have moved since the last time; then the watermark of the moment at which this began."""
        for _ in range(min(PROGRESS_SLICE, len(self._writing))):
            session = self._writing.pop()
            session.moved = False
            if session.kept:  # an away one too: what it had sent may have been stored since it left
                self.write_progress(session)
        if self._writing:
            self.turn.call_soon(self._write_slice)
            return
        for reader in self.group_readers.values():
            if reader.changed and self.complete:
                reader.write_down()
        self.write_watermark(self._heads)

    def write_watermark(self, heads: list[int]) -> None:
        assert self.table is not None
        self._watermark_at = self.now
        for floor in self.floors.values():
            heads = [min(pair) for pair in zip(heads, floor, strict=True)]
        op = meta_record.watermark(self.epoch, self.now, heads)
        self.table.change(META_KEY, op)
        self.on_watermark(op)

    # -- reading the journal

    def catch_up(self, session: Session, now: float) -> None:
        """The session reads on, now or when others have had their turn: thousands may be back at once."""
        if self.readers.free():
            self._read_on(session)
        else:
            session.loading = True
            self.readers.line_up(lambda: self._read_next(session))

    def _read_next(self, session: Session) -> None:
        session.loading = False
        self._read_on(session)

    def _read_on(self, session: Session) -> None:
        """Hand on what the session has not got, as far as it takes it; at the end of all shards it is live."""
        cursors = session.cursors
        if cursors is None or session.outlet is None:
            return
        batches = 0
        if session.wanted is None:
            session.wanted = self.index.filter_ids(session)
        wanted = session.wanted
        while True:
            at_head = 0
            for shard in range(len(cursors)):
                outcome = read_batch(
                    self.journal,
                    shard,
                    cursors,
                    wanted,
                    lambda shard, group, index: self._hand(session, shard, group, index),
                    lambda: self._go_on(session),
                    lambda count: self.lost(session.client_id, count),
                )
                if outcome == LOADING:
                    session.loading = True
                if outcome in (LOADING, FULL):
                    return
                at_head += outcome == AT_HEAD
            batches += 1
            if at_head == len(cursors):
                session.live = True
                session.cursors = session.matching = None
                if not session.moved:
                    self.note_moved(session)
                return
            if batches >= BATCHES_IN_A_TURN:
                session.loading = True
                self.turn.call_soon(lambda: self._go_on(session))
                return

    def _go_on(self, session: Session) -> None:
        session.loading = False
        if session.outlet is not None:
            session.pump(self.now)

    def lost(self, who: str, count: int) -> None:
        """Retention was faster than a reader: counted and shown, never silent."""
        self.counters.messages_lost_to_retention += count
        self.on_lost(who, count)

    def _hand(self, session: Session, shard: int, group: Group, index: int) -> int:
        """Messages of a group from ``index`` on; up to where they were taken."""
        subscription = self._subscription(session, group.topic) if group.qos else None
        if subscription is None:
            return group.count
        if subscription.since is not None and subscription.since[shard] > group.first + index:
            return group.count
        journaling = self.journaling
        dup_below = 0 if session.dup_below is None else session.dup_below[shard]
        if group.plain and session.plain and subscription.plain and group.first + index >= dup_below:
            publication = journaling.open(group)
            if publication.run.largest + 4 <= session.packet_size_max:
                position = shard << OFFSET_BITS | (group.first + index)
                qos = min(subscription.qos, group.qos)
                return index + session.take_run(publication, qos, index, group.count - index, position, None)
        return journaling.one_by_one(session, subscription, shard, group, index, None)

    def _subscription(self, session: Session, topic: bytes) -> Subscription | None:
        matching = session.matching
        if matching is None or len(matching) >= TOPICS_REMEMBERED:
            matching = session.matching = {}
        if topic not in matching:
            matching[topic] = self.index.subscription_of(session, topic)
        return matching[topic]

    def delivery_at(self, session: Session, entry: InFlight) -> Delivery | None:
        """The message of a window's entry, to be sent again. None: it is on its way from the store (``loading``), or
        retention has taken it."""
        shard, offset = entry.position >> OFFSET_BITS, entry.position & OFFSET_MASK
        if offset < self.journal.first_offset(shard):
            self.lost(session.client_id, 1)
            return None
        found = self.journal.look(shard, offset, None)
        if found is None:
            session.loading = True
            self.journal.load(shard, offset, None, lambda: self._go_on(session))
            return None
        if not isinstance(found, Batch) or found.base > offset:
            return None
        group = group_at(found, offset)
        via = None if session.via is None else session.via.get(entry.packet_id)
        if isinstance(via, JournalReplay):
            return via.again(shard, group, offset - group.first, entry)
        message = self.journaling.open(group).message(offset - group.first)
        subscription = self._subscription(session, group.topic)
        retain = group.retain and subscription is not None and subscription.retain_as_published
        identifiers = b"" if subscription is None else subscription.properties
        return Delivery(message, entry.state, retain, identifiers, via, entry.packet_id)


def released_behind(session: Session, heads: list[int]) -> list[int]:
    """Positions of released ids that are not stored yet: they stay written down until they are."""
    behind = [each for each in session.released or () if each & OFFSET_MASK >= heads[each >> OFFSET_BITS]]
    session.released = behind or None
    return behind


def is_strict(session: Session) -> bool:
    return any(each.qos == 2 for each in session.subscriptions.values())

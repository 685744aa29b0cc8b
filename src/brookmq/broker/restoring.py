"""What the store has of sessions, groups and wills, made into the broker's own again after a start.

The order: ``begin`` with the epochs and the end of the journal; then part after part as the table loads them. A client
that connects waits for its own part only. Until all parts are there the filters of all kept sessions are not known, so
that the index calls everything durable.

Who was connected when the node died left at the last watermark of that epoch: from then on its expiry and the delay of
its will are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from brookmq.broker import session_image
from brookmq.broker.client_table import ClientTable
from brookmq.broker.inflight import OpenIds
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.keeping import Keeper, is_strict
from brookmq.broker.replay import Replays
from brookmq.broker.session import Session
from brookmq.broker.sessions import Sessions
from brookmq.broker.subscribing import Subscriptions
from brookmq.broker.will import Will
from brookmq.broker.wills import Wills, origin_of
from brookmq.store import meta_record, session_ops
from brookmq.store.journal.group import Group
from brookmq.store.meta_record import decode_group, decode_meta, encode_group, encode_meta, fold_group, fold_meta
from brookmq.store.pipeline_record import is_sink
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import (
    GROUP_KEY,
    META_KEY,
    OFFSET_BITS,
    SESSION_KEY,
    GroupState,
    MetaState,
    SessionState,
    is_will_key,
)
from brookmq.store.table.interface import META_PART, Table, part_of
from brookmq.store.table.taking import Taken, steps


class OpenId(NamedTuple):
    """A QoS 2 packet id that its publisher has not released, as far as the journal tells."""

    packet_id: int
    position: int
    group: Group | None  # of its message, if that is a retained one


Entries = list[tuple[bytes, bytes]]


class Restoring:
    """The owner of the table of sessions: gives it its parts, and takes them from it."""

    def __init__(self, sessions: Sessions, subscriptions: Subscriptions, keeper: Keeper, replays: Replays) -> None:
        self.sessions = sessions
        self.wills: Wills = sessions.wills
        self.subscriptions = subscriptions
        self.keeper = keeper
        self.replays = replays
        self.now = 0.0
        self.meta = MetaState({})
        self.heads: list[int] = []  # ends of the shards at start
        self.looked_from: list[int] = []  # where that began
        self.open_ids: dict[str, list[OpenId]] = {}  # found in the journal, by client id
        self.retained: dict[bytes, Group] = {}  # found there: the last retained message of each topic
        self.origins: dict[bytes, Group | None] = {}  # found there: what was published; None: what will be
        self.regain: Callable[[Group, Callable[[], None]], None]  # makes a message retained, if it should be
        self.groups: dict[bytes, GroupState] = {}
        self.on_complete: Callable[[], None] = lambda: None

    # -- the start

    def watermark(self, meta_state: tuple[bytes, list[bytes]]) -> list[int]:
        """From where the journal has to be looked through; empty: from nowhere, there was no epoch before. An epoch
        that died before its first watermark may not have written down what it found: then it is the one before."""
        body, ops = meta_state
        meta = decode_meta(body) if body else None
        for op in ops:
            meta = fold_meta(meta, op)
        self.meta = meta or MetaState({})
        marks = [self.meta.epochs[number].watermark for number in sorted(self.meta.epochs, reverse=True)]
        self.looked_from = next((list(mark) for mark in marks if mark), [])
        return self.looked_from

    def look_through(self, shard: int, groups: Iterable[Group]) -> None:
        """Groups of the journal from the watermark on: open QoS 2 ids and wills."""
        for group in groups:
            if group.origin and not is_sink(group.origin):  # rows of queries are for ``Sinks``, and may be many
                self.origins[group.origin] = group
            if group.retain:
                self.retained[group.topic] = group
            if group.qos == 2 and group.kept_publisher:
                ids = group.packet_ids()
                found = self.open_ids.setdefault(group.client_id, [])
                position = shard << OFFSET_BITS | group.first
                found.extend(
                    OpenId(ids[i] << 8 | ids[i + 1], position + i // 2, group if group.retain else None)
                    for i in range(0, len(ids), 2)
                )

    def begin(self, table: Table, now: float) -> None:
        """A new epoch; what it finds of the one before is what the last watermark of that one says."""
        table.on_part = self.take_part
        table.encode_part = self.encode_part
        self.now = now
        number = self.meta.current() + 1
        op = meta_record.epoch(number, now, ())
        self.meta = fold_meta(self.meta, op)
        self.keeper.epoch = number
        self.heads = self.keeper.journaling.heads()
        table.change(META_KEY, op)
        if not table.all_loaded:  # what is not loaded may have to be looked for in the journal by the next start, too
            self.keeper.floors[b"loading"] = self.looked_from or [0] * len(self.heads)
        self.keeper.on_watermark = self._watermark_written
        self.keeper.on_group_left = self._group_left
        if number == 1:
            self.keeper.now = now
            self.keeper.write_watermark(self.heads)  # every later start finds one to look from

    def _watermark_written(self, op: bytes) -> None:
        self.meta = fold_meta(self.meta, op)

    def _group_left(self, key: bytes, op: bytes) -> None:
        group = fold_group(self.groups.get(key), op)
        assert group is not None
        self.groups[key] = group

    # -- parts in

    def take_part(self, part: int, states: Entries, ops: Entries) -> Iterator[None]:
        """A client in each step, with its will, or a group: others have their turn in between."""
        for together in steps(states, ops):
            for taken in together:
                if taken.key[:1] == GROUP_KEY:
                    self._take_group(taken)
                elif taken.key[:1] == SESSION_KEY:
                    self._take_session(taken)
            yield

    def _take_group(self, taken: Taken) -> None:
        group = None if taken.state is None else decode_group(taken.state)
        for op in taken.ops:
            group = fold_group(group, op)
        if group is not None:
            self._restore_group(taken.key, group)

    def _take_session(self, taken: Taken) -> None:
        """A session, or a will that stands alone."""
        state = None if taken.state is None else decode_state(taken.state)
        for op in taken.ops:
            state = session_ops.fold(state, op)
        if state is None:
            return
        if is_will_key(taken.key):
            self._restore_will(taken.key, state)
        elif state.client_id not in self.sessions.by_client_id:
            self._restore_session(state)

    def _restore_session(self, state: SessionState) -> None:
        sessions = self.sessions
        session = Session(state.client_id, sessions.limits, sessions.counters)
        if state.connected:
            session.dup_below = self.heads  # it may have got more than was written down
        self._settle_epoch(state)
        session_image.restore(state, session)
        session.keeper = self.keeper
        sessions.by_client_id[state.client_id] = session
        for filter, record in state.subscriptions.items():
            self.subscriptions.restore(session, filter, record)
            if record.replaying:
                self.replays.put_aside(session.subscriptions[filter])
        if state.window:
            self._restore_via(session, state)
        session.strict = is_strict(session)
        if session.strict:
            session.dup_below = None  # nothing went out that was not written down before
        origin = origin_of(session.client_id, session.connect_number)
        if origin in self.origins:
            session.will = None  # it went out, the node died before it could write that down
            self._regain(self.origins[origin], lambda: self._will_is_out(session, state.connect_number))
        elif session.will is not None:
            self.origins[origin] = None
        sessions.resume_timers(session, self.now)
        if self._restore_open_ids(session, state):
            self.keeper.write_progress(session)  # the next watermark is behind where they were found

    def _will_is_out(self, session: Session, connect_number: int) -> None:
        if session.kept and session.connect_number == connect_number:  # else its record has no such will any more
            self.keeper.change(session, session_ops.will_dropped())

    def _settle_epoch(self, state: SessionState) -> None:
        """What was so when the node died: how far it was, since when it is away, whether its will is due."""
        count = len(self.heads)
        cursors = (state.cursors + [0] * count)[:count]
        if state.live:
            epoch = self.meta.epochs.get(state.live)
            if epoch is not None and epoch.watermark:
                cursors = [max(pair) for pair in zip(cursors, epoch.watermark, strict=True)]
        state.cursors = [min(pair) for pair in zip(cursors, self.heads, strict=True)]
        if state.connected:
            epoch = self.meta.epochs.get(state.connected)
            state.disconnected_at = epoch.seen_at if epoch is not None else state.created_at
            if state.will is not None:
                state.will_due = state.disconnected_at + state.will.delay
            state.connected = 0

    def _restore_open_ids(self, session: Session, state: SessionState) -> bool:
        """Ids that only the journal knows to be open, and without those of messages that it does not have after all;
        whether there are any of both."""
        open_at = session.open_at or {}
        gone = [each for each, position in open_at.items() if not self._is_stored(position)]
        for packet_id in gone:
            del open_at[packet_id]
            if session.open_ids is not None:
                session.open_ids.release(packet_id.to_bytes(2, "big"))
        found = bool(gone)
        for packet_id, position, group in self.open_ids.get(state.client_id, ()):
            if session.open_at is not None and session.open_at.get(packet_id) == position:
                self._regain(group, lambda: None)  # written down by a start that may have got no further
                continue
            shard, offset = position >> OFFSET_BITS, position & ((1 << OFFSET_BITS) - 1)
            if position in state.released or (state.seen and offset < state.seen[shard]):
                continue
            if session.open_at is None:
                session.open_at = {}
            if session.open_ids is None:
                session.open_ids = OpenIds()
            if not session.open_ids.is_open(packet_id):
                session.open_ids.open(packet_id.to_bytes(2, "big"))
            session.open_at[packet_id] = position
            found = True
            self._regain(group, lambda: None)
        if session.open_at:
            session.doubtful_ids = set(session.open_at)
        return found

    def _is_stored(self, position: int) -> bool:
        return position < 0 or position & ((1 << OFFSET_BITS) - 1) < self.heads[position >> OFFSET_BITS]

    def _restore_via(self, session: Session, state: SessionState) -> None:
        replays = {each.key: each for each in session.sharing or () if isinstance(each, JournalReplay)}
        for entry in state.window.values():
            if entry.group in replays:
                came_by: object = replays[entry.group]
                if entry.position >= 0:
                    replays[entry.group].at_client.add(entry.position)
            elif entry.group and (reader := self.keeper.group_readers.get(entry.group)) is not None:
                came_by = reader.group
            else:
                continue
            if session.via is None:
                session.via = {}
            session.via[entry.packet_id] = came_by

    def _restore_will(self, key: bytes, state: SessionState) -> None:
        """A will that stands alone: of a transient session that died with the node, or on its way out."""
        if state.will is None or self.wills.stands(key) or self.keeper.table is None:
            return
        origin = origin_of(state.client_id, state.connect_number)
        if origin in self.origins:
            table = self.keeper.table
            self._regain(self.origins[origin], lambda: table.change(key, session_ops.ended()))
            return
        self.origins[origin] = None  # its session may have been found too
        self.wills.publish_standing(key, state, Will.of(state.will), self.now)

    def _regain(self, group: Group | None, done: Callable[[], None]) -> None:
        """The journal has a message, and nobody will send it again; if it is a retained one, its topic may not have it.
        Until the store has that, the next start has to find the message, too."""
        if group is None or not group.retain:
            done()
            return
        floor = b"retained\0" + group.topic
        self.keeper.floors[floor] = self.looked_from

        def stored() -> None:
            self.keeper.floors.pop(floor, None)
            done()

        self.regain(self.retained.get(group.topic, group), stored)

    def put(self, key: bytes, body: bytes) -> None:
        """A session or a group from elsewhere, as a backup has it; ``complete`` when all are there."""
        table = self.keeper.table
        assert table is not None
        if key[:1] == GROUP_KEY:
            group = decode_group(body)
            table.change(key, meta_record.group(group))
            self._restore_group(key, group)
        elif key[:1] == SESSION_KEY:
            state = decode_state(body)
            table.change(key, session_ops.state(state))
            self.heads = self.keeper.journaling.heads()
            self._restore_session(state)

    def complete(self) -> None:
        """All parts are there: shared groups know all their members."""
        for key, reader in [*self.keeper.group_readers.items()]:
            state = self.groups.get(key)
            epoch = None if state is None else self.meta.epochs.get(state.live)
            reader.begin(state, () if epoch is None else epoch.watermark, self.heads)
            self.keeper.group_needs_reader(reader.group)  # all its kept members may have left meanwhile
        self.keeper.floors.pop(b"loading", None)
        self.groups.clear()
        self.open_ids.clear()
        self.origins.clear()
        self.retained.clear()

    def _restore_group(self, key: bytes, state: GroupState) -> None:
        early = self.groups.get(key)  # what members have left while this was loaded
        if early is not None:
            left = fold_group(state, meta_record.group_left(early.returned, early.taken))
            assert left is not None
            state = left
        self.groups[key] = state

    # -- parts out

    def encode_part(self, part: int) -> Iterator[tuple[bytes, bytes]]:
        if part == META_PART:
            yield META_KEY, encode_meta(self.meta)
            return
        clients: ClientTable = self.sessions.by_client_id
        for client_id in [*clients.parts[part]]:
            session = clients.parts[part].get(client_id)
            if session is not None and session.kept:
                state = session_image.state_of(session, self.keeper.epoch, self.keeper.journaling.heads())
                yield SESSION_KEY + client_id.encode(), encode_state(state)
        for key, state in self.wills.standing(part):
            yield key, encode_state(state)
        # not as they are: a cursor must not be ahead of what the members' own records have
        written = {key: reader.written for key, reader in self.keeper.group_readers.items()}
        for key, group in {**written, **self.groups}.items():
            if group is not None and part_of(key) == part:
                yield key, encode_group(group)

"""A shared group with kept members: a reader of the journal of its own, so that it queues while all members are away.

It is live or behind as a session is. What it hands out is in the window of the member that got it; what a member leaves
unfinished at QoS 1 comes back and goes to another first [MQTT-4.8.2-5].

Written down, behind the members' own records: its cursors, what came back, and what transient members have (nothing
else is known of those after a crash). A position that a member has already, and that the group has not written down as
read, is left with the member.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from brookmq.broker.inflight import PUBACK_DUE
from brookmq.broker.publication import Publication
from brookmq.broker.reading import AT_HEAD, FULL, LOADING, group_at, read_batch
from brookmq.broker.shared import SharedGroup
from brookmq.store import meta_record
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.group import Group
from brookmq.store.session_state import OFFSET_BITS, GroupState, group_key
from brookmq.store.table.interface import Table

if TYPE_CHECKING:
    from brookmq.broker.keeping import Keeper

PICK_ONCE = frozenset({"sticky", "hash_client", "hash_topic"})  # strategies that give a whole run to one member
BATCHES_IN_A_TURN = 8
OFFSET_MASK = (1 << OFFSET_BITS) - 1


class GroupReader:
    def __init__(self, group: SharedGroup, keeper: Keeper) -> None:
        self.group = group
        self.keeper = keeper
        self.journaling = keeper.journaling
        self.key = group_key(group.name, group.filter.encode())
        self.wanted = frozenset({keeper.index.filter_id(group.filter.encode())})
        self.live = keeper.complete
        self.cursors: list[int] | None = None if self.live else keeper.journaling.heads()
        self.returned: deque[int] = deque()
        self.with_members: set[int] = set()  # positions that members had when the node started
        self.taken: set[int] = set()  # of these, those of members that are no more
        self.ready = keeper.complete
        self.loading = False
        self.busy = False
        self.strict_sent = False
        self.changed = False  # since it was written down
        self.written: GroupState | None = None

    def begin(self, state: GroupState | None, epoch_watermark: tuple[int, ...], heads: list[int]) -> None:
        """All members are known: where the group is after a start."""
        self.ready = True
        self.written = state
        if state is None or not state.cursors:  # its first member came while the node was loading, and died with it
            for member in self.group.members:
                if member.since is not None and self.cursors is not None:
                    self.cursors = [min(pair) for pair in zip(self.cursors, member.since, strict=True)]
        else:
            cursors = (list(state.cursors) + [0] * len(heads))[: len(heads)]
            if state.live and epoch_watermark:
                cursors = [max(pair) for pair in zip(cursors, epoch_watermark, strict=True)]
            self.cursors = [min(pair) for pair in zip(cursors, heads, strict=True)]
        if state is not None:
            self.returned = deque(dict.fromkeys([*self.returned, *state.returned]))
            self.taken.update(state.taken)
        self.returned = deque(each for each in self.returned if not self._comes(each))
        self.taken = {each for each in self.taken if self._comes(each)}
        self.with_members |= self.taken
        for member in self.group.members:
            window = member.session.window
            if window is not None and member.session.via:
                for entry in window.in_flight():
                    if member.session.via.get(entry.packet_id) is self.group:
                        self.with_members.add(entry.position)
        self.pump()

    # -- live

    def stored(self, shard: int, group: Group) -> None:
        if not self.live:
            return
        self.changed = True
        taken = self._hand(shard, group, 0)
        if taken < group.count:
            self.cursors = self.journaling.heads()
            self.cursors[shard] = group.first + taken
            self.live = False
        if self.strict_sent:
            # not now: the rest of the batch is not handed out, and the ends of the shards are behind it
            self.keeper.turn.call_soon(self._write_down_if_strict)

    # -- behind

    def pump(self) -> None:
        """A member is there or has room: hand out what waits."""
        if self.busy or self.loading or not self.ready:
            return
        self.busy = self.changed = True
        if self._hand_returned() and not self.live:
            self._catch_up()
        self.busy = False
        self._write_down_if_strict()
        if not self.group.kept_count and self.group.reader is self:
            self.keeper.group_needs_reader(self.group)

    def drained(self) -> bool:
        """Nothing waits here: without kept members the group needs no reader then."""
        return self.live and not self.returned

    def _catch_up(self) -> None:
        cursors = self.cursors
        assert cursors is not None
        batches = 0
        while True:
            at_head = 0
            for shard in range(len(cursors)):
                outcome = read_batch(
                    self.keeper.journal, shard, cursors, self.wanted, self._hand, self._go_on, self._lost
                )
                if outcome == LOADING:
                    self.loading = True
                if outcome in (LOADING, FULL):
                    return
                at_head += outcome == AT_HEAD
            if at_head == len(cursors):
                self.live = True
                self.cursors = None
                return
            batches += 1
            if batches >= BATCHES_IN_A_TURN:
                self.loading = True
                self.keeper.turn.call_soon(self._go_on)
                return

    def _go_on(self) -> None:
        self.loading = False
        self.pump()

    def _lost(self, count: int) -> None:
        self.keeper.lost(f"the shared group {self.group.name}", count)

    def _hand_returned(self) -> bool:
        """What members left unfinished, first; True when all of it is handed out."""
        while self.returned:
            position = self.returned[0]
            if position in self.with_members:  # it was handed out again, and the node died before that was written
                self.with_members.discard(position)
                self.returned.popleft()
                continue
            shard, offset = position >> OFFSET_BITS, position & OFFSET_MASK
            found = self.keeper.journal.look(shard, offset, None)
            if found is None:
                self.loading = True
                self.keeper.journal.load(shard, offset, None, self._go_on)
                return False
            if isinstance(found, Batch) and found.base <= offset:
                group = group_at(found, offset)
                if self._to_member(self.journaling.open(group), shard, group, offset - group.first, 1) == 0:
                    return False
            else:
                self._lost(1)
            self.returned.popleft()
        return True

    def _comes(self, position: int) -> bool:
        """Whether it is to be read from the journal: a member had it that is further than the group's cursors, which a
        crash set back."""
        return self.cursors is not None and position & OFFSET_MASK >= self.cursors[position >> OFFSET_BITS]

    def leave(self, position: int) -> None:
        """A member has ended that was sent this at QoS 2: nobody else gets it. [MQTT-4.8.2-4]"""
        if not self.ready or self._comes(position):
            self.taken.add(position)
            self.with_members.add(position)

    def give_back(self, position: int) -> None:
        """A member has ended that has not finished this."""
        self.with_members.discard(position)
        if not self.ready or not self._comes(position):
            self.returned.append(position)
        self.changed = True
        if not self.loading:
            self.loading = True
            self.keeper.turn.call_soon(self._go_on)

    # -- to members

    def _hand(self, shard: int, group: Group, first: int) -> int:
        """Messages of a group from ``first`` on; up to where members took them."""
        if group.qos == 0 or not self._matches(group):
            return group.count
        publication = self.journaling.open(group)
        index = first
        while index < group.count:
            position = shard << OFFSET_BITS | (group.first + index)
            if self.with_members and position in self.with_members:
                self.with_members.discard(position)
                self.taken.discard(position)
                index += 1
                continue
            step = group.count - index if self.group.strategy in PICK_ONCE and not self.with_members else 1
            taken = self._to_member(publication, shard, group, index, step)
            if taken == 0:
                return index
            index += taken
        return index

    def _matches(self, group: Group) -> bool:
        return self.live or self.group in self.keeper.index.audience(group.topic).stored_groups

    def _to_member(self, publication: Publication, shard: int, group: Group, index: int, step: int) -> int:
        """Up to ``step`` messages to one member that takes them; 0 when there is none."""
        refused: list[object] = []
        position = shard << OFFSET_BITS | (group.first + index)
        while True:
            member = self.group.pick(group.client_id, group.topic, refused)
            if member is None or member.session.outlet is None:
                return 0
            session = member.session
            qos = min(member.qos, group.qos)
            retain = group.retain and member.retain_as_published
            plain = group.plain and session.plain and member.plain
            if qos == 0:
                session.send(publication.message(index), 0, retain, member.properties, None, self.keeper.now)
                taken = 1
            elif plain and publication.run.largest + 4 <= session.packet_size_max:
                taken = session.take_run(publication, qos, index, step, position, self.group)
            else:
                taken = session.take_message(
                    publication.message(index), qos, retain, member.properties, self.group, position, False,
                    self.keeper.now,
                )  # fmt: skip
            if taken:
                self.strict_sent = self.strict_sent or session.strict
                return int(taken)
            refused.append(member)

    # -- written down

    def state(self) -> GroupState:
        heads = self.journaling.heads()
        unfinished = [*self.returned]
        for member in self.group.members:
            session = member.session
            if not session.kept and session.via and session.window is not None:
                via = session.via
                entries = session.window.in_flight()
                ours = [each for each in entries if via.get(each.packet_id) is self.group]
                unfinished.extend(each.position for each in ours if each.state == PUBACK_DUE)  # [MQTT-4.8.2-4]
        live = self.keeper.epoch if self.live else 0
        cursors = heads if self.cursors is None else self.cursors
        return GroupState(live, tuple(cursors), tuple(unfinished), tuple(sorted(self.taken)))

    def write_down(self) -> None:
        """Behind what its members have: their windows must have what its cursors have passed."""
        table: Table | None = self.keeper.table
        if table is None or self.keeper.group_readers.get(self.key) is not self:
            return
        if not self.ready:
            if self.returned or self.taken:
                op = meta_record.group_left([*self.returned], sorted(self.taken))
                table.change(self.key, op)
                self.keeper.on_group_left(self.key, op)
        else:
            for member in self.group.members:  # what they have of it and is not written yet comes first
                if member.session.kept and member.session.moved:
                    member.session.moved = False
                    self.keeper.write_progress(member.session)
            self.changed = False
            self.written = self.state()
            table.change(self.key, meta_record.group(self.written))

    def _write_down_if_strict(self) -> None:
        """Behind the records of the members: after a crash in between, the members' windows tell."""
        if self.strict_sent:
            self.strict_sent = False
            self.write_down()

    def ended(self) -> None:
        if self.keeper.table is not None:
            self.keeper.table.change(self.key, meta_record.group_ended())

"""``$replay/…``: a subscription that reads the journal for itself, from some point of the past on and then live.

It is one of its session's subscriptions, but stands in no topic index: all that it hands out comes from the journal,
when it is stored, with its place there as user properties. ``since`` has its cursors, so that they are written down
with the subscription. It sees what was captured, and nothing else that may be in the journal.

It goes on as far as the session takes something: QoS 1 and 2 as its window has room, QoS 0 as its outlet has.

Through a crash: of a lazy session it goes on where it was written down last, so that some come again (DUP). Of a strict
one the cursors are written behind each step's packet ids; what is in the restored window already is left out, so that
nothing comes twice.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final
from zlib import crc32

from brookmq.base.message import Message
from brookmq.broker.inflight import InFlight
from brookmq.broker.publication import Delivery, Publication
from brookmq.broker.reading import AT_HEAD, FULL, LOADING, read_batch
from brookmq.broker.replay_filter import parse_replay
from brookmq.broker.session import Session
from brookmq.broker.subscription import Subscription
from brookmq.mqtt.topics import has_wildcard, matches
from brookmq.store.journal.group import Group
from brookmq.store.session_state import OFFSET_BITS

if TYPE_CHECKING:
    from brookmq.broker.journal_replays import JournalReplays

KEY: Final = b"r"  # + a digest of the filter: names the replay in the entries of a session's window
BATCH_COST: Final = 20  # what looking through a batch counts for, in messages
TOPICS_REMEMBERED: Final = 1024
OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1
QUIET_SECONDS: Final = 60.0  # after which cursors that moved without sending anything are written down, too

_PARTITION: Final = b"\x26\x00\x09partition"
_OFFSET: Final = b"\x26\x00\x06offset"
_PUBLISHED_AT: Final = b"\x26\x00\x0cpublished_at"


class JournalReplay(Subscription):
    """Invariants: ``since`` is there once it has begun; ``loading`` while somebody will call ``_go_on``."""

    __slots__ = (
        "_left",
        "_looking",
        "_matching",
        "_sent",
        "_turn",
        "at_client",
        "begun",
        "dup_below",
        "granted",
        "key",
        "loading",
        "name",
        "queued",
        "replays",
        "shards",
        "start",
        "written_at",
    )

    reader = None  # unlike a shared group it takes nothing back from a session that ends

    def __init__(
        self,
        replays: JournalReplays,
        session: Session,
        name: str,
        indexed: bytes,
        qos: int,
        no_local: bool,
        retain_as_published: bool,
        retain_handling: int,
        identifiers: tuple[int, ...],
    ) -> None:
        super().__init__(session, indexed, qos, no_local, retain_as_published, retain_handling, identifiers)
        self.replays = replays
        self.name = name  # as the client subscribed
        self.start = parse_replay(name)
        self.key = KEY + blake2b(name.encode(), digest_size=8).digest()
        self.granted = False  # the client was told
        self.begun = False
        self.loading = False
        self.queued = False  # among those that get their turn
        self.shards: tuple[int, ...] = ()  # that its topics can be in
        self.at_client: set[int] = set()  # positions at or behind the cursors that the restored window has
        self.dup_below: list[int] | None = None  # per shard: what is below may have been sent before a crash
        self.written_at = 0.0
        self._turn = 0  # index in ``shards``: which is the next to be read
        self._looking = 0  # shards whose place in time is being looked up
        self._left = 0  # messages that it may still send in this step
        self._sent = 0  # messages in this step
        self._matching: dict[bytes, bool] = {}  # by topic

    def take_over(self, old: JournalReplay) -> None:
        """The client has subscribed to the same again: it goes on, with other options perhaps."""
        self.since = old.since
        self.at_client = old.at_client
        self.dup_below = old.dup_below

    def grant(self) -> None:
        """The client knows: it may begin."""
        self.granted = True
        self.pump()

    def pump(self) -> None:
        """The session has room, or there is something new."""
        if self.granted and not self.loading:
            self.replays.schedule(self)

    # -- where it begins

    def _begin(self) -> None:
        heads = self.replays.journaling.heads()
        count = len(heads)
        self.shards = tuple(range(count)) if has_wildcard(self.filter) else (crc32(self.filter) % count,)
        if self.since is not None:
            known = (self.since + [0] * count)[:count]
            self.since = since = [min(pair) for pair in zip(known, heads, strict=True)]
            self.at_client = {each for each in self.at_client if each & OFFSET_MASK >= since[each >> OFFSET_BITS]}
        elif self.start.time is not None:
            self._look_up(self.start.time, heads)
            return
        else:
            self.since = self._places(heads)
        self.begun = True

    def _places(self, heads: list[int]) -> list[int]:
        start = self.start
        named = dict(start.offsets) if start.offset is None else dict.fromkeys(self.shards, start.offset)
        first_offset = self.replays.journal.first_offset
        return [max(first_offset(shard), min(named.get(shard, 0), head)) for shard, head in enumerate(heads)]

    def _look_up(self, time: float, found: list[int]) -> None:
        """``found`` has the ends: right for shards that it does not read."""
        self.loading = True
        self._looking = len(self.shards)

        def take(shard: int, offset: int) -> None:
            found[shard] = offset
            self._looking -= 1
            if self._looking == 0:
                self.since = found
                self.begun = True
                self._go_on()

        for each in self.shards:
            self.replays.journal.find_time(each, time, lambda offset, shard=each: take(shard, offset))

    # -- reading

    def step(self, most: int) -> int:
        """A batch of each shard, and no more than so many messages; returns what that cost."""
        if self.ended or self.loading or self.session.outlet is None or self.replays.journal is None:
            return 1
        if not self.begun:
            self._begin()
        cursors = self.since
        if cursors is None:
            return 1  # its place in time is being looked up
        before = sum(cursors)
        self._left, self._sent = most, 0
        cost = self._read(cursors)
        self._write_down(sum(cursors) != before)
        return cost + self._sent

    def _read(self, cursors: list[int]) -> int:
        at_head = batches = 0
        count = len(self.shards)
        for _ in range(count):
            shard = self.shards[self._turn]
            outcome = read_batch(self.replays.journal, shard, cursors, None, self._hand, self._go_on, self._lost)
            batches += outcome != AT_HEAD
            if outcome == LOADING:
                self.loading = True
                break
            if outcome == FULL:
                if self._left <= 0:
                    self.replays.schedule(self)  # others first; else the session calls when it has room
                break
            at_head += outcome == AT_HEAD
            self._turn = (self._turn + 1) % count
        else:
            if at_head == count:
                self.replays.follow(self)
            else:
                self.replays.schedule(self)
        return 1 + BATCH_COST * batches

    def _go_on(self) -> None:
        self.loading = False
        self.pump()

    def _lost(self, count: int) -> None:
        self.replays.keeper.lost(self.session.client_id, count)

    def _matches(self, topic: bytes) -> bool:
        known = self._matching.get(topic)
        if known is None:
            if len(self._matching) >= TOPICS_REMEMBERED:
                self._matching.clear()
            known = self._matching[topic] = matches(self.filter, topic)
        return known

    # -- handing out

    def _hand(self, shard: int, group: Group, first: int) -> int:
        """Messages of a group from ``first`` on; up to where they were taken."""
        if not group.captured or not self._matches(group.topic):
            return group.count
        if self.start.time is not None and group.published_at < self.start.time:
            return group.count
        session = self.session
        if self.no_local and session.client_id == group.client_id:
            return group.count  # [MQTT-3.8.3-3]
        publication = self.replays.journaling.open(group)
        qos = min(self.qos, group.qos)
        if qos and not session.version5 and self._takes_runs(publication, shard, group, first):
            position = shard << OFFSET_BITS | (group.first + first)
            via = self if session.kept else None
            taken = session.take_run(publication, qos, first, min(group.count - first, self._left), position, via)
            self._left -= taken
            self._sent += taken
            return first + taken
        for index in range(first, group.count):
            if self._left <= 0 or not self._send(publication, shard, group, index, qos):
                return index
        return group.count

    def _takes_runs(self, publication: Publication, shard: int, group: Group, first: int) -> bool:
        """MQTT 3 has no properties, so that messages can go out as they came."""
        session = self.session
        dup = self.dup_below is not None and group.first + first < self.dup_below[shard]
        plain = group.plain and session.plain and not self.at_client and not dup
        return plain and publication.run.largest + 4 <= session.packet_size_max

    def _send(self, publication: Publication, shard: int, group: Group, index: int, qos: int) -> bool:
        session = self.session
        offset = group.first + index
        position = shard << OFFSET_BITS | offset
        if position in self.at_client:
            self.at_client.discard(position)
            return True
        retain = group.retain and self.retain_as_published  # [MQTT-3.3.1-12, -13]
        now = self.replays.journaling.now
        message = self._message(publication, shard, group, index)
        if qos == 0:
            if not self.replays.has_room(session):
                return False
            session.send(message, 0, retain, self.properties, None, now)
        else:
            dup = self.dup_below is not None and not session.strict and offset < self.dup_below[shard]
            via = self if session.kept else None
            if not session.take_message(message, qos, retain, self.properties, via, position, dup, now):
                return False
        self._left -= 1
        self._sent += 1
        return True

    def _message(self, publication: Publication, shard: int, group: Group, index: int) -> Message:
        """The message, and its place in the journal behind the properties that its publisher gave it."""
        message = publication.message(index)
        if not self.session.version5:
            return message
        return Message(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.properties + place_properties(shard, group.first + index, group.published_at),
            message.expires_at,
            message.published_at,
            message.client_id,
            message.username,
        )

    def again(self, shard: int, group: Group, index: int, entry: InFlight) -> Delivery:
        """A message that the session's window has, to be sent again."""
        message = self._message(self.replays.journaling.open(group), shard, group, index)
        retain = group.retain and self.retain_as_published
        return Delivery(message, entry.state, retain, self.properties, self, entry.packet_id)

    # -- written down

    def _write_down(self, advanced: bool) -> None:
        session = self.session
        keeper = session.keeper
        if keeper is None:
            return
        if self._sent and session.strict:
            if session.intercept is None:
                keeper.write_replays(session)
            else:
                keeper.write_progress(session)  # packet ids that wait for plugins are not in the log yet
        elif not session.moved and (self._sent or (advanced and keeper.now - self.written_at >= QUIET_SECONDS)):
            keeper.note_moved(session)


def place_properties(partition: int, offset: int, published_at: float) -> bytes:
    """Where a message stands in the journal, and since when, as user properties. The time is cut, not rounded: a replay
    from there on begins with this message."""
    seconds, milliseconds = divmod(int(published_at * 1000), 1000)
    return b"".join(
        (
            _PARTITION,
            _text(b"%d" % partition),
            _OFFSET,
            _text(b"%d" % offset),
            _PUBLISHED_AT,
            _text(b"%d.%03d" % (seconds, milliseconds)),
        )
    )


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value

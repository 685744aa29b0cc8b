"""A backup from one node into another: the same values, the same sessions with the same messages to come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from brookmq.base.counters import Counters
from brookmq.base.errors import OperationError
from brookmq.base.message import Message
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.durable_values import DurableValues
from brookmq.broker.outlet import Turn
from brookmq.broker.replay import Replays
from brookmq.broker.retained import RetainedStore
from brookmq.node.backup import Backup, Kept
from brookmq.store.backup import file_format as file
from brookmq.store.backup.file_format import BackupReader, BadBackup
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.journal import Journal
from brookmq.store.journal.shard import Shard
from brookmq.store.memory_log import MemoryLog
from brookmq.store.memory_table import MemoryTable
from brookmq.store.meta_record import decode_group, encode_group
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import (
    GROUP_KEY,
    GroupState,
    SessionState,
    SubscriptionRecord,
    WindowEntry,
    group_key,
    position_of,
    session_key,
)
from brookmq.store.table.interface import Entry, part_of
from brookmq.store.table.states import KeyedStates
from tests.store.journal.groups import run_group

SHARDS = 2
EPOCH = 4


class Stored:
    """A ticket that can be waited for."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def settle(self, reason: int, /) -> None:
        assert reason == 0
        self.event.set()


class MemoryJournal:
    """Shards over logs in memory, read from the batches that were stored."""

    def __init__(self, shards: int = SHARDS) -> None:
        loop = asyncio.get_running_loop()
        self.batches: list[list[Batch]] = [[] for _ in range(shards)]
        self.shards = [
            Shard(
                number,
                MemoryLog(loop.call_soon).append,
                loop.call_later,
                loop.time,
                self.batches[number].append,
            )
            for number in range(shards)
        ]
        self.unread = True  # the first look at a batch finds that it has to be loaded

    def first_offset(self, shard: int) -> int:
        return self.batches[shard][0].base if self.batches[shard] else 0

    def look(self, shard: int, offset: int, wanted: None) -> Batch | int | None:
        if self.unread:
            return None
        self.unread = True
        return next((batch for batch in self.batches[shard] if batch.end > offset), self.shards[shard].stored)

    def load(self, shard: int, offset: int, wanted: None, wake: Callable[[], None]) -> None:
        self.unread = False
        asyncio.get_running_loop().call_soon(wake)

    def payloads(self, shard: int, offset: int) -> list[bytes]:
        """What a reader at an offset has still to get."""
        groups = [group for batch in self.batches[shard] for group in batch.groups]
        return [group.packets for group in groups if group.first >= offset]


class MemorySessions:
    """Sessions as states, away or connected."""

    def __init__(self, table: MemoryTable, journal: MemoryJournal) -> None:
        self.states: dict[bytes, bytes] = {}
        self.held: list[bool] = []
        self.table = table
        self._journal = journal
        table.on_part = self._on_part
        table.encode_part = self._encode_part

    def _on_part(self, part: int, states: list[Entry], ops: list[Entry]) -> None:
        raise AssertionError("a new table has nothing to load")

    def _encode_part(self, part: int) -> list[Entry]:
        return [(key, state) for key, state in self.states.items() if part_of(key) == part]

    def count(self) -> int:
        return sum(key[:1] != GROUP_KEY for key in self.states)

    async def end_all(self) -> None:
        self.states.clear()

    def hold(self, refusing: bool) -> None:
        self.held.append(refusing)

    def put(self, key: bytes, state: bytes) -> None:
        self.states[key] = state
        self.table.change(key, b"\x01\x01" + state[1:])

    async def stored(self) -> None:
        stored = asyncio.Event()
        self.table.change(b"", b"", stored.set)
        await stored.wait()

    def ends(self, epoch: int) -> Sequence[int]:
        assert epoch in (0, EPOCH)
        return [shard.stored for shard in self._journal.shards]

    def session(self, client_id: str) -> SessionState:
        return decode_state(self.states[session_key(client_id)])


class MemoryKept:
    """All that a node keeps, in memory."""

    def __init__(self, shards: int = SHARDS, configuration: str = "x = 1\n") -> None:
        call_soon = asyncio.get_running_loop().call_soon
        self.retained = RetainedStore()
        self.delayed = DelayedMessages(10)
        replays = Replays(self.retained, Turn(call_soon, Counters()))
        self.values = DurableValues(MemoryTable(call_soon), self.retained, self.delayed, replays)
        self.values.begin()
        self.journal = MemoryJournal(shards)
        table = MemoryTable(call_soon, waiting_bytes_max=1000)
        self.sessions = MemorySessions(table, self.journal)
        self.pipeline = KeyedStates(MemoryTable(call_soon), call_soon)
        self.pipeline.begin()
        kept = Kept(self.values, table, self.sessions, cast("Journal", self.journal), self.pipeline)
        self.backup = Backup("n1", configuration, kept)

    def retain(self, topic: bytes, payload: bytes) -> None:
        assert self.retained.set(Message(topic, payload, 1, True, b"", 0.0, 1.0, "publisher"), 1.0)

    async def publish(self, shard: int, *payloads: bytes) -> None:
        stored = Stored()
        for payload in payloads:
            self.journal.shards[shard].add(run_group(payload=payload), stored)
        await stored.event.wait()

    async def exported(self, *, journal: bool = True) -> bytes:
        return b"".join([piece async for piece in await self.backup.export(journal=journal)])

    async def imports(self, data: bytes, *, replace: bool = False, size: int = 1000) -> Any:
        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(data), size):
                yield data[at : at + size]

        return await self.backup.restore(pieces(), replace=replace)


def journal_first(data: bytes) -> bytes:
    """A file as it is sent: its journal before its sessions."""
    reader = BackupReader()
    parts: dict[int, bytes] = {}
    head, at = b"", 0
    for place in range(len(data)):
        for event in reader.feed(data[place : place + 1]):
            if isinstance(event, file.Head):
                head, at = data[: place + 1], place + 1
            elif isinstance(event, file.SectionEnd):
                parts[event.kind], at = data[at : place + 1], place + 1
    order = (file.CONFIGURATION, file.VALUES, file.PIPELINE, file.JOURNAL, file.SESSIONS)
    return head + b"".join(parts.get(kind, b"") for kind in order) + file.end()


def checksums(data: bytes) -> dict[int, str]:
    reader = BackupReader()
    return {event.kind: event.checksum for event in reader.feed(data) if isinstance(event, file.SectionEnd)}


def away_session(client_id: str, cursors: list[int]) -> SessionState:
    state = SessionState(client_id)
    state.expiry, state.cursors = 3600.0, cursors
    state.subscriptions = {"a/#": SubscriptionRecord("a/#", b"a/#", 1)}
    return state


async def filled() -> MemoryKept:
    """A node with something of everything."""
    node = MemoryKept()
    for number in range(300):
        node.retain(b"room/%d" % number, b"%d" % number)
    node.delayed.add(Message(b"later", b"x", 1, client_id="c"), 5e9)
    await node.publish(0, b"a0", b"a1", b"a2")
    await node.publish(1, b"b0", b"b1")
    away = away_session("away", [1, 2])
    away.window = {1: WindowEntry(1, 1, position_of(0, 0)), 2: WindowEntry(2, 2, position_of(1, 1))}
    live = away_session("live", [0, 0])
    live.connected = live.live = EPOCH
    node.sessions.states = {
        session_key("away"): encode_state(away),
        session_key("live"): encode_state(live),
        b"wtransient": b"a will stays with its connection",
        group_key("g", b"a/#"): encode_group(GroupState(EPOCH, (1, 0), (position_of(0, 2),))),
    }
    return node


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await work()

    asyncio.run(bounded())


def test_the_same_sessions_have_the_same_messages_to_come() -> None:
    async def work() -> None:
        node = await filled()
        data = await node.exported()
        other = MemoryKept()
        result = await other.imports(journal_first(data))
        assert (result.values, result.sessions, result.messages, result.messages_left) == (301, 2, 5, 0)
        assert result.same_configuration
        assert other.values.stored == other.values.taken
        assert other.sessions.table.waiting_bytes == 0
        assert other.sessions.held == [True, False]
        away, live = other.sessions.session("away"), other.sessions.session("live")
        for shard, cursor in enumerate(away.cursors):
            before = node.sessions.session("away").cursors[shard]
            assert other.journal.payloads(shard, cursor) == node.journal.payloads(shard, before)
        assert [other.journal.payloads(shard, live.cursors[shard]) for shard in range(SHARDS)] == [[], []]
        assert [entry.position for entry in away.window.values()] == [position_of(0, 0), position_of(1, 1)]
        group = decode_group(other.sessions.states[group_key("g", b"a/#")])
        assert group == GroupState(0, (3, 2), (position_of(0, 2),))
        assert b"wtransient" not in other.sessions.states
        assert other.delayed.count == 1
        again = checksums(await other.exported(journal=False))
        sections = (file.CONFIGURATION, file.SESSIONS)
        assert [again[kind] for kind in sections] == [checksums(data)[kind] for kind in sections]

    run(work)


def test_retained_messages_are_the_same_by_checksum() -> None:
    async def work() -> None:
        node, other = MemoryKept(), MemoryKept()
        for number in range(300):
            node.retain(b"room/%d" % number, b"%d" % number)
        node.retain(b"$SYS/x", b"1")
        other.retain(b"room/7", b"another value")
        data = await node.exported(journal=False)
        await other.imports(data, size=17)
        other.values.table.check_invariants()  # type: ignore[attr-defined]
        assert checksums(await other.exported(journal=False)) == checksums(data)

    run(work)


def test_what_the_pipeline_keeps_but_no_readers_of_another_journal() -> None:
    async def work() -> None:
        node, other = await filled(), MemoryKept()
        assert file.PIPELINE not in checksums(await node.exported())
        for key in (b"qquery\xff\0\0\0\1", b"rrule", b"sschema", b"nreader"):
            node.pipeline.put(key, b"\x01" + key)
        other.pipeline.put(b"rold", b"\x01")
        data = journal_first(await node.exported())
        result = await other.imports(data)
        assert result.pipeline == 3
        assert other.pipeline.table.waiting_bytes == 0
        assert [key for key, _ in other.pipeline.items(b"")] == [b"qquery\xff\0\0\0\1", b"rold", b"rrule", b"sschema"]
        assert other.pipeline.get(b"rrule") == b"\x01rrule"
        await other.imports(data, replace=True)
        assert other.pipeline.get(b"rold") is None

    run(work)


def test_messages_get_other_offsets_in_a_journal_that_has_some_already() -> None:
    async def work() -> None:
        node, other = await filled(), MemoryKept()
        await other.publish(0, b"own0", b"own1")
        await other.imports(journal_first(await node.exported()))
        away = other.sessions.session("away")
        assert away.cursors == [3, 2]
        assert other.journal.payloads(0, 3) == node.journal.payloads(0, 1)
        assert away.window[1].position == position_of(0, 2)

    run(work)


def test_without_the_journal_what_was_sent_and_not_acknowledged_is_counted() -> None:
    async def work() -> None:
        node, other = await filled(), MemoryKept(configuration="x = 2\n")
        result = await other.imports(await node.exported(journal=False))
        assert (result.messages, result.messages_left) == (0, 3)
        assert not result.same_configuration
        assert other.sessions.session("away").window == {}

    run(work)


def test_a_node_with_sessions_takes_a_backup_only_in_their_place() -> None:
    async def work() -> None:
        node, other = await filled(), MemoryKept()
        other.sessions.states[session_key("mine")] = encode_state(away_session("mine", []))
        other.retain(b"mine", b"1")
        data = journal_first(await node.exported())
        with pytest.raises(OperationError, match="has 1 sessions"):
            await other.imports(data)
        assert other.sessions.held == []
        await other.imports(data, replace=True)
        assert session_key("mine") not in other.sessions.states
        assert other.retained.peek(b"mine") is None
        assert other.retained.count == 300

    run(work)


def test_another_number_of_shards_is_said() -> None:
    async def work() -> None:
        node, other = await filled(), MemoryKept(shards=3)
        with pytest.raises(BadBackup, match=r"2 shards and that of this node 3.*journal.shards = 2"):
            await other.imports(await node.exported())
        assert other.sessions.held == [True, False]

    run(work)


def test_sessions_before_their_journal_and_files_that_end_early_are_refused() -> None:
    async def work() -> None:
        node = await filled()
        data = await node.exported()
        with pytest.raises(BadBackup, match="before its sessions"):
            await MemoryKept().imports(data)
        with pytest.raises(BadBackup, match="cut off"):
            await MemoryKept().imports(journal_first(data)[:-1])

    run(work)


def test_what_a_client_delayed_is_forgotten() -> None:
    async def work() -> None:
        node = await filled()
        node.delayed.add(Message(b"later", b"y", 1, client_id="other"), 5e9)
        assert await node.backup.forget("c")
        assert not await node.backup.forget("c")
        assert [entry.message.client_id for entry in node.delayed.page(0, 10)] == ["other"]

    run(work)

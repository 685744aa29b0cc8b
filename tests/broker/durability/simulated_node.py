"""A node whose loop and store move only as far as the simulation lets them.

Nothing happens by itself: turns of the loop are run one by one, and what the journal and the tables answer is held back
until it is released, each log in its order. So the node can be killed between any two of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import NamedTuple

from brookmq.broker.settings import Settings
from brookmq.store.memory_table import MemoryTable
from brookmq.store.session_state import META_KEY
from brookmq.store.table.interface import Entry, part_of
from tests.broker.memory import MemoryNode, MemoryStream
from tests.broker.memory_journal import MemoryJournal
from tests.broker.reading import packets
from tests.harness.received import Packet

TURNS_MAX = 100_000  # of the loop until nothing is left to do: beyond that two parts of the node wake each other


class Snapshot(NamedTuple):
    """One that is encoded and not written: it waits for the changes that may be in its states."""

    part: int
    covered: int  # changes of the part that were stored before
    needed: int  # changes of the table that have to be stored
    states: list[Entry]


class SimulatedTable(MemoryTable):
    """Its snapshots are written as those of the real one: encoded at any moment, written when the changes taken until
    then are stored. The changes that came in between are applied again after a crash."""

    taken = 0
    snapshot_begun: Snapshot | None = None

    def change(self, key: bytes, op: bytes, done: Callable[[], None] | None = None) -> None:
        self.taken += 1
        super().change(key, op, done)

    def begin_snapshot(self, part: int) -> bool:
        """One at a time, of a part that is loaded."""
        if self.snapshot_begun is not None or not self.loaded(part):
            return False
        states = list(self.encode_part(part))
        self.snapshot_begun = Snapshot(part, len(self.changes.get(part, ())), self.taken, states)
        self._write_snapshot()
        return True

    def _write_snapshot(self) -> None:
        snapshot = self.snapshot_begun
        if snapshot is not None and self.taken - self.unanswered >= snapshot.needed:
            self.snapshot_begun = None
            self.states[snapshot.part] = snapshot.states
            self.changes[snapshot.part] = self.changes.get(snapshot.part, [])[snapshot.covered :]

    def _store(self, count: int) -> None:
        super()._store(count)
        self._write_snapshot()

    def reopened(self, unanswered: int = 0) -> SimulatedTable:
        before = super().reopened(unanswered)
        twin = SimulatedTable(self._call_soon, self._clock, waiting_bytes_max=self._waiting_bytes_max)
        twin.states, twin.changes, twin._unloaded = before.states, before.changes, before._unloaded
        return twin


class SimulatedNode(MemoryNode):
    table_class = SimulatedTable
    sessions_table: SimulatedTable
    values_table: SimulatedTable

    def open_store(self, journal: MemoryJournal, sessions: MemoryTable, values: MemoryTable) -> None:
        for log in journal.logs:
            log.hold()
        sessions.hold()
        values.hold()
        super().open_store(journal, sessions, values)

    def settle(self) -> None:
        """Nothing happens by itself."""

    def run(self, turns: int) -> None:
        for _ in range(min(turns, len(self.soon))):
            self.soon.popleft()()

    def run_all(self) -> None:
        for _ in range(TURNS_MAX):
            if not self.soon:
                return
            self.soon.popleft()()
        raise AssertionError(f"the loop has no end: {self.soon[0]}")

    def release(self, random: Random, share: float) -> None:
        """Some answers of the store, in any order between the logs, with turns of the loop in between."""
        sources: list[Callable[[], None]] = [lambda log=log: log.release(1) for log in self.journal.logs]  # type: ignore[misc]
        for table in (self.sessions_table, self.values_table):
            if random.random() < share:
                count = random.randint(1, 1 + table.unanswered)
                sources.append(lambda table=table, count=count: table.release(count))  # type: ignore[misc]
        random.shuffle(sources)
        for source in sources:
            if random.random() < share:
                source()
            if random.random() < 0.5:
                self.run(random.randint(0, 4))

    def release_all(self) -> None:
        """The store answers everything, and so on until nobody waits for it."""
        for _ in range(TURNS_MAX):
            self.run_all()
            tables = [table for table in (self.sessions_table, self.values_table) if table.unanswered]
            logs = [log for log in self.journal.logs if log.unanswered]
            if not tables and not logs:
                return
            for log in logs:
                log.release(1)
            for table in tables:
                table.release(table.unanswered)
        raise AssertionError("the store is never done")

    def used_parts(self) -> list[int]:
        """Parts of the table of sessions that have something in them."""
        parts = {part_of(META_KEY)}
        parts.update(part for part, keys in enumerate(self.broker.sessions.by_client_id.parts) if keys)
        parts.update(part_of(key) for key in self.broker.keeper.group_readers)
        return sorted(parts)

    def check(self, client_ids: Iterable[str]) -> None:
        """What has to hold between any two steps."""
        for client_id in client_ids:
            session = self.broker.sessions.by_client_id.get(client_id)
            if session is not None:
                session.check_invariants()
        for shard in self.journal.shards:
            shard.check_invariants()

    def kill(self, random: Random) -> SimulatedNode:
        """It dies now; the next one finds of what had no answer as much as chance wants, in each log."""
        self.sessions_table.check_invariants()
        self.values_table.check_invariants()
        settings: Settings = self.broker.settings
        return SimulatedNode(settings=settings, after=self, unanswered=lambda count: random.randint(0, count))


class Link(MemoryStream):
    """A connection between a client and the node. What the node wrote is not read until the client reads it."""

    def __init__(self, node: SimulatedNode) -> None:
        super().__init__(node, "")

    def read(self, version: int) -> list[Packet]:
        data = bytes(self.host.written)
        self.host.written.clear()
        return packets(data, version)

    @property
    def closed(self) -> bool:
        return self.host.closed

    @property
    def busy(self) -> bool:
        """The node does not look at what comes now."""
        return self.host.channel.suspended

"""What programs that process the journal may see of a node: where it is kept, what of it to fetch, and a way in.

A part of :class:`brookmq.ops.view.NodeView`, and its rules hold here, too. What cannot be answered now, because the
store is not there, is an ``OperationError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """A part of the journal: offsets from ``first`` to before ``end`` are in records of ``subject`` in ``stream``."""

    shard: int
    stream: str
    subject: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class StoreAccess:
    """A way to read the journal's streams, and nothing else. Answers of the store have to go below ``inbox``."""

    servers: Sequence[str]
    user: str | None
    password: str | None
    expires_at: float | None  # unix seconds; None: never
    inbox: str
    ca: str | None  # PEM, where the servers' certificates are not of a known authority


@dataclass(frozen=True, slots=True)
class JournalInfo:
    """``journal`` tells journals apart: offsets of one mean nothing in another. ``store`` only where asked for."""

    cluster: str
    journal: str
    node: str
    capture: Sequence[str]
    shards: Sequence[ShardInfo]
    store: StoreAccess | None = None


class RecordRun(NamedTuple):
    """Records of a stream from one sequence to another, both included, which hold these offsets of a range."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What to fetch of a shard; ``lost`` offsets of the range are gone from the store."""

    runs: Sequence[RecordRun]
    lost: int


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """A reader that told its name: ``position`` is the first offset that it has not read, by shard. ``lag`` messages
    are still to be read, ``lost`` were gone before. One that is not ``alive`` holds nothing back any more."""

    name: str
    journal: str
    position: Mapping[str, int]
    filter: Sequence[str]
    seen_at: float
    lag: int
    lost: int
    alive: bool


@dataclass(frozen=True, slots=True)
class SinkPosition:
    """Up to this row of this batch all rows of a query's partition are published; -1: none yet."""

    batch: int
    row: int


class PipelineView(Protocol):
    """The journal of a node, as those see it who read it from outside."""

    async def journal(self, *, credential: bool) -> JournalInfo:
        """The journal now; with ``credential`` also a way in that lasts for a while."""

    async def journal_plan(
        self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: tuple[float, float] | None
    ) -> Mapping[int, ShardPlan]:
        """What has to be fetched for ranges of offsets, by shard, to see all that was captured for these filters (none:
        for all), and was published between these unix times. ``PeerError`` for a filter that is none, ``LookupError``
        with a message for a shard that there is not."""

    async def journal_time(self, unix_time: float) -> Mapping[int, int]:
        """By shard, the offset of the first message that was published at this time or later."""

    async def sink_position(self, query: str, partition: int) -> SinkPosition:
        """How far a query has published the rows of a partition."""

    async def publish_rows(self, query: str, partition: int, body: bytes) -> SinkPosition:
        """Publish rows that were not published before, and answer when all are stored. ``PeerError`` with the number of
        the row that can't be published."""

    async def forget_sink(self, query: str) -> None:
        """Forget how far a query has published; none of that name is no error."""

    def readers(self) -> Sequence[ReaderInfo]:
        """Declared readers by name; none while they are not known yet."""

    async def put_reader(
        self, name: str, position: Mapping[int, int], filters: Sequence[str], lost: int | None
    ) -> ReaderInfo:
        """Take what a reader tells, once it is stored. ``LookupError`` for a shard that there is not."""

    async def reader_lost(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> ReaderInfo | None:
        """Count offsets that a reader found to be gone, each once; None if there is no such reader. ``LookupError`` for
        a shard that there is not."""

    async def drop_reader(self, name: str) -> bool:
        """Forget a reader; false if there is none."""

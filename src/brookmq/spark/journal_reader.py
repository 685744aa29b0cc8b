"""Reading runs of records on an executor, straight from the store, as Arrow batches.

The store answers a request that begins at removed records with those that are left, and says nothing. So every offset
of a run is accounted for: a record begins where the one before ended, the first one at or before the run's start, and
the last one ends at or behind its end. What is missing is lost: an error, or (``failOnDataLoss`` false) a warning,
and a reader with a name has the node count it: the task fails when it can't be counted.

A credential is short-lived and a store may come back at another address: what fails is tried again with what the node
says then, for as long as a restart may take.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from brookmq.spark.node_client import PATIENCE_S, NodeClient, Run, StoreAccess
from brookmq.spark.options import SourceOptions
from brookmq.spark.schema import arrow_schema
from brookmq.spark.store_connection import Record, StoreConnection, StoreRefusedError
from brookmq.spark.topic_filter import matcher
from brookmq.store.errors import BadRecord
from brookmq.store.record import DATA, HEADER_BYTES, decode_header

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("brookmq.spark")

PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
REFUSALS_MAX: Final = 3  # with a new credential each time


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What one task reads: runs of one shard."""

    shard: int
    stream: str
    runs: tuple[Run, ...]
    node: str  # that has the journal
    store: StoreAccess


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What holds for all tasks of a query."""

    servers: tuple[str, ...]
    token: str | None
    columns: tuple[str, ...]
    filters: tuple[str, ...]
    fail_on_data_loss: bool
    reader_name: str | None = None  # of a stream

    @classmethod
    def of(cls, options: SourceOptions, columns: tuple[str, ...], reader_name: str | None = None) -> ReadSettings:
        return cls(options.servers, options.token, columns, options.filters, options.fail_on_data_loss, reader_name)


def read_task(task: ReadTask, settings: ReadSettings) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    from brookmq.spark.columns import Columns, extent  # with all of Arrow, which only executors need

    columns = Columns(arrow_schema(settings.columns), task.shard, task.node, matcher(settings.filters))
    client = NodeClient(settings.servers, settings.token)
    records = _Records(task, client)
    for run in task.runs:
        expected = run.start
        for record in records.of(run):
            try:
                if not _has_messages(record):
                    continue
                body = record.start + HEADER_BYTES
                base, end = extent(record.message, body)
                if base > expected:
                    _tell_loss(task.shard, expected, min(base, run.end), settings, client)
                expected = max(end, expected)
                yield from columns.add(record.message, body, run.start, run.end)
            except BadRecord as error:
                raise ValueError(f"brookmq: {task.stream}, the record at {record.sequence}: {error}") from None
        _tell_loss(task.shard, expected, run.end, settings, client)
    rest = columns.finish()
    if rest is not None:
        yield rest


def _has_messages(record: Record) -> bool:
    """Between batches there are summaries of the index, and the marks of those who appended."""
    header = record.message[record.start : record.start + HEADER_BYTES]
    return decode_header(header, record.sequence).kind == DATA


def _tell_loss(shard: int, start: int, end: int, settings: ReadSettings, client: NodeClient) -> None:
    if start >= end:
        return
    if settings.fail_on_data_loss:
        raise ValueError(loss_message({shard: end - start}, f"offsets {start} to {end - 1} of partition {shard}"))
    log.warning(
        "partition %d: %d offsets from %d on are gone from the journal, and are skipped", shard, end - start, start
    )
    if settings.reader_name is not None:
        try:
            client.lose(settings.reader_name, {shard: [(start, end)]})
        except LookupError:
            log.warning("the node does not know the reader %s any more", settings.reader_name)


def loss_message(lost: dict[int, int], what: str = "") -> str:
    """The sentence about what is gone."""
    counts = ", ".join(f"{count} of partition {shard}" for shard, count in sorted(lost.items()) if count)
    return (
        f"brookmq: {what or f'offsets that are to be read ({counts})'} are gone from the journal: retention or a purge "
        "has removed them. Start at a later position, or set the option failOnDataLoss to false to skip what is lost."
    )


class _Records:
    """Fetches the records of runs, over connections that live as long as the worker's process."""

    def __init__(self, task: ReadTask, client: NodeClient) -> None:
        self._task = task
        self._store = task.store
        self._client = client

    def of(self, run: Run) -> Iterator[Record]:
        """The records of a run that are there, in order."""
        following = run.first
        while following <= run.last:
            records = self._fetch(following, run.last - following + 1)
            if not records:
                return
            for record in records:
                if record.sequence > run.last:
                    return
                yield record
            following = records[-1].sequence + 1

    def _fetch(self, first: int, count: int) -> Sequence[Record]:
        deadline = time.monotonic() + PATIENCE_S
        pause_s = PAUSE_FIRST_S
        refusals = 0
        while True:
            try:
                records = _connection(self._store).fetch(self._task.stream, first, count)
            except StoreRefusedError as error:
                refusals += 1
                if refusals >= REFUSALS_MAX:
                    raise PermissionError(
                        f"brookmq: the store at {', '.join(self._store.servers)} refuses the credential that the node "
                        f"gave: {error}"
                    ) from None
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise ConnectionError(
                        f"brookmq: the store at {', '.join(self._store.servers)} can't be reached from here: {error}"
                    ) from None
            else:
                if records or not self._is_behind(first):
                    return records
                if time.monotonic() >= deadline:
                    raise ConnectionError(
                        f"brookmq: {self._task.stream}: {first} is stored and does not come"
                    ) from None
            _forget_connection()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)
            self._store = self._client.access()[1]

    def _is_behind(self, first: int) -> bool:
        """Nothing at or behind a sequence that was planned: is it gone, or has this store not got it yet?"""
        facts = self._client.journal()
        shard = facts.shards[self._task.shard]
        wanted = max(run.end for run in self._task.runs if run.last >= first)
        return shard.first < wanted


# The connection of this process; a worker does one task after the other.
_kept: tuple[int, StoreAccess, StoreConnection] | None = None


def _connection(store: StoreAccess) -> StoreConnection:
    global _kept  # noqa: PLW0603 - a process of Spark's has nothing else that outlives a task
    if _kept is not None and _kept[:2] == (os.getpid(), store):
        return _kept[2]
    _forget_connection()
    failure: OSError | None = None
    for server in store.servers:
        try:
            connection = StoreConnection(server, store)
        except OSError as error:
            failure = error
        else:
            _kept = (os.getpid(), store, connection)
            return connection
    raise failure or ConnectionError("the node names no store")


def _forget_connection() -> None:
    global _kept  # noqa: PLW0603
    if _kept is not None and _kept[0] == os.getpid():
        _kept[2].close()
    _kept = None

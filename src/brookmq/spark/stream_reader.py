"""Reading the journal as it grows: ``spark.readStream.format("brookmq")``.

Spark asks for the latest offset a hundred times a second while there is nothing to do, and again to report it. A node
is asked a few times a second at most, and less often when nothing has come for a while.

A position never goes back: what Spark has in its checkpoint was read, whatever a node says that was just restarted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from brookmq.spark.batch_reader import resolved
from brookmq.spark.journal_reader import ReadSettings, loss_message, read_task
from brookmq.spark.node_client import JournalFacts, NodeClient, StoreAccess
from brookmq.spark.options import LATEST, SourceOptions
from brookmq.spark.planning import JournalPartition, parts_worth, plan_tasks, ranges_between
from brookmq.spark.positions import Position, advanced, from_checkpoint, parts_of, to_checkpoint

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("brookmq.spark")

POLL_S: Final = 0.05
POLL_IDLE_S: Final = 0.25
IDLE_AFTER_S: Final = 10.0
CREDENTIAL_S: Final = 900.0  # that a credential has to last when a task gets it
REPORT_EVERY_S: Final = 1.0  # how far a named reader has come
REPORT_IDLE_S: Final = 60.0  # that it is still there


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One stream. Lives where the driver is; ``read`` alone runs on executors."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._settings = ReadSettings.of(options, columns, options.reader_name)
        self._client = NodeClient(options.servers, options.token)
        self._facts: JournalFacts | None = None
        self._store: StoreAccess | None = None
        self._asked_at = 0.0
        self._changed_at = 0.0
        self._target: Position | None = None  # where a query that reads what is there ends
        self._lost = 0  # offsets that were skipped: by this reader as far as it knows, or by all of its name
        self._passed: Position = {}  # up to where everything was read
        self._reported: Position = {}  # up to where the node knows it
        self._reported_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_store": None}  # tasks have the credential that they need

    # Offsets

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        facts = self._look(0.0)
        start = resolved(self._options.start or LATEST, "startingPosition", facts, self._client)
        self._report(start)
        return to_checkpoint(facts.journal, start)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        facts = self._look()
        position = from_checkpoint(facts.journal, start, len(facts.shards))
        self._report(position)
        ends = {shard: max(end, position[shard]) for shard, end in (self._target or facts.ends).items()}
        if isinstance(limit, ReadMaxRows):
            ends = advanced(position, ends, limit.max_rows)
        if ends == position:
            return dict(start)  # with all that stands in it: Spark compares the texts
        ranges = ranges_between(position, ends)
        parts = parts_worth(ranges, self._options.partitions_min)
        return to_checkpoint(facts.journal, ends, parts if parts > len(ranges) else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        facts = self._look()
        return {**to_checkpoint(facts.journal, facts.ends), "lost": self._lost}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self._options.rows_max is None else ReadMaxRows(self._options.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._look(0.0).ends

    # Reading

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        facts, store = self._access()
        shards = len(facts.shards)
        ranges = ranges_between(
            from_checkpoint(facts.journal, start, shards), from_checkpoint(facts.journal, end, shards)
        )
        options = self._options
        tasks = plan_tasks(
            self._client, facts, store, ranges, options.filters, wanted=parts_of(end), in_place=True
        )  # fmt: skip
        if tasks.lost:
            if options.fail_on_data_loss:
                raise ValueError(loss_message(tasks.lost))
            self._skip({shard: (ranges[shard][0], ranges[shard][0] + count) for shard, count in tasks.lost.items()})
        return tasks.partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, JournalPartition) or not partition.task.runs:
            return iter(())
        return read_task(partition.task, self._settings)

    def commit(self, end: Mapping[str, Any]) -> None:
        """What Spark says here it says late, and not at the end: ``latestOffset`` knows more."""

    def stop(self) -> None:
        if self._passed != self._reported:
            self._client.patience_s = 0.0
            with suppress(OSError, ValueError):  # a query that ends does not wait for a node
                self._tell(self._passed)
        self._client.close()

    # The node

    def _look(self, age_max_s: float | None = None) -> JournalFacts:
        """The journal, as it was a moment ago at most."""
        now = time.monotonic()
        if age_max_s is None:
            age_max_s = POLL_S if now - self._changed_at < IDLE_AFTER_S else POLL_IDLE_S
        if self._facts is None or now - self._asked_at >= age_max_s:
            facts = self._client.journal()
            if self._facts is None or facts.ends != self._facts.ends:
                self._changed_at = now
            self._facts = facts
            self._asked_at = time.monotonic()
        return self._facts

    def _access(self) -> tuple[JournalFacts, StoreAccess]:
        """The journal and a credential that outlives a task; the same one for many batches."""
        if self._facts is None or self._store is None or not self._store.lasts(CREDENTIAL_S):
            self._facts, self._store = self._client.access()
        return self._facts, self._store

    def _report(self, position: Position) -> None:
        """Tells the node how far a named reader has come."""
        if self._options.reader_name is None:
            return
        self._passed = position
        now = time.monotonic()
        if position == self._target and position != self._reported:
            due_s = 0.0  # the end of a query that reads what is there: nobody will ask again
        else:
            due_s = REPORT_IDLE_S if position == self._reported else REPORT_EVERY_S
        if now - self._reported_at >= due_s:
            self._tell(position)
            self._reported_at = now

    def _tell(self, position: Position) -> None:
        self._lost = self._client.put_reader(self._options.reader_name or "", position, self._options.filters)
        self._reported = position

    def _skip(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Retention takes the oldest: what is gone of a range is its beginning."""
        log.warning("offsets are gone from the journal, and are skipped: %s (by partition)", ranges)
        if self._options.reader_name is None:
            self._lost += sum(end - start for start, end in ranges.values())
            return
        with suppress(LookupError):  # dropped, and declared again with the next report
            self._client.lose(self._options.reader_name, {shard: [one] for shard, one in ranges.items()})
        self._reported_at = 0.0  # the count comes back with the next report, which is due

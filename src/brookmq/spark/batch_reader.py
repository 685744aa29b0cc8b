"""Reading what is in the journal now: ``spark.read.format("brookmq")``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from brookmq.spark.journal_reader import ReadSettings, loss_message, read_task
from brookmq.spark.node_client import JournalFacts, NodeClient
from brookmq.spark.options import EARLIEST, LATEST, Place, SourceOptions
from brookmq.spark.planning import JournalPartition, parts_worth, plan_tasks, ranges_between
from brookmq.spark.positions import Position
from brookmq.spark.push_down import Bounds, bounds_of

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("brookmq.spark")


class BatchReader(DataSourceReader):
    """One read. Planned where the driver is, read on executors."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._settings = ReadSettings.of(options, columns)
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        client = NodeClient(options.servers, options.token)
        facts, store = client.access()
        start = resolved(options.start or EARLIEST, "startingPosition", facts, client)
        end = resolved(options.end or LATEST, "endingPosition", facts, client)
        end = {shard: min(offset, facts.ends[shard]) for shard, offset in end.items()}
        bounds = self._bounds
        ranges = bounds.within(ranges_between(start, end))
        tasks = plan_tasks(
            client,
            facts,
            store,
            ranges,
            bounds.filters or options.filters,
            wanted=parts_worth(ranges, options.partitions_min),
            between=bounds.between,
        )
        client.close()
        if tasks.lost:
            if options.fail_on_data_loss:
                raise ValueError(loss_message(tasks.lost))
            log.warning("offsets are gone from the journal, and are skipped: %s (by partition)", tasks.lost)
        return tasks.partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Without anything to read Spark makes a partition of its own.
        if not isinstance(partition, JournalPartition):
            return iter(())
        return read_task(partition.task, self._settings)


class PushDownReader(BatchReader):
    """The same, with conditions of the query taken into the journal's index.

    Spark refuses a reader that has this method where its setting for it is off, so it is a class of its own.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._bounds = bounds_of(filters)
        return filters  # the index is coarse: Spark checks every row once more


def resolved(place: Place, option: str, facts: JournalFacts, client: NodeClient) -> Position:
    """The position that an option means. Shards that its offsets leave out are read from or to where they go."""
    if place == EARLIEST:
        return facts.firsts
    if place == LATEST:
        return facts.ends
    if isinstance(place, dict):
        unknown = sorted(set(place) - set(facts.ends))
        if unknown:
            last = len(facts.shards) - 1
            raise ValueError(f"brookmq: the option {option} names partition {unknown[0]}; the journal has 0 to {last}")
        ends: dict[str, Any] = {"startingPosition": facts.firsts, "endingPosition": facts.ends}
        return {**ends[option], **place}
    assert isinstance(place, float)
    return client.at_time(place)

"""How a read is divided among tasks.

A shard is one partition: its records are in order, and one worker reads them as quickly as Spark takes them. Where
there are fewer shards than cores and much to read, the ranges are cut into parts first, and each part is planned by the
node for itself: so each knows the offsets that it is accountable for, and no message is lost between two of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from brookmq.spark.journal_reader import ReadTask
from brookmq.spark.node_client import JournalFacts, NodeClient, StoreAccess
from brookmq.spark.positions import Position

ROWS_WORTH_A_PART: Final = 100_000  # with fewer, another task costs more than it saves
PARTS_MAX: Final = 256  # of all shards; each one is a request to the node

Ranges = dict[int, tuple[int, int]]


class JournalPartition(InputPartition):
    """A task of Spark's: nothing in it but what is to be read."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(task.shard)
        self.task = task

    def __repr__(self) -> str:
        runs = self.task.runs
        return f"JournalPartition({self.task.shard}, offsets {runs[0].start} to {runs[-1].end})"


@dataclass(frozen=True, slots=True)
class Tasks:
    """What is to be read, and how many offsets of it are gone."""

    partitions: list[JournalPartition]
    lost: Position


def ranges_between(start: Mapping[int, int], end: Mapping[int, int]) -> Ranges:
    """The ranges from one position to another that are not empty."""
    return {shard: (offset, end[shard]) for shard, offset in start.items() if end[shard] > offset}


def parts(ranges: Ranges, wanted: int | None) -> list[Ranges]:
    """The same ranges in so many pieces that there is work for all cores; each piece has one range of a shard at most.

    ``wanted`` is how many partitions there should be; None for the cores of this machine, if the ranges are long.
    """
    if not ranges:
        return []
    rows = sum(end - start for start, end in ranges.values())
    if wanted is None:
        wanted = min(os.cpu_count() or 1, rows // ROWS_WORTH_A_PART)
    wanted = max(len(ranges), min(wanted, PARTS_MAX))
    pieces: list[Ranges] = []
    for shard, (start, end) in ranges.items():
        count = max(1, min(end - start, -(-wanted * (end - start) // rows) if wanted > len(ranges) else 1))
        for number in range(count):
            if number == len(pieces):
                pieces.append({})
            first = start + (end - start) * number // count
            pieces[number][shard] = (first, start + (end - start) * (number + 1) // count)
    return pieces


def plan_tasks(
    client: NodeClient,
    facts: JournalFacts,
    store: StoreAccess,
    ranges: Ranges,
    filters: Sequence[str],
    *,
    partitions_min: int | None = None,
    between: tuple[float, float] | None = None,
) -> Tasks:
    """Asks the node which records hold something, and makes tasks of them."""
    streams = {shard.number: shard.stream for shard in facts.shards}
    partitions: list[JournalPartition] = []
    lost: Position = {}
    for piece in parts(ranges, partitions_min):
        plan = client.plan(piece, filters, between)
        for shard, runs in plan.runs.items():
            if runs:
                partitions.append(JournalPartition(ReadTask(shard, streams[shard], tuple(runs), facts.node, store)))
        for shard, count in plan.lost.items():
            if count:
                lost[shard] = lost.get(shard, 0) + count
    return Tasks(partitions, lost)

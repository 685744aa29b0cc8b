"""How a read is divided among tasks.

A shard is one partition: its records are in order, and one worker reads them as quickly as Spark takes them. Where
there are fewer shards than cores and much to read, the ranges are cut into parts first, and each part is planned by the
node for itself: so each knows the offsets that it is accountable for, and no message is lost between two of them.

A batch of a stream is planned once more when a query died before it had ended, and a sink that drops what it has knows
rows by their partition. So the partitions of a stream follow from the two positions around a batch alone: how many
parts there are stands in the position itself, whatever machine the driver is on, and a part for which the index has
nothing keeps its place, since the index may say less after a restart.
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
        what = f"offsets {runs[0].start} to {runs[-1].end}" if runs else "nothing"
        return f"JournalPartition({self.task.shard}, {what})"


@dataclass(frozen=True, slots=True)
class Tasks:
    """What is to be read, and how many offsets of it are gone."""

    partitions: list[JournalPartition]
    lost: Position


def ranges_between(start: Mapping[int, int], end: Mapping[int, int]) -> Ranges:
    """The ranges from one position to another that are not empty, by shard."""
    return {shard: (start[shard], end[shard]) for shard in sorted(start) if end[shard] > start[shard]}


def parts_worth(ranges: Ranges, partitions_min: int | None) -> int:
    """Into how many parts it pays to cut the ranges: one for each core of this machine, if they are long."""
    wanted = partitions_min or min(os.cpu_count() or 1, _rows(ranges) // ROWS_WORTH_A_PART)
    return max(len(ranges), min(wanted, PARTS_MAX))


def _rows(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges.values())


def parts(ranges: Ranges, wanted: int) -> list[Ranges]:
    """The same ranges in about so many parts, in pieces that have one range of a shard at most."""
    if not ranges:
        return []
    rows = _rows(ranges)
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
    wanted: int,
    between: tuple[float, float] | None = None,
    in_place: bool = False,
) -> Tasks:
    """Asks the node which records hold something, and makes tasks of them.

    ``in_place``: tasks without records stay where others come behind them, so that the number of a partition is the
    same whatever the index says.
    """
    streams = {shard.number: shard.stream for shard in facts.shards}
    tasks: list[ReadTask] = []
    lost: Position = {}
    for piece in parts(ranges, wanted):
        plan = client.plan(piece, filters, between)
        tasks += [ReadTask(shard, streams[shard], tuple(plan.runs[shard]), facts.node, store) for shard in piece]
        for shard, count in plan.lost.items():
            if count:
                lost[shard] = lost.get(shard, 0) + count
    if not in_place:
        tasks = [task for task in tasks if task.runs]
    while tasks and not tasks[-1].runs:
        tasks.pop()
    return Tasks([JournalPartition(task) for task in tasks], lost)

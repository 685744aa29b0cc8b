"""Reading the journal, a batch at a time: what sessions that are behind, shared groups and replays have in common.

A reader has a cursor for each shard, and a function that takes messages of a group as far as it can. ``read_batch``
moves one cursor over one batch at most, so that readers take turns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from brookmq.store.journal.batch import Batch
from brookmq.store.journal.group import Group

AT_HEAD = 0  # everything that is stored has been read
MORE = 1
LOADING = 2  # it is on its way from the store: ``wake`` will be called
FULL = 3  # the reader takes no more now

Hand = Callable[[int, Group, int], int]  # (shard, group, index): messages from index on; returns up to where
Lost = Callable[[int], None]  # retention was faster than the reader: so many messages are gone


def read_batch(
    journal: Any,
    shard: int,
    cursors: list[int],
    wanted: frozenset[int] | None,
    hand: Hand,
    wake: Callable[[], None],
    lost: Lost,
) -> int:
    offset = cursors[shard]
    stored = journal.shards[shard].stored
    if offset >= stored:
        return AT_HEAD
    first = journal.first_offset(shard)
    if offset < first:
        lost(first - offset)
        offset = cursors[shard] = first
    found = journal.look(shard, offset, wanted)
    if found is None:
        journal.load(shard, offset, wanted, wake)
        return LOADING
    if not isinstance(found, Batch):
        cursors[shard] = found
        return AT_HEAD if found >= stored else MORE
    groups = found.groups
    rows = found.rows_for(wanted)
    for place in range(max(0, bisect_right(rows, offset, key=lambda row: groups[row].first) - 1), len(rows)):
        group = groups[rows[place]]
        index = max(0, offset - group.first)
        if index < group.count:
            taken = hand(shard, group, index)
            if taken < group.count:
                cursors[shard] = group.first + taken
                return FULL
    cursors[shard] = found.end
    return MORE


def group_at(batch: Batch, offset: int) -> Group:
    """The group of a batch that has this offset."""
    group: Group = batch.groups[bisect_right(batch.groups, offset, key=first_of) - 1]
    return group


def first_of(group: Group) -> int:
    return group.first

"""Positions: for each shard the first offset that was not read; and their form in Spark's checkpoints.

A checkpoint outlives the journal that it speaks of: a data folder may be new, and its offsets mean something else then.
So a journal has an id, and it stands beside the offsets. So does the number of parts that the way to a position is
divided into, where it is: whoever reads that way once more, on whatever machine, divides it in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Position = dict[int, int]


def to_checkpoint(journal: str, position: Mapping[int, int], parts: int | None = None) -> dict[str, Any]:
    """What Spark keeps; ``parts`` only where shards are divided."""
    kept: dict[str, Any] = {"journal": journal, "offsets": {str(shard): position[shard] for shard in sorted(position)}}
    return kept if parts is None else {**kept, "parts": parts}


def parts_of(kept: Mapping[str, Any]) -> int:
    """Into how many parts the way to a position is divided; 0: one for each shard."""
    return int(kept.get("parts", 0))


def from_checkpoint(journal: str, kept: Mapping[str, Any], shards: int) -> Position:
    """The position that Spark kept; ``ValueError`` when it is of another journal."""
    if kept.get("journal") != journal:
        raise ValueError(
            f"brookmq: the checkpoint is of the journal {kept.get('journal')!r} and the node has {journal!r}: its data "
            "folder is another one, and offsets mean something else there. Start the query with a new checkpoint."
        )
    position = {int(shard): int(offset) for shard, offset in kept["offsets"].items()}
    if set(position) != set(range(shards)):
        raise ValueError(f"brookmq: the checkpoint has the partitions {sorted(position)} and the journal has {shards}")
    return position


def parse_offsets(text: str, option: str) -> Position:
    """Offsets as a user writes them: ``{"0": 17, "1": 0}``."""
    hint = f'brookmq: the option {option} takes offsets as {{"0": 17, "1": 0}}, not {text!r}'
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(hint) from None
    if not isinstance(given, dict) or not given:
        raise ValueError(hint)
    position: Position = {}
    for shard, offset in given.items():
        if not shard.isdecimal() or type(offset) is not int or offset < 0:
            raise ValueError(hint)
        position[int(shard)] = offset
    return position


def rows_between(start: Mapping[int, int], end: Mapping[int, int]) -> int:
    """How many offsets lie between two positions."""
    return sum(max(0, end[shard] - offset) for shard, offset in start.items())


def advanced(start: Mapping[int, int], end: Mapping[int, int], rows_max: int) -> Position:
    """The position on the way from one to the other with at most so many offsets between.

    Each shard gets the same part of what it has, so that none waits for the others; and what is left over by rounding
    goes to the first ones.
    """
    available = {shard: max(0, end[shard] - offset) for shard, offset in start.items()}
    total = sum(available.values())
    if total <= rows_max:
        return {shard: offset + available[shard] for shard, offset in start.items()}
    taken = {shard: rows * rows_max // total for shard, rows in available.items()}
    left = rows_max - sum(taken.values())
    for shard in sorted(available):
        more = min(left, available[shard] - taken[shard])
        taken[shard] += more
        left -= more
    return {shard: offset + taken[shard] for shard, offset in start.items()}

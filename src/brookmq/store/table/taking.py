"""A part of a table, taken by its owner step by step: a thousand keys in one turn would be noticed by others.

What comes in one step belongs together, with everything that the table has of it at that moment. So for the owner it is
as if every step were a part of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from brookmq.store.table.interface import Entry

COMMON_END: Final = b"\xff"  # no text has it: keys that are the same up to there are about the same thing


class Taken(NamedTuple):
    """What the table has of one key."""

    key: bytes
    state: bytes | None  # None: the snapshot has none
    ops: list[bytes]  # since then


def steps(states: Iterable[Entry], ops: Sequence[Entry]) -> Iterator[list[Taken]]:
    """The keys of a part, those that are about the same thing together.

    ``ops`` may grow meanwhile. A change of what has not come yet comes with it; one of what has come is left out, since
    whoever has that has made the change.
    """
    coming: dict[bytes, dict[bytes, Taken]] = {}
    for key, state in states:
        coming.setdefault(key.partition(COMMON_END)[0], {})[key] = Taken(key, state, [])
    order = deque(coming)
    come: set[bytes] = set()
    seen = 0
    while True:
        for key, op in ops[seen:]:
            common = key.partition(COMMON_END)[0]
            if common in come:
                continue
            if common not in coming:
                coming[common] = {}
                order.append(common)
            coming[common].setdefault(key, Taken(key, None, [])).ops.append(op)
        seen = len(ops)
        if not order:
            return
        common = order.popleft()
        come.add(common)
        yield [*coming.pop(common).values()]

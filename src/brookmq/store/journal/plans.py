"""What each set of filter ids has to read, worked out once and asked for batch by batch.

Thousands of sessions read at once, and each asks after every batch where its next one is. So the answer of the index
is kept as a *plan*: the batches for a set of ids over a stretch of offsets, found again by bisection. Sessions with the
same filters share one. A plan grows at its end as its readers get there, and starts anew when it is long or when one
asks from elsewhere.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from typing import Final, NamedTuple

from brookmq.store.journal.index import Found, Hole, Missing, ShardIndex, by_part
from brookmq.store.journal.summary import Summary

PLAN_BATCHES_MAX: Final = 4096  # in one plan: some hundred thousand messages
PLANS_BATCHES_MAX: Final = 500_000  # in all plans of a shard, 12 MB
PLANS_MAX: Final = 20_000  # of a shard
STEPS_MAX: Final = 64  # through the index in one call: about half a millisecond


class Blind(NamedTuple):
    """Nothing is known by id from the end of a plan up to here: what lies there has to be read whole."""

    end: int


class Plan:
    """Batches for a set of ids: all there are from ``start`` to ``until``."""

    __slots__ = ("bases", "ends", "held", "parts", "sequences", "start", "until")

    def __init__(self, wanted: frozenset[int], start: int) -> None:
        self.parts = by_part(wanted)
        self.start = start
        self.until = start
        self.bases = array("Q")
        self.ends = array("Q")
        self.sequences = array("Q")
        self.held: dict[int, Summary | Hole] = {}  # by part: read for its next step, which wants all of its parts

    def restart(self, offset: int) -> None:
        """Forgets what it has and begins there."""
        self.start = self.until = offset
        del self.bases[:], self.ends[:], self.sequences[:]

    def place(self, offset: int) -> int:
        """Where in the columns the first batch is that ends behind an offset; their length when there is none."""
        return bisect_right(self.ends, offset)

    def extend(self, batches: list[Found], until: int) -> None:
        """Takes the batches up to a later offset."""
        for base, end, sequence in batches:
            if not self.ends or base >= self.ends[-1]:  # a stretch may begin inside of a batch that is there already
                self.bases.append(base)
                self.ends.append(end)
                self.sequences.append(sequence)
        self.until = until


class Plans:
    """The plans for one shard; those that were not asked for longest are forgotten first."""

    def __init__(self, index: ShardIndex) -> None:
        self._index = index
        self._plans: OrderedDict[frozenset[int], Plan] = OrderedDict()
        self._batches = 0

    def __len__(self) -> int:
        return len(self._plans)

    def at(self, wanted: frozenset[int], offset: int) -> Plan:
        """The plan for these ids that has this offset in its stretch, or begins with it."""
        plan = self._plans.get(wanted)
        if plan is None:
            plan = self._plans[wanted] = Plan(wanted, offset)
            self._shrink()
        else:
            self._plans.move_to_end(wanted)
            if not plan.start <= offset <= plan.until:
                self._batches -= len(plan.bases)
                plan.restart(offset)
        return plan

    def grow(self, plan: Plan, offset: int, stored: int) -> Missing | Blind | None:
        """Extends a plan that has no batch behind ``offset`` until it has one, or all up to ``stored``.

        Ends before that when parts have to be read, where nothing is known by id, or (None) when it took long.
        """
        if len(plan.bases) >= PLAN_BATCHES_MAX:
            self._batches -= len(plan.bases)
            plan.restart(plan.until)
        for _ in range(STEPS_MAX):
            if plan.until >= stored:
                return None
            answer = self._index.step(plan.until, plan.parts, stored, plan.held)
            if isinstance(answer, Missing):
                return answer
            plan.held.clear()
            if answer.batches is None:
                return Blind(answer.end)
            before = len(plan.bases)
            plan.extend(answer.batches, answer.end)
            self._batches += len(plan.bases) - before
            if plan.place(offset) < len(plan.ends):
                self._shrink()
                return None
        return None

    def _shrink(self) -> None:
        while len(self._plans) > PLANS_MAX or (self._batches > PLANS_BATCHES_MAX and len(self._plans) > 1):
            _, plan = self._plans.popitem(last=False)
            self._batches -= len(plan.bases)

"""A run: clients, kills, the drain at the end, and the verdict."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Self

from brookmq.base.faults import POINTS, Victim
from tests.faults.durability.checker import Violation, check, owed, summary
from tests.faults.durability.history import Connecting, Received, Settled
from tests.faults.durability.peer import Peer
from tests.faults.durability.publisher import Publisher, Topic
from tests.faults.durability.stage import Stage
from tests.faults.durability.story import read
from tests.faults.durability.strikes import AT_START, Strike, plan
from tests.faults.durability.subscriber import Habits, Subscriber
from tests.faults.durability.testator import RetainedReader, Testator

FLOW_SECONDS_MAX = 60.0  # until every publisher is acknowledged something after a kill; longer than an election
POINT_SECONDS_MAX = 20.0  # until an order at a point is carried out
DRAIN_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.3
STEP_SECONDS = 0.01

AWAY = Habits(stays=(0.1, 1.0), stays_away=(0.5, 3.0))
FICKLE = Habits(cleans=0.3)


class Campaign:
    """The clients of a run on a stage; ``name`` is the first level of its topics."""

    def __init__(self, stage: Stage, name: str, seed: str, *, pace: float = 1.0) -> None:
        self.stage = stage
        self.name = name
        self.chance = random.Random(f"{seed}/{name}")
        self.missed: list[str] = []  # points that were not reached in time
        self._tasks: dict[Peer, asyncio.Task[None]] = {}
        self.publishers = [
            Publisher(stage, f"{name}-p{number}", version, seed, self._topics(number, version), pace=pace)
            for number, version in enumerate((5, 4, 5))
        ]
        everything, sub = f"{name}/#", Subscriber
        self.subscribers = [
            sub(stage, f"{name}-lazy", 5, seed, everything, 1),
            sub(stage, f"{name}-strict", 5, seed, everything, 2),
            sub(stage, f"{name}-strict4", 4, seed, f"{name}/+/+/q2/#", 2),
            sub(stage, f"{name}-away", 5, seed, everything, 2, habits=AWAY),
            sub(stage, f"{name}-fickle", 5, seed, everything, 2, habits=FICKLE),
            sub(stage, f"{name}-shared0", 5, seed, f"{name}/+/#", 2, group=f"{name}-group"),
            sub(stage, f"{name}-shared1", 4, seed, f"{name}/+/#", 2, group=f"{name}-group"),
        ]
        self.testators = [
            Testator(stage, f"{name}-kept", 5, seed, f"{name}/will/kept", kept=True),
            Testator(stage, f"{name}-transient", 4, seed, f"{name}/will/transient", kept=False),
        ]

    def _topics(self, publisher: int, version: int) -> list[Topic]:
        stem = f"{self.name}/v{version}/p{publisher}"
        plain = [Topic(f"{stem}/q{qos}/{number}", qos) for qos in (1, 2) for number in range(2)]
        return [*plain, Topic(f"{stem}/kept", 1, retain=True)]

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.end()

    # a run

    async def begin(self) -> None:
        """All are subscribed before the first message is sent."""
        for subscriber in self.subscribers:
            self._spawn(subscriber)
        await self.until(lambda: all(each.subscribed.is_set() for each in self.subscribers), "all are subscribed")
        for peer in (*self.publishers, *self.testators):
            self._spawn(peer)
        await self.flow()

    async def strike_all(self, count: int, victims: Sequence[Victim], points: Sequence[str] = tuple(POINTS)) -> None:
        """So many kills, as the seed says."""
        until = self.stage.kills + count
        for strike in plan(self.chance, count, points, victims):
            await self.strike(strike)
            await self.flow()
        while self.stage.kills < until:  # some found nobody to kill: the node was just dead, or its store
            await self.strike(Strike(Victim.NODE))
            await self.flow()

    async def strike(self, strike: Strike) -> None:
        """One kill."""
        if not strike.point:
            await asyncio.sleep(strike.seconds)
            self.stage.kill(strike.victim)
            return
        stage, point = self.stage, strike.point
        before = stage.ledger.fired()[point]
        stage.ledger.order(point, strike.victim, strike.after)
        if point in AT_START:
            stage.kill(Victim.NODE)
        try:
            await self.until(lambda: stage.ledger.fired()[point] > before, "", POINT_SECONDS_MAX)
            stage.kills += 1
        except AssertionError:
            self.missed.append(point)
            stage.ledger.withdraw()
            stage.kill(strike.victim)

    async def flow(self) -> None:
        """Until each publisher has an acknowledgement of a message that it sent from now on, or was sending."""
        before = [publisher.settled for publisher in self.publishers]
        await self.until(
            lambda: all(now.settled > was for now, was in zip(self.publishers, before, strict=True)),
            "every publisher gets acknowledgements",
            FLOW_SECONDS_MAX,
        )

    async def finish(self, patience: float = DRAIN_SECONDS_MAX / 6) -> list[Violation]:
        """Stop publishing, let all drain, and judge; what is owed and does not come for so long won't come."""
        staying: list[Peer] = [*self.publishers, *self.subscribers]
        for peer in self._tasks:
            peer.finish.set()
        await self.until(lambda: all(each.idle for each in self.publishers), "nothing is under way", DRAIN_SECONDS_MAX)
        await self.until(
            lambda: all(self._tasks[each].done() for each in self.testators), "no will is left", DRAIN_SECONDS_MAX
        )
        await self.until(lambda: all(each.connected for each in staying), "all are connected", DRAIN_SECONDS_MAX)
        for publisher in self.publishers:  # behind everything else: what comes after these was not late, it was wrong
            for topic in publisher.topics:
                publisher.publish(topic)
        await self.until(lambda: all(each.idle for each in self.publishers), "the last ones", DRAIN_SECONDS_MAX)
        await self._drain(patience)
        topics = [topic.name for publisher in self.publishers for topic in publisher.topics if topic.retain]
        await RetainedReader(self.stage, f"{self.name}-reader", topics).read()
        await self.end()
        return check(self.stage.history.events)

    async def end(self) -> None:
        """The clients are no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for peer in self._tasks:
            peer.drop()

    async def _drain(self, patience: float) -> None:
        """Until nothing is owed, or nothing comes any more. What is owed takes seconds to find out, in a thread: the
        clients have to be served meanwhile, and only time in which they are served counts as quiet."""
        quiet, before = 0.0, 0
        while quiet < patience:
            events = [*self.stage.history.events]
            if len(events) != before:
                quiet = 0.0
            elif not await asyncio.to_thread(lambda events=events: owed(read(events))):
                return
            before = len(events)
            await asyncio.sleep(LOOK_SECONDS)
            quiet += LOOK_SECONDS

    def report(self, seed: str, begin: float) -> str:
        """What a run has done."""
        events, ledger = self.stage.history.events, self.stage.ledger
        counts = {kind: sum(isinstance(event, kind) for event in events) for kind in (Settled, Received, Connecting)}
        hits, fired = ledger.hits(), ledger.fired()
        points = "\n".join(f"  {name:22} hit {hits[name]:7}  killed there {fired[name]:4}" for name in POINTS)
        return (
            f"seed {seed}: {self.stage.kills} kills, {self.stage.life} lives in {time.monotonic() - begin:.0f} s; "
            f"{counts[Settled]} acknowledged, {counts[Received]} received, {counts[Connecting]} connections"
            f"{'; not reached: ' + ', '.join(self.missed) if self.missed else ''}\n{points}"
        )

    def _spawn(self, peer: Peer) -> None:
        self._tasks[peer] = asyncio.create_task(peer.run())

    async def until(self, condition: Callable[[], bool], what: str, seconds: float = FLOW_SECONDS_MAX) -> None:
        """Wait; a client or a node that failed ends it."""
        end = time.monotonic() + seconds
        while not condition():
            self.stage.check()
            for task in self._tasks.values():
                if task.done() and not task.cancelled():
                    task.result()
            assert time.monotonic() < end, f"not within {seconds} s: {what}"
            await asyncio.sleep(STEP_SECONDS)


def verdict(stage: Stage, violations: list[Violation]) -> str:
    """The text of a failure: counts, and the story of the first violation of each rule; all of it is in a file."""
    file = stage.folder / "history.txt"
    stage.history.write(file)
    firsts: dict[str, Violation] = {}
    for violation in violations:
        firsts.setdefault(violation.rule, violation)
    stories = [f"{rule}:\n{stage.history.about(first.message, first.client)}" for rule, first in firsts.items()]
    return "\n\n".join([summary(violations), *stories, f"all events: {file}"])


def new_seed() -> str:
    """Printed with each run; BROOKMQ_TEST_SEED repeats its choices (not its timing)."""
    return os.environ.get("BROOKMQ_TEST_SEED") or secrets.token_hex(4)

"""When queries are started, stopped and tried again: step by step, and in random worlds."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field
from typing import get_args

import pytest

from brookmq.base.errors import InvariantError
from brookmq.spark.pipeline.supervising import (
    ONCE_TRIES,
    PAUSE_S_MAX,
    PAUSE_S_MIN,
    START_S_MAX,
    STARTS_MAX,
    Action,
    EndAsked,
    Ended,
    Event,
    Finish,
    Launched,
    Lived,
    Query,
    Rested,
    Start,
    State,
    Stop,
    Supervisor,
    Tick,
    Wish,
    WishesChanged,
    Wrote,
    pause_s,
)


def story(machine: Supervisor, *steps: tuple[float, Event]) -> list[Action]:
    """Runs events at their times and returns the actions of the last one."""
    actions: list[Action] = []
    for now, event in steps:
        actions = machine.handle(event, now)
        machine.check_invariants()
    return actions


def wishes(**versions: str) -> WishesChanged:
    return WishesChanged({name: Wish(version) for name, version in versions.items()})


def running(*, once: bool = False) -> Supervisor:
    """With the query ``a``, version 1, at its first attempt."""
    machine = Supervisor(once=once)
    story(machine, (0, wishes(a="1")), (0, Launched("a", 1)), (1, Lived("a", 1)))
    assert machine.queries["a"].state is State.RUNNING
    return machine


def test_a_start() -> None:
    machine = Supervisor()
    assert story(machine, (0, wishes(a="1"))) == [Start("a", 1, "1")]
    assert machine.queries["a"].state is State.STARTING
    assert story(machine, (1, Launched("a", 1))) == []
    assert machine.queries["a"].state is State.STARTING  # nothing is known of it yet
    story(machine, (2, Lived("a", 1)))
    assert machine.queries["a"].state is State.RUNNING
    assert machine.queries["a"].since == 2


def test_few_start_at_a_time() -> None:
    machine = Supervisor()
    names = ["a", "b", "c", "d", "e"]
    actions = story(machine, (0, wishes(**dict.fromkeys(names, "1"))))
    assert actions == [Start("a", 1, "1"), Start("b", 2, "1")]
    assert len(actions) == STARTS_MAX
    assert machine.queries["c"].state is State.WAITING
    assert story(machine, (1, Launched("b", 2)), (1.5, Lived("b", 2))) == []  # its first rows come first
    assert machine.queries["b"].state is State.RUNNING
    assert story(machine, (2, Wrote("b", 2))) == [Start("c", 3, "1")]
    assert story(machine, (3, Ended("a", 1, "no"))) == [Start("d", 4, "1")]
    assert machine.deadline == 2 + START_S_MAX
    assert story(machine, (2 + START_S_MAX, Tick())) == [Start("e", 5, "1")]  # c takes too long
    assert story(machine, (3 + START_S_MAX, Tick())) == [Start("a", 6, "1")]  # which is due since 4


def test_who_has_nothing_to_do_keeps_nobody_waiting() -> None:
    machine = Supervisor()
    story(machine, (0, wishes(a="1", b="1", c="1")), (1, Launched("a", 1)))
    assert story(machine, (2, Rested("a", 1))) == [Start("c", 3, "1")]
    assert machine.queries["a"].state is State.RUNNING


def test_pauses_grow_up_to_a_bound_and_a_batch_ends_them() -> None:
    assert [pause_s(failures) for failures in (1, 2, 3, 4, 1000)] == [1, 2, 4, 8, PAUSE_S_MAX]
    assert pause_s(1) == PAUSE_S_MIN
    machine = running()
    now = 10.0
    for failures in range(1, 9):
        attempt = machine.queries["a"].attempt
        assert story(machine, (now, Ended("a", attempt, "no"))) == []
        query = machine.queries["a"]
        assert (query.state, query.message, query.due) == (State.FAILED, "no", now + pause_s(failures))
        assert machine.deadline == query.due
        assert story(machine, (query.due - 0.001, Tick())) == []
        now = query.due
        assert story(machine, (now, Tick())) == [Start("a", attempt + 1, "1")]
        story(machine, (now, Launched("a", attempt + 1)), (now, Lived("a", attempt + 1)))
        assert machine.queries["a"].message == "no"  # it lives, but has not written
    assert machine.queries["a"].restarts == 8
    story(machine, (now, Wrote("a", machine.queries["a"].attempt)))
    assert machine.queries["a"].message is None
    story(machine, (now, Ended("a", machine.queries["a"].attempt, "no")))
    assert machine.queries["a"].due == now + PAUSE_S_MIN


def test_others_go_on() -> None:
    machine = Supervisor()
    story(machine, (0, wishes(a="1", b="1")), (0, Launched("a", 1)), (0, Launched("b", 2)), (0, Lived("b", 2)))
    story(machine, (1, Ended("a", 1, "no")))
    assert machine.queries["b"].state is State.RUNNING
    assert machine.failed == ["a"]


def test_a_change_waits_for_the_end_of_what_runs() -> None:
    machine = running()
    assert story(machine, (5, wishes(a="2"))) == [Stop("a", 1)]
    assert story(machine, (6, wishes(a="3"))) == []  # it is being stopped already
    assert story(machine, (7, Ended("a", 1))) == [Start("a", 2, "3")]
    assert machine.queries["a"].restarts == 0


def test_a_change_back_while_it_runs_changes_nothing() -> None:
    machine = running()
    assert story(machine, (5, wishes(a="1"))) == []


def test_what_is_being_launched_is_stopped_behind_that() -> None:
    machine = Supervisor()
    story(machine, (0, wishes(a="1")))
    assert story(machine, (1, wishes())) == []
    assert story(machine, (2, Launched("a", 1))) == [Stop("a", 1)]
    assert story(machine, (3, Ended("a", 1))) == []
    assert machine.queries == {}


def test_a_failure_of_what_is_not_wanted_any_more_is_its_end() -> None:
    machine = running()
    story(machine, (5, wishes()), (6, Ended("a", 1, "no")))
    assert machine.queries == {}
    assert machine.deadline is None


def test_a_change_tries_a_failed_one_at_once() -> None:
    machine = running()
    story(machine, (5, Ended("a", 1, "no")))
    assert story(machine, (5.1, wishes(a="2"))) == [Start("a", 2, "2")]
    assert machine.queries["a"].failures == 0


def test_a_problem_is_shown_and_not_tried() -> None:
    machine = running()
    broken = WishesChanged({"a": Wish("2", "line 1: no"), "b": Wish("1", "line 2: no")})
    assert story(machine, (5, broken)) == [Stop("a", 1)]
    assert story(machine, (6, Ended("a", 1))) == []
    assert story(machine, (1000, Tick())) == []
    assert {name: query.message for name, query in machine.queries.items()} == {"a": "line 1: no", "b": "line 2: no"}
    assert machine.queries["a"].state is State.FAILED
    assert story(machine, (1001, wishes(a="3"))) == [Start("a", 2, "3")]


def test_what_stops_for_good_waits_for_a_change() -> None:
    machine = running()
    story(machine, (5, Ended("a", 1, "no", for_good=True)))
    assert machine.queries["a"].state is State.STOPPED
    assert story(machine, (1000, Tick())) == []
    assert story(machine, (1001, wishes(a="1"))) == []
    assert story(machine, (1002, wishes(a="2"))) == [Start("a", 2, "2")]


def test_an_end_that_nobody_asked_for_is_a_failure() -> None:
    machine = running()
    story(machine, (5, Ended("a", 1)))
    assert machine.queries["a"].state is State.FAILED
    assert machine.queries["a"].message


def test_the_past_is_not_listened_to() -> None:
    machine = running()
    story(machine, (5, Ended("a", 1, "no")), (6, Tick()), (6, Launched("a", 2)))
    for event in (Ended("a", 1, "again"), Lived("a", 1), Launched("a", 1), Wrote("a", 1), Ended("x", 1)):
        assert story(machine, (7, event)) == []
    assert machine.queries["a"].state is State.STARTING


def test_the_end() -> None:
    machine = Supervisor()
    story(machine, (0, wishes(a="1", b="1", c="1", d="1")), (0, Launched("a", 1)), (1, Rested("a", 1)))
    assert [query.launching for query in machine.queries.values()] == [False, True, True, False]
    assert story(machine, (2, EndAsked())) == [Stop("a", 1)]
    assert machine.queries["d"].state is State.STOPPED
    assert story(machine, (2, wishes(z="1"))) == []
    assert story(machine, (3, Launched("b", 2))) == [Stop("b", 2)]
    assert story(machine, (3, Ended("c", 3, "no"))) == []
    assert story(machine, (4, EndAsked())) == [Stop("a", 1, at_once=True), Stop("b", 2, at_once=True)]
    assert story(machine, (5, Ended("a", 1))) == []
    assert story(machine, (6, Ended("b", 2))) == [Finish()]
    assert story(machine, (7, EndAsked()), (8, Tick())) == []


def test_the_end_of_nothing() -> None:
    assert story(Supervisor(), (0, EndAsked())) == [Finish()]
    assert story(Supervisor(), (0, wishes()), (0, Tick())) == []  # rules may come


def test_once_ends_when_all_are_done() -> None:
    machine = Supervisor(once=True)
    story(machine, (0, wishes(a="1", b="1")), (0, Launched("a", 1)), (0, Launched("b", 2)))
    assert story(machine, (1, Ended("a", 1))) == []
    assert story(machine, (2, Ended("b", 2))) == [Finish()]
    assert machine.failed == []


def test_once_gives_up_what_fails() -> None:
    machine = running(once=True)
    now = 1.0
    for number in range(1, ONCE_TRIES):
        now += PAUSE_S_MAX
        story(machine, (now, Ended("a", number, "no")), (now + PAUSE_S_MAX, Tick()))
        assert machine.queries["a"].attempt == number + 1
    assert story(machine, (now + 99, Ended("a", ONCE_TRIES, "no"))) == [Finish()]
    assert machine.failed == ["a"]


def test_once_with_nothing_to_do_ends() -> None:
    assert story(Supervisor(once=True), (0, Tick())) == []
    assert story(Supervisor(once=True), (0, wishes())) == [Finish()]
    assert story(Supervisor(once=True), (0, WishesChanged({"a": Wish("1", "no")}))) == [Finish()]


def test_invariants_are_looked_at() -> None:
    machine = running()
    machine.queries["a"].due = 1.0
    with pytest.raises(InvariantError, match="only what failed is due"):
        machine.check_invariants()
    machine.queries = {name: Query(name, Wish("1"), State.STARTING, 0, 1, "1", holds_until=9.0) for name in "abc"}
    with pytest.raises(InvariantError, match="too many starts"):
        machine.check_invariants()


@dataclass(order=True)
class Later:
    at: float
    number: int
    event: Event = field(compare=False)


class World:
    """Spark and a user, by chance: starts that fail or take long, queries that die, stops that take their time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.machine = Supervisor(once=self.chance.random() < 0.2)
        self.now = 0.0
        self.later: list[Later] = []
        self.numbers = 0
        self.alive: dict[str, int] = {}  # attempts that exist, in truth
        self.last_end: dict[str, tuple[float, int]] = {}  # when an attempt failed, and how often in a row
        self.calm = False  # nothing goes wrong any more
        self.finished = False
        self.versions = 0
        self.wished: dict[str, Wish] = {}
        self.seen: set[type] = set()

    def run(self) -> None:
        for _ in range(200):
            if self.finished:
                return
            self.step(self.random_event())
        self.calm = True
        for _ in range(500):
            if self.finished:
                return
            self.step(None)
            if not self.later and self.machine.deadline is None:
                break
        if not self.machine.once and not self.machine.ending:
            self.check_all_run()
        self.step(EndAsked())
        for _ in range(100):
            if self.finished:
                break
            self.step(None)
        assert self.finished
        assert self.alive == {}

    def check_all_run(self) -> None:
        """In a calm world everything runs that can, in its last version, and nothing else."""
        assert set(self.machine.queries) == set(self.wished)
        for name, query in self.machine.queries.items():
            stopped = query.state is State.STOPPED and query.version == self.wished[name].version
            if self.wished[name].problem is not None:
                assert query.state is State.FAILED, query
            elif not stopped:  # for good, by its own failure
                assert (query.state, query.version) == (State.RUNNING, self.wished[name].version), query
                assert self.alive[name] == query.attempt

    def random_event(self) -> Event | None:
        roll = self.chance.random()
        if roll < 0.15 and not self.finished:
            return self.changed_wishes()
        if roll < 0.16:
            return EndAsked()
        if roll < 0.3 and self.alive:
            name = self.chance.choice(sorted(self.alive))
            self.later_on(0.0, 1.0, Wrote(name, self.alive[name]))
        elif roll < 0.45 and self.alive:
            name = self.chance.choice(sorted(self.alive))
            message = None if self.chance.random() < 0.2 else "died"
            self.later_on(0.0, 1.0, Ended(name, self.alive[name], message, self.chance.random() < 0.1))
        return None

    def changed_wishes(self) -> WishesChanged:
        for name in "abcde":
            roll = self.chance.random()
            if roll < 0.2:
                self.wished.pop(name, None)
            elif roll < 0.5:
                self.versions += 1
                self.wished[name] = Wish(str(self.versions), "no" if self.chance.random() < 0.2 else None)
        return WishesChanged(dict(self.wished))

    def step(self, event: Event | None) -> None:
        """Lets one thing happen: this one, or what is next."""
        if event is None:
            deadline = self.machine.deadline
            if self.later and (deadline is None or self.later[0].at <= deadline):
                due = heapq.heappop(self.later)
                self.now, event = max(self.now, due.at), due.event
            else:
                self.now = self.now + self.chance.random() if deadline is None else max(self.now, deadline)
                event = Tick()
        if isinstance(event, Ended):
            if self.alive.get(event.name) != event.attempt:
                return  # it died before
            del self.alive[event.name]
        self.seen.add(type(event))
        if not isinstance(event, (WishesChanged, EndAsked, Tick)) and self.chance.random() < 0.05:
            self.later_on(0.0, 5.0, event)  # told twice, the second time late
        actions = self.machine.handle(event, self.now)
        self.machine.check_invariants()
        for action in actions:
            self.do(action)

    def do(self, action: Action) -> None:
        match action:
            case Start(name, attempt, version):
                assert name not in self.alive, "two attempts of a query at a time"
                assert not self.finished
                assert self.machine.queries[name].wish == self.wished[name]
                assert version == self.wished[name].version
                self.alive[name] = attempt
                if not self.calm and self.chance.random() < 0.3:
                    self.later_on(0.0, 5.0, Ended(name, attempt, "could not be started", self.chance.random() < 0.1))
                    return
                self.later_on(0.0, 2.0, Launched(name, attempt))
                self.later_on(2.0, 5.0, self.chance.choice([Lived, Rested])(name, attempt))
                if self.machine.once:
                    self.later_on(5.0, 20.0, Ended(name, attempt))
            case Stop(name, attempt):
                self.later_on(0.0, 10.0, Ended(name, attempt))
            case Finish():
                assert not self.alive
                self.finished = True

    def later_on(self, least: float, most: float, event: Event) -> None:
        self.numbers += 1
        heapq.heappush(self.later, Later(self.now + self.chance.uniform(least, most), self.numbers, event))


@pytest.mark.parametrize("block", range(4))
def test_random_worlds(block: int) -> None:
    seen: set[type] = set()
    for seed in range(block * 250, (block + 1) * 250):
        world = World(seed)
        try:
            world.run()
        except BaseException:
            print(f"seed {seed} at {world.now:.3f}: {world.machine.queries}")
            raise
        seen |= world.seen
    assert seen == set(get_args(Event))

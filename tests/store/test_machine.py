"""When the store is started again, and when not: the decisions, step by step and in random worlds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import get_args

import pytest

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.diagnosis import Diagnosis, Trouble, diagnose, ends_writes, parse
from brookmq.store.machine import (
    HEALTHY_SECONDS,
    IDLE_START_SECONDS_MAX,
    PAUSE_SECONDS_MAX,
    PAUSE_SECONDS_MIN,
    STARTS_PER_MINUTE_MAX,
    STOP_SECONDS_MAX,
    Action,
    BecameReady,
    Event,
    Exited,
    FellSilent,
    Kill,
    Launch,
    ReportDown,
    ReportReady,
    ReportStopped,
    StartAsked,
    Started,
    StartFailed,
    State,
    StopAsked,
    SupervisionMachine,
    Terminate,
    Tick,
    Worked,
    WritesEnded,
    pause_seconds,
)

FULL = Diagnosis(Trouble.DISK_FULL, "full")


def story(machine: SupervisionMachine, *steps: tuple[float, Event]) -> list[Action]:
    """Runs events at their times and returns the actions of the last one."""
    actions: list[Action] = []
    for now, event in steps:
        actions = machine.handle(event, now)
        machine.check_invariants()
    return actions


def ready(port: int = 4000, configured: int | None = None) -> SupervisionMachine:
    machine = SupervisionMachine(configured)
    story(machine, (0, StartAsked()), (0, Started()), (0, BecameReady(port)))
    return machine


def test_a_start() -> None:
    machine = SupervisionMachine()
    assert story(machine, (0, StartAsked())) == [Launch(None)]
    assert story(machine, (0, Started())) == []
    assert story(machine, (0, BecameReady(4000))) == [ReportReady()]
    assert machine.state is State.READY


def test_the_first_death_is_answered_at_once_and_on_the_same_port() -> None:
    machine = ready(4000)
    down, launch = story(machine, (20, Exited(-9, "")))
    assert isinstance(down, ReportDown)
    assert "signal 9" in down.diagnosis.text
    assert launch == Launch(4000)


def test_deaths_in_a_row_are_answered_more_and_more_slowly() -> None:
    machine = SupervisionMachine()
    story(machine, (0, StartAsked()), (0, Started()), (0, Exited(1, "")))
    assert machine.launching
    now, pauses = 0.0, []
    for _ in range(12):
        story(machine, (now, Started()), (now, Exited(1, "")))
        assert machine.state is State.DOWN
        assert machine.deadline is not None
        pauses.append(machine.deadline - now)
        assert story(machine, (machine.deadline - 0.001, Tick())) == []
        now = machine.deadline
        assert story(machine, (now, Tick())) == [Launch(None)]
    assert pauses[0] == pytest.approx(PAUSE_SECONDS_MIN)
    assert pauses[1] == pytest.approx(2 * PAUSE_SECONDS_MIN)
    assert [round(pause, 6) for pause in pauses] == sorted(round(pause, 6) for pause in pauses)
    assert pauses[-1] == pytest.approx(PAUSE_SECONDS_MAX)
    assert pause_seconds(10**6) == PAUSE_SECONDS_MAX


@pytest.mark.parametrize(("health", "deaths"), [(HEALTHY_SECONDS - 0.1, 3), (HEALTHY_SECONDS, 1)])
def test_only_health_makes_a_death_the_first_again(health: float, deaths: int) -> None:
    machine = ready()
    story(machine, (1, Exited(-9, "")), (1, Started()), (1, Exited(-9, "")), (2, Tick()), (2, Started()))
    story(machine, (2, BecameReady(4000)), (2 + health, Exited(-9, "")))
    assert machine.deaths == deaths


def test_a_start_that_works_gets_time_and_one_that_does_not_is_killed() -> None:
    machine = SupervisionMachine()
    story(machine, (0, StartAsked()), (0, Started()))
    now = 0.0
    for _ in range(10):  # five minutes of reading the journal back
        now += IDLE_START_SECONDS_MAX - 1
        assert story(machine, (now, Worked()), (now, Tick())) == []
    down, kill = story(machine, (now + IDLE_START_SECONDS_MAX, Tick()))
    assert isinstance(down, ReportDown)
    assert kill == Kill()
    assert story(machine, (now + 1000, Tick())) == [], "there is nothing stronger than SIGKILL"
    assert story(machine, (now + 1001, Exited(-9, ""))) == [Launch(None)]


def test_a_store_that_falls_silent_is_not_ready_and_comes_back_without_a_start() -> None:
    machine = ready()
    assert story(machine, (5, FellSilent("no answer"))) == [ReportDown(Diagnosis(Trouble.OTHER, "no answer"))]
    assert story(machine, (6, FellSilent("no answer"))) == []
    assert story(machine, (7, BecameReady(4000))) == [ReportReady()]
    assert story(machine, (8, FellSilent("no answer")))
    assert Kill() in story(machine, (8 + IDLE_START_SECONDS_MAX, Tick()))


def test_a_store_that_has_given_up_writing_is_ended_and_started_when_there_is_room() -> None:
    machine = ready()
    assert story(machine, (50, WritesEnded(FULL))) == [ReportDown(FULL), Terminate()]
    assert story(machine, (50, WritesEnded(FULL))) == [], "it says so for every stream"
    assert story(machine, (50, Exited(0, "something else"))) == [Launch(4000)]
    now = 50.0
    for _ in range(20):
        assert story(machine, (now, StartFailed(FULL))) == [], "the reason has not changed"
        assert machine.diagnosis == FULL
        assert machine.deadline is not None
        assert machine.deadline - now < 5
        now = machine.deadline
        assert story(machine, (now, Tick())) == [Launch(4000)]
    assert story(machine, (now, Started()), (now, BecameReady(4000))) == [ReportReady()]


def test_a_store_that_does_not_end_is_killed() -> None:
    machine = ready()
    story(machine, (50, WritesEnded(FULL)))
    assert story(machine, (50 + STOP_SECONDS_MAX, Tick())) == [Kill()]


@pytest.mark.parametrize("configured", [None, 4000])
def test_a_port_that_is_taken_is_given_up_unless_it_is_configured(configured: int | None) -> None:
    machine = ready(4000, configured)
    story(machine, (1, Exited(-9, "")), (1, Started()))
    taken = '[1] 2026/11/15 15:04:09.7 [FTL] Error listening on port: "bind: address already in use"'
    (down,) = story(machine, (1, Exited(1, taken)))
    assert isinstance(down, ReportDown)
    assert down.diagnosis.trouble is Trouble.PORT_IN_USE
    assert story(machine, (2, Tick())) == [Launch(configured)]


def test_stopping() -> None:
    machine = ready()
    assert story(machine, (1, StopAsked())) == [Terminate()]
    assert story(machine, (1, StopAsked())) == []
    assert story(machine, (1 + STOP_SECONDS_MAX, Tick())) == [Kill()]
    assert story(machine, (7, Exited(-9, ""))) == [ReportStopped()]
    assert story(machine, (7, StopAsked())) == []
    assert story(machine, (8, StartAsked())) == [Launch(4000)]


def test_stopping_while_a_launch_is_under_way_or_none_is_there() -> None:
    machine = SupervisionMachine()
    assert story(machine, (0, StartAsked()), (0, StopAsked())) == []
    assert story(machine, (0, Started())) == [Terminate()]
    assert story(machine, (0, BecameReady(1))) == []
    assert story(machine, (0, Exited(0, ""))) == [ReportStopped()]
    assert story(machine, (0, StartAsked()), (0, StopAsked()), (0, StartFailed(FULL))) == [ReportStopped()]
    story(machine, (0, StartAsked()), (0, StartFailed(FULL)), (0, StartFailed(FULL)))
    assert machine.state is State.DOWN
    assert story(machine, (0, StopAsked())) == [ReportStopped()]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(CallerError):
        ready().handle(StartAsked(), 1)
    with pytest.raises(InvariantError):
        SupervisionMachine().handle(Exited(0, ""), 1)
    broken = ready()
    broken.running = False
    with pytest.raises(InvariantError, match="ready means a running process"):
        broken.check_invariants()


# ── what the store's lines mean ──


@pytest.mark.parametrize(
    ("line", "trouble"),
    [
        ("[1] 2026/11/15 15:04:31.8 [ERR] Critical write error: write /d/1.blk: no space left on device", "DISK_FULL"),
        ("[1] d t [FTL] Can't start JetStream: mkdir /d/js: read-only file system", "UNWRITABLE"),
        ("[1] d t [FTL] Can't start JetStream: open /d/js: permission denied", "UNWRITABLE"),
        ('[1] d t [FTL] Error listening on port: "bind: address already in use"', "PORT_IN_USE"),
        ('nats-server: nats.conf:1:0: unknown field "nonsense"', "SETTINGS_REFUSED"),
        ("[1] d t [ERR] read /d/1.blk: input/output error", "DISK_FAULT"),
        ("[1] d t [ERR] accept: too many open files", "OPEN_FILES"),
        ("panic: runtime error", "OTHER"),
    ],
)
def test_troubles_are_told_apart_and_keep_the_servers_words(line: str, trouble: str) -> None:
    found = diagnose(line)
    assert found.trouble is Trouble[trouble]
    assert parse(line).text in found.text


def test_lines_of_the_server() -> None:
    assert parse("[7] 2026/11/15 15:04:31.803390 [WRN] text [x]") == ("WRN", "text [x]")
    assert parse("goroutine 1 [running]:") == ("ERR", "goroutine 1 [running]:")
    assert parse("")[0] == "INF"
    assert ends_writes("[1] d t [ERR] JetStream stream 'A > S' critical write error: no space left on device")
    assert ends_writes("[1] d t [ERR] JetStream out of resources, will be DISABLED")
    assert not ends_writes("[1] d t [ERR] JetStream failed to store a msg on stream 'A > S'")
    assert len(diagnose("x" * 10_000).text) < 1_000


# ── random worlds ──


@dataclass
class World:
    """A store that does what chance wants, with a clock of its own, until ``calm_after``: then all is fine."""

    random: random.Random
    calm_after: float
    machine: SupervisionMachine = field(default_factory=SupervisionMachine)
    now: float = 0.0
    starts: list[float] = field(default_factory=list)
    waiting: list[tuple[float, int, Event]] = field(default_factory=list)  # what will happen; the int is the process
    process: int = 0
    told: Counter[type] = field(default_factory=Counter)

    @property
    def calm(self) -> bool:
        return self.now >= self.calm_after

    def tell(self, event: Event) -> None:
        self.told[type(event)] += 1
        actions = self.machine.handle(event, self.now)
        self.machine.check_invariants()
        for action in actions:
            self.obey(action)

    def later(self, seconds: float, event: Event) -> None:
        self.waiting.append((self.now + seconds, self.process, event))

    def obey(self, action: Action) -> None:
        chance = self.random.random()
        match action:
            case Launch():
                self.starts.append(self.now)
                if not self.calm and chance < 0.3:
                    return self.later(0.001, StartFailed(FULL))
                self.process += 1
                self.later(0.001, Started())
            case Terminate() if self.calm or chance < 0.7:
                self.later(self.random.uniform(0, 3), Exited(0, ""))
            case Kill():
                self.later(0.01, Exited(-9, ""))
            case _:
                pass
        return None

    def live(self) -> None:
        """What a server does by itself once it runs, and again once it is ready."""
        trouble = None if self.calm else self.random.choice([None, "die", "full", "silent", "hang", "work"])
        soon = self.random.choice([0.0, 0.02, 0.5, HEALTHY_SECONDS + 5])
        if trouble == "die":
            self.later(soon, Exited(self.random.choice([1, -9]), "some words"))
        elif trouble == "full":
            self.later(soon, WritesEnded(FULL))
        elif trouble == "silent":
            self.later(soon, FellSilent("no answer"))
        elif trouble == "work":
            self.later(soon, Worked())
        if self.machine.state is State.STARTING and trouble != "hang":
            self.later(self.random.uniform(0.02, 0.2), BecameReady(4000))

    def run(self, until: float) -> None:
        while self.now < until:
            times = [time for time, process, _ in self.waiting if process == self.process]
            deadline = self.machine.deadline
            nearest = min([*times, *([deadline] if deadline is not None else []), self.now + 5.0])
            self.now = max(self.now, nearest)
            due = [entry for entry in self.waiting if entry[0] <= self.now]
            self.waiting = [entry for entry in self.waiting if entry[0] > self.now]
            for _, process, event in due:
                self.happen(process, event)
            self.tell(Tick())

    def happen(self, process: int, event: Event) -> None:
        if process != self.process or (not self.machine.running and not isinstance(event, Started | StartFailed)):
            return  # of a process that is gone
        before = self.machine.state
        self.tell(event)
        if isinstance(event, Started | Worked) or (before is not self.machine.state and self.machine.running):
            self.live()


@pytest.mark.parametrize("seed", [*range(200), None])
def test_in_any_world_starts_are_bounded_and_a_fine_world_ends_in_ready(seed: int | None) -> None:
    seed = random.SystemRandom().randrange(10**9) if seed is None else seed
    print(f"seed {seed}")
    world = World(random.Random(seed), calm_after=300.0)
    world.tell(StartAsked())
    world.run(300.0 + IDLE_START_SECONDS_MAX + STOP_SECONDS_MAX + PAUSE_SECONDS_MAX + 20.0)
    assert world.machine.state is State.READY, world.machine
    for begin in world.starts:
        within = sum(begin <= start < begin + 60 for start in world.starts)
        assert within <= STARTS_PER_MINUTE_MAX, f"{within} starts in the minute after {begin:.1f}"


def test_the_random_worlds_have_all_of_it() -> None:
    told: Counter[type] = Counter()
    for seed in range(20):
        world = World(random.Random(seed), calm_after=300.0)
        world.tell(StartAsked())
        world.run(300.0)
        told += world.told
    assert all(told[kind] >= 20 for kind in get_args(Event) if kind is not StopAsked), told


def test_starts_that_all_fail_at_once_come_to_the_bound_and_not_over_it() -> None:
    machine, now, starts = SupervisionMachine(), 0.0, 1
    story(machine, (now, StartAsked()))
    while now < 60:
        if any(isinstance(action, Launch) for action in machine.handle(StartFailed(FULL), now)):
            starts += 1
            continue
        assert machine.deadline is not None
        now = machine.deadline
        starts += now < 60
        assert machine.handle(Tick(), now) == [Launch(None)]
    assert STARTS_PER_MINUTE_MAX - 3 <= starts <= STARTS_PER_MINUTE_MAX

"""When the store's process is started, given up, and started again: the decisions, without a process in them.

Rules:
- A death is answered at once the first time (clients should hardly notice), then with growing pauses: 50 ms doubling
  up to 4 s. Only `HEALTHY_SECONDS` of being ready make the next death a first one again, so a store that dies as soon
  as it is ready is no restart loop at full speed.
- The longest pause is below 5 s, because that is how soon a store must be back once the disk has room again.
- A server that is reading its journal back is not ready and not dead: it gets time as long as it *works* (`Worked`),
  since killing it would only make it begin anew. One that neither answers nor works is killed.
- A server that is up but has given up writing (full disk) does not come back by itself: it is ended and started anew,
  which the shell does only when the folder has room (`StartFailed` otherwise).
- The port stays the same over restarts, so that clients find their store where it was; when somebody else has taken
  it meanwhile, and it was not configured, another one is taken.

    stopped ──StartAsked──▸ starting ──BecameReady──▸ ready
       ▴                     │   ▴  ◂──FellSilent───────┤
       │    Exited,          ▾   │ Tick                 │ Exited, WritesEnded
       │    StartFailed ──▸ down ───────◂───────────────┘
       └──Exited── stopping ◂──StopAsked── (any)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.diagnosis import Diagnosis, Trouble, diagnose

PAUSE_SECONDS_MIN = 0.05  # before the second start in a row
PAUSE_SECONDS_MAX = 4.0  # with the start itself below the promised 5 s
HEALTHY_SECONDS = 10.0  # of being ready, after which earlier deaths are forgotten
IDLE_START_SECONDS_MAX = 30.0  # that a server may neither answer nor work before it is killed
STOP_SECONDS_MAX = 5.0  # from SIGTERM to SIGKILL; a server with much to flush takes about one
STARTS_PER_MINUTE_MAX = 24  # what the pauses above add up to when every start fails at once


class State(Enum):
    """What the store is, seen from the node."""

    STOPPED = auto()
    STARTING = auto()
    READY = auto()
    DOWN = auto()
    STOPPING = auto()


# ── events: what happened ──


@dataclass(frozen=True, slots=True)
class StartAsked:
    """The node wants its store."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """The node is stopping, or could not start."""


@dataclass(frozen=True, slots=True)
class Started:
    """The ordered process runs."""


@dataclass(frozen=True, slots=True)
class StartFailed:
    """There is no process: the folder is full or unwritable, or the program could not be run."""

    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class Worked:
    """The process used the processor or the disk since the last look, without being ready yet."""


@dataclass(frozen=True, slots=True)
class BecameReady:
    """JetStream answered on this port."""

    port: int


@dataclass(frozen=True, slots=True)
class FellSilent:
    """The process is there, but did not answer in time or answered with an error that may pass."""

    reason: str


@dataclass(frozen=True, slots=True)
class WritesEnded:
    """The server said that it takes no more writes until it is started anew."""

    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class Exited:
    """The process is gone. ``code`` is negative for a signal; ``last_line`` is its last complaint, or empty."""

    code: int
    last_line: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; `SupervisionMachine.deadline` says when one is needed."""


Event = StartAsked | StopAsked | Started | StartFailed | Worked | BecameReady | FellSilent | WritesEnded | Exited | Tick

# ── actions: what to do ──


@dataclass(frozen=True, slots=True)
class Launch:
    """Start a server; answer with `Started` or `StartFailed`. ``port`` None: any free one."""

    port: int | None


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask the process to end in order (SIGTERM)."""


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process (SIGKILL)."""


@dataclass(frozen=True, slots=True)
class ReportReady:
    """Tell the node that the store serves."""


@dataclass(frozen=True, slots=True)
class ReportDown:
    """Tell the node that the store does not serve, and why; also when only the reason changed."""

    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class ReportStopped:
    """Tell the node that no process is left."""


Action = Launch | Terminate | Kill | ReportReady | ReportDown | ReportStopped


class SupervisionMachine:
    """``configured_port`` is kept whatever happens; without one the port that the first start got is kept if it can."""

    def __init__(self, configured_port: int | None = None) -> None:
        self.state = State.STOPPED
        self.diagnosis: Diagnosis | None = None  # why the store does not serve; None while READY and before any trouble
        self.deadline: float | None = None  # when a Tick is needed; set while something may take too long or is awaited
        self.launching = False  # Launch was ordered and neither Started nor StartFailed came; never with `running`
        self.running = False  # Started came and Exited did not
        self.deaths = 0  # in a row, without HEALTHY_SECONDS of being ready between them
        self.port = configured_port  # for the next Launch; None: any free one
        self._port_configured = configured_port is not None
        self._ready_since = 0.0  # meaningful while READY
        self._killed = False  # SIGKILL was ordered for the process that runs
        self._handlers: dict[type, Callable[..., list[Action]]] = {
            StartAsked: self._start_asked,
            StopAsked: self._stop_asked,
            Started: self._started,
            StartFailed: self._start_failed,
            Worked: self._worked,
            BecameReady: self._became_ready,
            FellSilent: self._fell_silent,
            WritesEnded: self._writes_ended,
            Exited: self._exited,
            Tick: self._tick,
        }

    def handle(self, event: Event, now: float) -> list[Action]:
        """The one way in: what happened, and when (monotonic seconds); returns what to do, in this order."""
        return self._handlers[type(event)](event, now)

    # ── asked by the node ──

    def _start_asked(self, _: StartAsked, now: float) -> list[Action]:
        if self.state is not State.STOPPED:
            raise CallerError(f"the store is {self.state.name.lower()}: it can be started only when it is stopped")
        self.deaths, self.diagnosis = 0, None
        return self._launch(now)

    def _stop_asked(self, _: StopAsked, now: float) -> list[Action]:
        if self.state in (State.STOPPED, State.STOPPING):
            return []
        if not self.running and not self.launching:
            return self._stopped()
        self.state, self.deadline = State.STOPPING, now + STOP_SECONDS_MAX
        return [Terminate()] if self.running else []

    # ── told by the process ──

    def _started(self, _: Started, now: float) -> list[Action]:
        self._expect(self.launching, "Started")
        self.launching, self.running, self._killed = False, True, False
        if self.state is State.STOPPING:
            self.deadline = now + STOP_SECONDS_MAX
            return [Terminate()]
        self.deadline = now + IDLE_START_SECONDS_MAX
        return []

    def _start_failed(self, event: StartFailed, now: float) -> list[Action]:
        self._expect(self.launching, "StartFailed")
        self.launching = False
        return self._stopped() if self.state is State.STOPPING else self._fall(event.diagnosis, now)

    def _worked(self, _: Worked, now: float) -> list[Action]:
        if self.state is State.STARTING and self.running:
            self.deadline = now + IDLE_START_SECONDS_MAX
        return []

    def _became_ready(self, event: BecameReady, now: float) -> list[Action]:
        if self.state is not State.STARTING or not self.running:
            return []  # the answer of a server that is being ended
        self.state, self.deadline, self.diagnosis = State.READY, None, None
        self.port, self._ready_since = event.port, now
        return [ReportReady()]

    def _fell_silent(self, event: FellSilent, now: float) -> list[Action]:
        if self.state is not State.READY:
            return []
        self._forget_deaths_after_health(now)
        self.state, self.deadline = State.STARTING, now + IDLE_START_SECONDS_MAX
        return self._down(Diagnosis(Trouble.OTHER, event.reason))

    def _writes_ended(self, event: WritesEnded, now: float) -> list[Action]:
        if self.state not in (State.STARTING, State.READY) or not self.running:
            return []
        self._forget_deaths_after_health(now)
        self.state, self.deadline = State.DOWN, now + STOP_SECONDS_MAX
        return [*self._down(event.diagnosis), Terminate()]

    def _exited(self, event: Exited, now: float) -> list[Action]:
        self._expect(self.running, "Exited")
        self._forget_deaths_after_health(now)
        self.running = False
        if self.state is State.STOPPING:
            return self._stopped()
        if self.state is State.DOWN and self.diagnosis is not None:
            return self._fall(self.diagnosis, now)  # it was ended by us, for this reason
        diagnosis = _death(event)
        if diagnosis.trouble is Trouble.PORT_IN_USE and not self._port_configured:
            self.port = None
        return self._fall(diagnosis, now)

    def _tick(self, _: Tick, now: float) -> list[Action]:
        if self.deadline is None or now < self.deadline:
            return []
        if self.running:
            return self._give_up(now)
        if self.state is State.DOWN:
            return self._launch(now)
        self.deadline = None  # a launch under way answers in any case; there is nothing to kill
        return []

    # ── steps ──

    def _launch(self, now: float) -> list[Action]:
        self.state, self.launching, self.deadline = State.STARTING, True, None
        return [Launch(self.port)]

    def _give_up(self, now: float) -> list[Action]:
        """The process took too long, to start or to end. SIGKILL needs no second one: the kernel does it or nobody."""
        self.deadline = None
        if self._killed:
            return []
        self._killed = True
        if self.state is not State.STARTING:
            return [Kill()]
        self.state = State.DOWN
        text = f"the store neither answered nor worked for {IDLE_START_SECONDS_MAX:.0f} s and is started anew"
        return [*self._down(Diagnosis(Trouble.OTHER, text)), Kill()]

    def _fall(self, diagnosis: Diagnosis, now: float) -> list[Action]:
        """No process is left: start again, at once or after a pause."""
        self.deaths += 1
        actions = self._down(diagnosis)
        pause = pause_seconds(self.deaths)
        if pause == 0:
            return [*actions, *self._launch(now)]
        self.state, self.deadline = State.DOWN, now + pause
        return actions

    def _down(self, diagnosis: Diagnosis) -> list[Action]:
        told, self.diagnosis = self.diagnosis == diagnosis, diagnosis
        return [] if told else [ReportDown(diagnosis)]

    def _stopped(self) -> list[Action]:
        self.state, self.deadline = State.STOPPED, None
        return [ReportStopped()]

    def _forget_deaths_after_health(self, now: float) -> None:
        if self.state is State.READY and now - self._ready_since >= HEALTHY_SECONDS:
            self.deaths = 0

    def _expect(self, condition: bool, event: str) -> None:
        if not condition:
            raise InvariantError(f"{event} while {self!r}")

    def __repr__(self) -> str:
        flags = " ".join(name for name in ("launching", "running") if getattr(self, name))
        return f"<{self.state.name.lower()} {flags} deaths={self.deaths} deadline={self.deadline}>"

    def check_invariants(self) -> None:
        """What holds after every event; raises InvariantError."""
        state, here = self.state, self.launching or self.running
        rules = {
            "a process runs or is being launched, not both": not (self.launching and self.running),
            "starting and stopping mean a process": here or state not in (State.STARTING, State.STOPPING),
            "ready means a running process": self.running or state is not State.READY,
            "stopped means none": not here or state is not State.STOPPED,
            "ready has no reason": self.diagnosis is None or state is not State.READY,
            "down has a reason": self.diagnosis is not None or state is not State.DOWN,
            "down without a process waits for its next start": state is not State.DOWN
            or self.running
            or self.deadline is not None,
            "nothing runs out while ready or stopped": self.deadline is None
            or state not in (State.READY, State.STOPPED),
            "a start that runs is watched": not (state is State.STARTING and self.running) or self.deadline is not None,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise InvariantError(f"{'; '.join(broken)}: {self!r}")


def pause_seconds(deaths: int) -> float:
    """How long to wait after this many deaths in a row."""
    if deaths <= 1:
        return 0.0
    return float(min(PAUSE_SECONDS_MIN * 2 ** min(deaths - 2, 16), PAUSE_SECONDS_MAX))


def _death(event: Exited) -> Diagnosis:
    if event.last_line and event.code >= 0:  # after a signal its last complaint may be an hour old
        return diagnose(event.last_line)
    how = f"was killed by signal {-event.code}" if event.code < 0 else f"ended with code {event.code}"
    return Diagnosis(Trouble.OTHER, f"the store's process {how}")

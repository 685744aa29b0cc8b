"""When the queries of a pipeline are started, stopped and tried again: the decisions, without Spark in them.

Rules:
- A query runs at most once at a time. A new version of it is started when the old one has ended.
- One that fails is tried again after 1 s, then after twice as long each time, up to a minute. A batch that was written
  makes the next failure a first one again; a mere start does not, since a query that can't write starts every time.
- What others do is of no concern: each query has its own pauses. Only starts are few at a time, as they take the
  processor for a while: those that are first have their first rows before the others begin. A start that takes too
  long is no longer waited for.
- A query whose document can't be used is shown with the reason, and is not tried before the document changes. The same
  holds for one that was told to stop by its own failure.
- With ``once`` a query ends by itself when all is read that was there. One that fails some times in a row is given up,
  so that the program ends.

    waiting ──▸ starting ──Lived──▸ running
       ▴  ▴         │  Ended           │ Ended
       │  └─ due ─ failed ◂────────────┘
       │            │ for good                     (any) ── not wanted, or another version ──▸ stopping ──Ended──▸ …
       └─ changed ─ stopped
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from brookmq.base.errors import InvariantError

PAUSE_S_MIN: Final = 1.0
PAUSE_S_MAX: Final = 60.0
STARTS_MAX: Final = 2  # at the same time
START_S_MAX: Final = 20.0  # that a start keeps others waiting
ONCE_TRIES: Final = 3  # in a row, before a query is given up that runs once


class State(Enum):
    """What a query is."""

    WAITING = "waiting"  # for its turn to start
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"  # tried again when it is due; never, if it can't be used
    STOPPED = "stopped"  # for good: done, given up, or told to


ALIVE: Final = (State.STARTING, State.RUNNING, State.STOPPING)


@dataclass(frozen=True, slots=True)
class Wish:
    """A query that there should be. With another ``version`` it is started anew; ``problem``: why it can't be."""

    version: str
    problem: str | None = None


# ── events: what happened ──


@dataclass(frozen=True, slots=True)
class WishesChanged:
    """These queries are wanted now, by name, and no others."""

    wishes: Mapping[str, Wish]


@dataclass(frozen=True, slots=True)
class Launched:
    """Spark has taken the query; it may still fail before it does anything."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Lived:
    """It has found messages, and begins a batch."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Rested:
    """It has looked for messages, and there were none."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """It finished a batch."""

    name: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Ended:
    """It is gone, or was never there. ``message``: what went wrong; ``for_good``: it should not be tried again."""

    name: str
    attempt: int
    message: str | None = None
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class EndAsked:
    """The pipeline has to end; a second time: without waiting for batches."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; `Supervisor.deadline` says when one is needed."""


Event = WishesChanged | Launched | Lived | Rested | Wrote | Ended | EndAsked | Tick

# ── actions: what to do ──


@dataclass(frozen=True, slots=True)
class Start:
    """Start a query; answer with `Launched` or `Ended`, later with the others. Attempts have numbers of their own."""

    name: str
    attempt: int
    version: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End a query, ``at_once`` or behind the batch that it is at; answer with `Ended`."""

    name: str
    attempt: int
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do: the program can end."""


Action = Start | Stop | Finish


@dataclass(slots=True)
class Query:
    """A query as the machine sees it."""

    name: str
    wish: Wish | None  # None: it is only waited for its end
    state: State
    since: float  # when it came into this state
    attempt: int = 0  # the one that is alive, or the last one
    version: str = ""  # of that attempt
    launching: bool = False  # Start was ordered, and neither Launched nor Ended came
    holds_until: float | None = None  # until then its start keeps others waiting; None behind its first batch
    restarts: int = 0  # starts after failures, in all
    failures: int = 0  # in a row
    due: float | None = None  # when a failed one is tried again
    message: str | None = None  # of the last failure; None again once it writes

    @property
    def alive(self) -> bool:
        return self.state in ALIVE


def pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(PAUSE_S_MIN * 2.0 ** min(failures - 1, 30), PAUSE_S_MAX)


class Supervisor:
    """All queries of a pipeline."""

    def __init__(self, *, once: bool = False) -> None:
        self.queries: dict[str, Query] = {}
        self.once = once
        self.ending = False  # no query is started any more
        self.finished = False  # Finish was ordered; nothing is alive
        self._wished = False  # the first wishes came
        self._attempts = 0
        self._handlers: dict[type, Callable[..., list[Action]]] = {
            WishesChanged: self._wishes_changed,
            Launched: self._launched,
            Lived: self._lived,
            Rested: self._rested,
            Wrote: self._wrote,
            Ended: self._ended,
            EndAsked: self._end_asked,
            Tick: lambda _event, _now: [],
        }

    @property
    def deadline(self) -> float | None:
        """When a `Tick` is needed, if nothing else happens: something is due, or a start takes too long."""
        if self.ending:
            return None
        holding = [query.holds_until for query in self.queries.values() if query.holds_until is not None]
        due = [query.due for query in self.queries.values() if query.due is not None]
        return min(holding if len(holding) >= STARTS_MAX else holding + due, default=None)

    @property
    def failed(self) -> list[str]:
        """Queries that did not end well, by name."""
        return sorted(query.name for query in self.queries.values() if query.message is not None)

    def handle(self, event: Event, now: float) -> list[Action]:
        """The one way in: what happened, and when (monotonic seconds); returns what to do, in this order."""
        for query in self.queries.values():
            if query.holds_until is not None and query.holds_until <= now:
                query.holds_until = None
        return [*self._handlers[type(event)](event, now), *self._begin(now), *self._finish()]

    # ── wishes ──

    def _wishes_changed(self, event: WishesChanged, now: float) -> list[Action]:
        self._wished = True
        if self.ending:
            return []
        actions: list[Action] = []
        for name in [name for name in self.queries if name not in event.wishes]:
            actions += self._unwanted(self.queries[name], now)
        for name, wish in event.wishes.items():
            known = self.queries.get(name)
            if known is None:
                known = self.queries[name] = Query(name, wish, State.WAITING, now)
                self._wait(known, now)
            elif known.wish != wish:
                actions += self._changed(known, wish, now)
        return actions

    def _unwanted(self, query: Query, now: float) -> list[Action]:
        query.wish = None
        if not query.alive:
            del self.queries[query.name]
            return []
        return self._stop(query, now)

    def _changed(self, query: Query, wish: Wish, now: float) -> list[Action]:
        query.wish = wish
        if not query.alive:
            self._wait(query, now)
            return []
        if query.state is not State.STOPPING and query.version == wish.version and wish.problem is None:
            return []  # it was changed and changed back
        return self._stop(query, now)

    def _wait(self, query: Query, now: float) -> None:
        """What was before is forgotten, as it says nothing about this version."""
        assert query.wish is not None
        query.failures, query.due, query.message = 0, None, query.wish.problem
        self._enter(query, State.WAITING if query.wish.problem is None else State.FAILED, now)

    # ── told by the queries ──

    def _launched(self, event: Launched, now: float) -> list[Action]:
        query = self._current(event.name, event.attempt)
        if query is None or not query.launching:
            return []
        query.launching = False
        return [Stop(query.name, query.attempt)] if query.state is State.STOPPING else []

    def _lived(self, event: Lived, now: float) -> list[Action]:
        query = self._current(event.name, event.attempt)
        if query is not None and query.state is State.STARTING:
            self._enter(query, State.RUNNING, now)
        return []

    def _rested(self, event: Rested, now: float) -> list[Action]:
        query = self._current(event.name, event.attempt)
        if query is not None and query.state is not State.STOPPING:
            query.holds_until = None
            self._enter(query, State.RUNNING, now)
        return []

    def _wrote(self, event: Wrote, now: float) -> list[Action]:
        query = self._current(event.name, event.attempt)
        if query is not None and query.state is not State.STOPPING:
            query.failures, query.message, query.holds_until = 0, None, None
            self._enter(query, State.RUNNING, now)
        return []

    def _ended(self, event: Ended, now: float) -> list[Action]:
        query = self._current(event.name, event.attempt)
        if query is None:
            return []
        query.launching = False
        if query.wish is None:
            del self.queries[query.name]
        elif query.state is State.STOPPING:
            if self.ending:
                self._enter(query, State.STOPPED, now)
            else:
                self._wait(query, now)
        elif event.message is None and self.once:
            query.message = None
            self._enter(query, State.STOPPED, now)
        else:
            self._fail(query, event, now)
        return []

    def _fail(self, query: Query, event: Ended, now: float) -> None:
        query.failures += 1
        query.message = event.message or "the query ended, and nobody had asked it to"
        if event.for_good or (self.once and query.failures >= ONCE_TRIES):
            self._enter(query, State.STOPPED, now)
        else:
            query.due = now + pause_s(query.failures)
            self._enter(query, State.FAILED, now)

    # ── the end ──

    def _end_asked(self, _: EndAsked, now: float) -> list[Action]:
        at_once, self.ending = self.ending, True
        actions: list[Action] = []
        for query in self.queries.values():
            query.due = None
            if not query.alive:
                self._enter(query, State.STOPPED, now)
            elif at_once and not query.launching:
                actions.append(Stop(query.name, query.attempt, at_once=True))
            else:
                actions += self._stop(query, now)
        return actions

    def _finish(self) -> list[Action]:
        idle = not any(query.alive for query in self.queries.values())
        done = self.once and self._wished and all(self._over(query) for query in self.queries.values())
        if self.finished or not idle or not (self.ending or done):
            return []
        self.finished = True
        return [Finish()]

    def _over(self, query: Query) -> bool:
        return query.state is State.STOPPED or (query.state is State.FAILED and query.due is None)

    # ── steps ──

    def _begin(self, now: float) -> list[Action]:
        """Starts those whose turn it is: who waits longest first."""
        if self.ending or self.finished:
            return []
        ready = [query for query in self.queries.values() if self._may_start(query, now)]
        ready.sort(key=lambda query: (query.since if query.due is None else query.due, query.name))
        free = STARTS_MAX - sum(query.holds_until is not None for query in self.queries.values())
        return [self._start(query, now) for query in ready[: max(free, 0)]]

    def _may_start(self, query: Query, now: float) -> bool:
        due = query.state is State.FAILED and query.due is not None and query.due <= now
        return query.state is State.WAITING or due

    def _start(self, query: Query, now: float) -> Start:
        assert query.wish is not None
        self._attempts += 1
        query.restarts += query.state is State.FAILED
        query.attempt, query.version, query.launching, query.due = self._attempts, query.wish.version, True, None
        self._enter(query, State.STARTING, now)
        query.holds_until = now + START_S_MAX
        return Start(query.name, query.attempt, query.version)

    def _stop(self, query: Query, now: float) -> list[Action]:
        """A query that is being launched can't be stopped yet: `Launched` will do it."""
        if query.state is State.STOPPING:
            return []
        self._enter(query, State.STOPPING, now)
        return [] if query.launching else [Stop(query.name, query.attempt)]

    def _enter(self, query: Query, state: State, now: float) -> None:
        if query.state is not state:
            query.state, query.since = state, now
            if state is not State.RUNNING:
                query.holds_until = None

    def _current(self, name: str, attempt: int) -> Query | None:
        """The query that this attempt is of; None for what an attempt says that is over."""
        query = self.queries.get(name)
        return query if query is not None and query.alive and query.attempt == attempt else None

    def check_invariants(self) -> None:
        """What holds after every event; raises InvariantError."""
        for query in self.queries.values():
            rules = {
                "an attempt has a number": not query.alive or query.attempt > 0,
                "only what is alive is being launched": query.alive or not query.launching,
                "what is not wanted ends": query.wish is not None or query.state is State.STOPPING,
                "what can't be used does not run": query.wish is None
                or query.wish.problem is None
                or query.state in (State.STOPPING, State.FAILED, State.STOPPED),
                "what failed says why": query.state is not State.FAILED or query.message is not None,
                "only a start keeps others waiting": query.holds_until is None
                or query.state in (State.STARTING, State.RUNNING),
                "only what failed is due": query.due is None or query.state is State.FAILED,
                "what failed is tried again, if it can be": query.state is not State.FAILED
                or query.due is not None
                or (query.wish is not None and query.wish.problem is not None),
                "what runs is of the version that is wanted": query.state not in (State.STARTING, State.RUNNING)
                or (query.wish is not None and query.version == query.wish.version),
                "nothing waits or runs on at the end": not self.ending
                or query.state in (State.STOPPING, State.STOPPED),
                "nothing is alive behind the end": not (self.finished and query.alive),
            }  # fmt: skip
            for rule, holds in rules.items():
                if not holds:
                    raise InvariantError(f"{rule}: {query!r}")
        if sum(query.holds_until is not None for query in self.queries.values()) > STARTS_MAX:
            raise InvariantError("too many starts at a time")

"""The attempts that are under way: started and stopped on threads, looked at from one.

Starting a query takes Spark a moment, and ending one may take as long as its batch. The thread that decides only looks
at what has come of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from brookmq.base.errors import OperationError
from brookmq.spark.pipeline.explaining import explained
from brookmq.spark.pipeline.query import Calls, QueryRun
from brookmq.spark.pipeline.statistics import Statistics
from brookmq.spark.pipeline.supervising import Ended, Event, Launched, Lived, Rested, Start, Stop, Wrote
from brookmq.spark.positions import Position

log = logging.getLogger("brookmq.spark.pipeline")

THREADS_MAX: Final = 16  # for starts, and for stops

Launch = Callable[[QueryRun], Position]
"""Starts a run, and tells where it begins."""
MakeRun = Callable[[str, Calls], QueryRun]
"""Makes the run of a query by its name."""


@dataclass(slots=True)
class Attempt:
    """A query on its way. Flags are set by threads of Spark's and taken by the one that looks."""

    name: str
    number: int
    run: QueryRun
    launch: Future[Position]
    stop: Future[None] | None = None
    launched: bool = False  # told
    lived: bool = False
    rested: bool = False
    wrote: bool = False


class Attempts:
    """All of them, with what is counted of each query."""

    def __init__(self, make_run: MakeRun, launch: Launch, clock: Callable[[], float]) -> None:
        self._make_run = make_run
        self._launch = launch
        self._clock = clock
        self._starting = ThreadPoolExecutor(THREADS_MAX, "brookmq-start")
        self._stopping = ThreadPoolExecutor(THREADS_MAX, "brookmq-stop")
        self._attempts: dict[str, Attempt] = {}
        self._lock = threading.Lock()
        self._statistics: dict[str, Statistics] = {}
        self._warnings: dict[str, str] = {}

    # ── orders ──

    def start(self, order: Start) -> None:
        name = order.name

        def lived() -> None:
            attempt.lived = True

        def wrote() -> None:
            attempt.wrote = True

        with self._lock:
            self._statistics.setdefault(name, Statistics())
            self._warnings.pop(name, None)
        run = self._make_run(name, Calls(lived, wrote, lambda reason: self._action_failed(name, reason)))
        attempt = self._attempts[name] = Attempt(name, order.attempt, run, Future())
        attempt.launch = self._starting.submit(self._launch, run)

    def stop(self, order: Stop, patience_s: float) -> None:
        attempt = self._attempts.get(order.name)
        if attempt is None or attempt.number != order.attempt:
            return
        if attempt.stop is None:
            attempt.stop = self._stopping.submit(attempt.run.stop, patience_s)
        elif order.at_once:
            attempt.run.hurry()

    def close(self) -> None:
        """Behind the last of them."""
        self._starting.shutdown()
        self._stopping.shutdown()

    # ── what has come of them ──

    def events(self) -> Iterator[Event]:
        """What happened since the last look."""
        for attempt in list(self._attempts.values()):
            yield from self._look(attempt)

    def _look(self, attempt: Attempt) -> Iterator[Event]:
        name, number = attempt.name, attempt.number
        if not attempt.launch.done():
            return
        if (error := attempt.launch.exception()) is not None:
            yield self._over(attempt, _message(error), for_good=False)
            return
        if not attempt.launched:
            attempt.launched = True
            self._begins(name, attempt.launch.result())
            yield Launched(name, number)
        if attempt.lived:
            attempt.lived = False
            yield Lived(name, number)
        if attempt.rested:
            attempt.rested = False
            yield Rested(name, number)
        over = attempt.run.is_over()  # before the last look at what it wrote
        if attempt.wrote:
            attempt.wrote = False
            yield Wrote(name, number)
        if attempt.stop is not None and attempt.stop.done() and (error := attempt.stop.exception()) is not None:
            log.warning("%s did not end as it should: %s", name, _message(error))
            attempt.stop = None
            if not over:
                self.stop(Stop(name, number, at_once=True), 0.0)
        if over and (attempt.stop is None or attempt.stop.done()):
            outcome = attempt.run.outcome()
            yield self._over(attempt, None if outcome is None else str(outcome), bool(outcome and outcome.for_good))

    def _over(self, attempt: Attempt, message: str | None, for_good: bool) -> Ended:
        attempt.run.close()
        del self._attempts[attempt.name]
        return Ended(attempt.name, attempt.number, message, for_good)

    def _begins(self, name: str, position: Position) -> None:
        """So that it is known how much waits, before there is a batch."""
        with self._lock:
            if self._statistics[name].position is None:
                self._statistics[name].position = position

    # ── told by Spark ──

    def told(self, run_id: str, report: Mapping[str, Any] | None) -> None:
        """A report of a query's run; None: it is idle."""
        for attempt in list(self._attempts.values()):
            if attempt.run.run_id != run_id:
                continue
            if report is None:
                attempt.rested = True
            else:
                with self._lock:
                    self._statistics[attempt.name].finished(report, self._clock())

    def _action_failed(self, name: str, reason: str) -> None:
        with self._lock:
            self._statistics[name].actions_failed += 1
            self._warnings[name] = reason

    # ── numbers ──

    def numbers(self) -> tuple[dict[str, Statistics], dict[str, str]]:
        """What is counted of each query, and the last failure of an action with which it went on."""
        with self._lock:
            return dict(self._statistics), dict(self._warnings)

    def forget(self, known: Callable[[str], bool]) -> None:
        """Numbers of queries that are gone for good."""
        with self._lock:
            for name in [name for name in self._statistics if not known(name) and name not in self._attempts]:
                del self._statistics[name]
                self._warnings.pop(name, None)


def _message(error: BaseException) -> str:
    """For whoever looks at the pipeline; what is no trouble of the world goes into the log in full."""
    if isinstance(error, (OperationError, OSError, ValueError)):
        return explained(str(error))
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    if not isinstance(error, (PySparkException, Py4JError)):
        log.error("a query could not be started", exc_info=error)
    return explained(f"{type(error).__name__}: {error}")

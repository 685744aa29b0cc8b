"""``brookmq pipeline run``: one Spark application that runs what its node says.

One thread decides. It looks a few times a second at what has come of queries, documents and signals, asks the machine
(`supervising`) what follows, and does it. Starts, stops, and talking to the node are other threads' work.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from brookmq.base.errors import OperationError
from brookmq.base.pipeline_status import PipelineStatus
from brookmq.spark.actions.interface import NodeAccess
from brookmq.spark.pipeline.checkpoints import Checkpoints
from brookmq.spark.pipeline.display import Display
from brookmq.spark.pipeline.documents import Documents, PipelineNode
from brookmq.spark.pipeline.folder import DataFolder
from brookmq.spark.pipeline.status import query_statuses
from brookmq.spark.pipeline.supervising import (
    Action,
    EndAsked,
    Event,
    Finish,
    Start,
    Stop,
    Supervisor,
    Tick,
    WishesChanged,
)
from brookmq.spark.pipeline.wanted import WantedQuery, wanted_queries
from brookmq.spark.positions import Position

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from brookmq.spark.pipeline.attempts import Attempts
    from brookmq.spark.pipeline.query import QueryRun
    from brookmq.spark.pipeline.reporting import NodeLink

log = logging.getLogger("brookmq.spark.pipeline")

LOOK_S: Final = 0.1
SHOWN_EVERY_S: Final = 1.0
END_PATIENCE_S: Final = 5.0  # for a batch, when the pipeline ends
CHANGE_PATIENCE_S: Final = 60.0  # for a batch, when its rule has changed
END_S_MAX: Final = 20.0  # from the wish to end until it is no longer waited for
OTHER_ALIVE_S: Final = 20.0  # in which a pipeline that is gone is taken for gone
OK: Final = 0
FAILED: Final = 1

_SPARK: Final = {
    "spark.app.name": "brookmq pipeline",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.pollingDelay": "50ms",  # of the default 10 ms an idle query would use up a tenth of a core
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
}


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the user asked for."""

    servers: tuple[str, ...]
    token: str | None
    master: str | None
    data_dir: Path
    rows_per_batch: int
    once: bool = False


class Pipeline:
    """One run of the command."""

    def __init__(self, options: RunOptions, display: Display) -> None:
        self._options = options
        self._display = display
        self._machine = Supervisor(once=options.once)
        self._wake = threading.Event()
        self._ends_asked = 0
        self._spark_is_there = False
        self._wanted: dict[str, WantedQuery] = {}
        self._finished = False
        self.abandoned = False  # a query did not end: threads are left that nobody should wait for

    def run(self) -> int:
        """The exit code. Raises OperationError if it can't begin."""
        signal.signal(signal.SIGTERM, self._signalled)
        signal.signal(signal.SIGINT, self._signalled)
        folder = DataFolder(self._options.data_dir)
        os.chdir(folder.path)  # tables and files with relative paths are here, wherever the command was given
        try:
            return self._run(folder)
        finally:
            folder.release()

    def _run(self, folder: DataFolder) -> int:
        options = self._options
        node = PipelineNode(options.servers, options.token)
        try:
            documents = node.documents()
            self._await_turn(node, folder.previous_id)
        except (LookupError, OSError, ValueError) as error:
            raise OperationError(str(error).removeprefix("brookmq: ")) from None
        self._display.note("Spark is starting")
        import pyspark.sql  # noqa: F401 - before two threads do it at once: each would find half of it

        with ThreadPoolExecutor(1) as others:  # while Java starts
            wanted = others.submit(_prepared, documents)
            spark = self._session(folder)
            signal.signal(signal.SIGINT, self._signalled)  # Spark had put its own in place
            self._spark_is_there = True
            try:
                self._wanted = wanted.result()
                return self._supervise(spark, node, documents, folder)
            finally:
                self._stop(spark)

    def _session(self, folder: DataFolder) -> SparkSession:
        from brookmq.spark import session

        settings = {name.replace(".", "__"): value for name, value in _SPARK.items()}
        with folder.output_kept():
            found = session(self._options.master, **settings)
        java: Any = found.sparkContext._jvm  # noqa: SLF001 - there is no other way to Java's logging
        java.org.apache.logging.log4j.core.config.Configurator.reconfigure(java.java.net.URI(folder.logging.as_uri()))
        return found

    def _stop(self, spark: SparkSession) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        if not self.abandoned:
            with suppress(Py4JError, ConnectionError):  # it is gone
                spark.stop()

    def _supervise(self, spark: SparkSession, node: PipelineNode, documents: Documents, folder: DataFolder) -> int:
        from py4j.protocol import Py4JError

        from brookmq.spark.pipeline.attempts import Attempts
        from brookmq.spark.pipeline.progress import listen
        from brookmq.spark.pipeline.query import QueryRun, Settings
        from brookmq.spark.pipeline.reporting import NodeLink

        options = self._options
        access = NodeAccess(options.servers, options.token)
        settings = Settings(access, options.rows_per_batch, options.once)
        checkpoints = Checkpoints(folder.path)
        attempts = Attempts(
            lambda name, calls: QueryRun(self._wanted[name], settings, calls),
            lambda run: _launch(run, spark, checkpoints, access),
            time.monotonic,
        )
        listen(spark, attempts.told)
        context = spark.sparkContext
        about = PipelineStatus(
            id=folder.id, master=context.master or "", application=context.applicationId or "", started_at=time.time()
        )
        link = NodeLink(node, documents, self._wake.set)
        link.start()
        try:
            return self._loop(about, attempts, link, context)
        except (Py4JError, ConnectionError) as error:
            self._display.note(f"Spark has ended: {error}")
            return FAILED
        finally:
            link.stop(self._status(about, attempts, link))

    def _loop(self, about: PipelineStatus, attempts: Attempts, link: NodeLink, context: SparkContext) -> int:
        revision, asked, shown_at, ending_since = None, 0, 0.0, None
        while not self._finished:
            now = time.monotonic()
            events: list[Event] = [Tick()]
            if revision != link.documents.revision and not (self._options.once and revision is not None):
                events.append(self._wishes(link.documents, first=revision is None))
                revision = link.documents.revision
            if link.replaced is not None and not self._ends_asked:
                self._display.note(link.replaced.removeprefix("brookmq: "))
                self._ends_asked += 1
            while asked < self._ends_asked:
                asked += 1
                events.append(EndAsked())
                ending_since = ending_since or now
            if ending_since is not None and now - ending_since > END_S_MAX:
                return self._give_up()
            for event in (*events, *attempts.events()):
                self._do(self._machine.handle(event, now), attempts)
            if now - shown_at >= SHOWN_EVERY_S or self._finished:
                shown_at = now
                if context._jsc is None or context._jsc.sc().isStopped():  # noqa: SLF001 - nothing else tells
                    raise ConnectionError("it was stopped")
                link.check()
                attempts.forget(self._machine.queries.__contains__)
                link.status = self._status(about, attempts, link)
                self._display.show(link.status, link.problem, now)
            self._wake.wait(LOOK_S)
            self._wake.clear()
        attempts.close()
        failed = link.replaced is not None or (self._options.once and not self._ends_asked and self._machine.failed)
        return FAILED if failed else OK

    def _wishes(self, documents: Documents, *, first: bool) -> WishesChanged:
        if not first:
            self._wanted = wanted_queries(documents, self._wanted)
        return WishesChanged({name: query.wish for name, query in self._wanted.items()})

    def _do(self, actions: list[Action], attempts: Attempts) -> None:
        for action in actions:
            match action:
                case Start():
                    attempts.start(action)
                case Stop():
                    patience_s = END_PATIENCE_S if self._machine.ending else CHANGE_PATIENCE_S
                    attempts.stop(action, 0.0 if action.at_once else patience_s)
                case Finish():
                    self._finished = True

    def _status(self, about: PipelineStatus, attempts: Attempts, link: NodeLink) -> PipelineStatus:
        statistics, warnings = attempts.numbers()
        queries = query_statuses(self._machine, statistics, link.ends, time.monotonic(), time.time(), warnings)
        return about.model_copy(update={"queries": queries})

    def _await_turn(self, node: PipelineNode, own: str | None) -> None:
        """Two pipelines would write everything twice. One that has ended is taken to live for some seconds more."""
        deadline = time.monotonic() + OTHER_ALIVE_S
        told = False
        while (status := node.status()).get("alive") and status.get("id") != own:
            if time.monotonic() >= deadline:
                raise ValueError(
                    f"another pipeline runs for this node (Spark {status.get('master')}, {status.get('application')}); "
                    "a second one would write everything twice. Stop it first."
                )
            if not told:
                self._display.note("another pipeline was heard of a moment ago: waiting for its end")
                told = True
            time.sleep(SHOWN_EVERY_S)

    def _give_up(self) -> int:
        """A query does not end. Its batch comes again at the next start, so nothing is lost."""
        names = ", ".join(query.name for query in self._machine.queries.values() if query.alive)
        self._display.note(f"not waited for any longer: {names}")
        self.abandoned = True
        return FAILED

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        if not self._spark_is_there:
            raise SystemExit(OK)  # nothing runs yet
        self._ends_asked += 1
        self._wake.set()


def _prepared(documents: Documents) -> dict[str, WantedQuery]:
    """What can be done while Java starts: compiling, and loading what queries need."""
    wanted = wanted_queries(documents)
    import brookmq.spark.actions
    import brookmq.spark.pipeline.query  # noqa: F401 - loaded now

    return wanted


def _launch(run: QueryRun, spark: SparkSession, checkpoints: Checkpoints, access: NodeAccess) -> Position:
    """On a thread of its own: finds the checkpoint, and starts the query where that ends."""
    node = PipelineNode(access.servers, access.token)
    try:
        generation = checkpoints.prepare(run.query, node.journal().journal, node)
    finally:
        node.close()
    run.start(spark, generation)
    return generation.reached()

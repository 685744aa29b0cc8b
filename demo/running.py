"""The demo from its first process to its picture.

Rules are made before the first reading is sent: a rule sees what is published after it was made. Each device greets
with one reading, which takes Spark through its first batches; then they speak. They end where a window ends, and one
message behind the watermark closes the last window, so that every reading is in the tables when the pipeline is
stopped.
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.connections import AlarmDesk, Fleet
from demo.fleet import Device, Measuring, devices
from demo.node_api import ALARM_TOPICS, ALARMS, WATERMARK_S, WINDOW_S, WINDOWS, NodeApi, QueryNow
from demo.processes import Child
from demo.results import BRONZE, GOLD_LAST, GOLD_MINUTE, SILVER, Results, Sample, Story, is_complete, read_results
from demo.terminal import Screen

QUERIES: Final = frozenset(
    (f"rule/{ALARMS}", f"rule/{WINDOWS}", *(f"table/{name}" for name in (BRONZE, SILVER, GOLD_LAST)))
)
SAMPLED_EVERY_S: Final = 0.5
MARGIN_S: Final = 0.5  # between the last reading and the end of its window
START_S: Final = 300.0  # for Spark on a machine with other things to do
CATCH_UP_S: Final = 300.0
CONFIG: Final = """\
[journal]
capture = ["campus/#"]
shards = 4

[pipeline]
checker_idle = "1s"      # it has looked at both rules by then, and its memory is needed
"""


class TimeoutInStepError(Exception):
    """A step took too long; the message says which and what was seen last."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for."""

    devices: int
    seconds: float
    folder: Path  # for the processes and the tables
    master: str | None = None


async def run_demo(plan: Plan, screen: Screen) -> Results:
    """Runs it all, and ends all that was started, whatever happens."""
    async with AsyncExitStack() as ending:
        return await _Demo(plan, screen, ending).run()


class _Demo:
    def __init__(self, plan: Plan, screen: Screen, ending: AsyncExitStack) -> None:
        self._plan = plan
        self._screen = screen
        self._ending = ending
        self._members: list[Device] = devices(plan.devices)
        self._fleet = Fleet(self._members, Measuring(plan.devices))
        self._desk = AlarmDesk(self._fleet, ALARM_TOPICS)
        self._tables = plan.folder / "tables"
        self._samples: list[Sample] = []
        self._queries: list[QueryNow] = []
        self._pipeline: Child | None = None
        self._began = 0.0
        self._began_at = 0.0  # the same as unix time
        self._spoken_s = 0.0

    async def run(self) -> Results:
        set_up_began = time.monotonic()
        self._screen.begin("a node")
        node, api = await self._start_node()
        self._screen.begin("tables, a schema and two rules; Spark starts")
        await self._declare(api)
        pipeline = await self._start_pipeline(api)
        async with asyncio.TaskGroup() as tasks:  # while Spark starts
            tasks.create_task(api.put_rules(self._tables))
            tasks.create_task(self._fleet.connect(*node))
            tasks.create_task(self._desk.open(*node))
        await self._until("all queries run", lambda: self._all_run(api), START_S)
        self._screen.begin("the devices greet")
        await self._fleet.greet()
        await self._until("all queries have had a batch", lambda: self._all_had_a_batch(api), START_S)
        set_up_s = time.monotonic() - set_up_began
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch(api))
            await self._publish()
            await self._catch_up()
            watching.cancel()
        self._screen.begin("the pipeline ends")
        await pipeline.stop(signal.SIGINT)
        sent = {device: len(times) for device, times in self._fleet.sent_at.items()}
        story = Story(
            sent, self._began_at, self._spoken_s, self._samples, self._desk.count, self._desk.delays_s, set_up_s
        )
        self._screen.begin("the tables are read")
        return await asyncio.to_thread(read_results, self._tables, self._members, story)

    # Starting

    async def _start_node(self) -> tuple[tuple[str, int], NodeApi]:
        folder = self._plan.folder
        config = folder / "brookmq.toml"
        config.write_text(CONFIG)
        arguments = ["start", "--config", str(config), "--data-dir", str(folder / "data")]
        arguments += ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        node = await Child.start("the node", arguments, folder / "node.log", {"BROOKMQ_JVM_CACHE": "use"})
        self._ending.push_async_callback(node.stop)
        addresses = await node.ready_line()
        host, _, port = addresses["mqtt"].rpartition(":")
        self._screen.tell(f"mqtt {addresses['mqtt']}  http {addresses['http']}")
        api = await self._ending.enter_async_context(NodeApi(f"http://{addresses['http']}"))
        self._ending.push_async_callback(self._fleet.close)
        self._ending.push_async_callback(self._desk.close)
        return (host, int(port)), api

    async def _declare(self, api: NodeApi) -> None:
        await api.put_schema()
        arguments = ["pipeline", "init", "--servers", api.url, "--filter", "campus/+/+/+", "--schema", "reading"]
        declaring = await Child.start(
            "pipeline init", [*arguments, "--path", str(self._tables)], self._plan.folder / "init.log"
        )
        await declaring.success()
        await api.disable_table(GOLD_MINUTE)  # it would have its first row when all is over

    async def _start_pipeline(self, api: NodeApi) -> Child:
        arguments = [
            "pipeline",
            "run",
            "--servers",
            api.url,
            "--data-dir",
            str(self._plan.folder / "pipeline"),
            "--json",
        ]
        if self._plan.master is not None:
            arguments += ["--master", self._plan.master]
        # No cache of classes for the next start is made beside: that would take the time of this one.
        pipeline = await Child.start(
            "the pipeline", arguments, self._plan.folder / "pipeline.log", {"BROOKMQ_JVM_CACHE": "use"}
        )
        self._ending.push_async_callback(pipeline.stop, signal.SIGINT)
        self._pipeline = pipeline
        return pipeline

    async def _all_run(self, api: NodeApi) -> bool:
        self._queries = await api.queries()
        self._screen.show(self._queries)
        running = {query.name for query in self._queries if query.state == "running"}
        self._screen.tell(f"{self._fleet.connected:,} devices connected, {len(running)} of {len(QUERIES)} queries run")
        return running >= QUERIES

    async def _all_had_a_batch(self, api: NodeApi) -> bool:
        self._queries = await api.queries()
        self._screen.show(self._queries)
        warm = {query.name for query in self._queries if query.batch >= 0 and not query.lag}
        self._screen.tell(f"{len(warm)} of {len(QUERIES)} queries have read them")
        return warm >= QUERIES

    # Running

    async def _publish(self) -> None:
        """For the time that was asked for and up to shortly before a window of the clock ends."""
        self._screen.begin(f"{self._plan.devices:,} devices speak")
        self._began, self._began_at = time.monotonic(), time.time()
        self._spoken_s = _window_end(self._began_at + self._plan.seconds + MARGIN_S) - MARGIN_S - self._began_at
        await self._fleet.speak(self._began + self._spoken_s)
        await self._fleet.settle()

    async def _catch_up(self) -> None:
        """Windows are over when a message comes that is later than their end by the watermark. Time is the node's
        clock, which nobody can turn forward."""
        self._screen.begin("the last window closes")
        await asyncio.sleep(_window_end(time.time()) + WATERMARK_S + MARGIN_S - time.time())
        self._desk.tick()
        sent, hot = self._fleet.sent, self._fleet.hot

        async def all_there() -> bool:
            if self._desk.count < hot:
                return False
            return await asyncio.to_thread(is_complete, self._tables, sent, hot)

        self._screen.begin("Spark catches up")
        await self._until("every reading is in the tables", all_there, CATCH_UP_S)

    async def _watch(self, api: NodeApi) -> None:
        """Notes how far the queries are, and shows it."""
        while True:
            self._queries = await api.queries()
            at_s = time.monotonic() - self._began
            self._samples.append(Sample(at_s, self._fleet.sent, {one.name: one.lag for one in self._queries}))
            self._screen.show(self._queries)
            self._screen.tell(f"{self._fleet.acknowledged:,} messages, {self._desk.count:,} alarms came back")
            await asyncio.sleep(SAMPLED_EVERY_S)

    async def _until(self, what: str, holds: Callable[[], Awaitable[bool]], patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while not await holds():
            if self._pipeline is not None:
                self._pipeline.check()
            if time.monotonic() > deadline:
                seen = ", ".join(f"{one.name} {one.state} (lag {one.lag}) {one.message or ''}" for one in self._queries)
                raise TimeoutInStepError(
                    f"after {patience_s:g} s it is still not so that {what}; seen: {seen or 'nothing'}"
                )
            await asyncio.sleep(0.25)


def _window_end(unix: float) -> float:
    """When the window ends that a moment is in."""
    return math.floor(unix / WINDOW_S + 1) * WINDOW_S

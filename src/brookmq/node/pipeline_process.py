"""``pipeline.autostart``: a pipeline that the node starts, starts again when it ends, and ends with itself.

Somebody may run a pipeline of their own; then this one waits until it is gone, as two would take each other's place for
ever. While none runs that should, there is an alarm that says why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from brookmq.base.alarms import Alarms
from brookmq.base.config import Config, parse_address
from brookmq.base.errors import OperationError
from brookmq.node.child_process import ChildProcess, reason_of
from brookmq.node.pipeline_health import PipelineHealth
from brookmq.node.rule_checker import is_installed

log = logging.getLogger("brookmq.pipeline")

ALARM: Final = "pipeline_down"
PAUSE_S_MIN: Final = 2.0  # before it is started again; a pipeline of somebody else reports twice in this time
PAUSE_S_MAX: Final = 60.0
STEADY_S: Final = 60.0  # one that ran for longer is started again soon
STOP_S: Final = 15.0  # for queries to end cleanly
PROGRAM: Final = ("-m", "brookmq", "pipeline", "run")
ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where the node is reached that listens there


def pipeline_folder(config: Config) -> Path:
    """Where a pipeline of this node keeps what it needs."""
    given = config.pipeline.data_dir
    return (Path(given) if given else Path(config.node.data_dir) / "pipeline").absolute()


class PipelineProcess:
    """``program`` and the times are for tests."""

    def __init__(
        self,
        config: Config,
        alarms: Alarms,
        health: PipelineHealth,
        program: Sequence[str] = PROGRAM,
        installed: Callable[[], bool] = is_installed,
        pause_s_min: float = PAUSE_S_MIN,
    ) -> None:
        self._config = config
        self._alarms = alarms
        self._health = health
        self._program = program
        self._installed = installed
        self._pause_s_min = pause_s_min
        self._process: ChildProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        return self._process.pid if self._process is not None else None

    def begin(self, http_address: str) -> None:
        """Once the node answers there."""
        self._task = asyncio.get_running_loop().create_task(self._keep_running(http_address))
        self._health.on_told = self._heard

    async def stop(self) -> None:
        """Let its queries end, for a while."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._process is not None:
            self._process.terminate()
            await self._process.end(STOP_S)

    async def _keep_running(self, http_address: str) -> None:
        loop = asyncio.get_running_loop()
        pause_s = self._pause_s_min
        while True:
            await self._alone(pause_s)
            began = loop.time()
            reason = await self._run(http_address)
            log.warning("the pipeline does not run: %s", reason)
            self._alarms.activate(ALARM, {"reason": reason}, f"the pipeline does not run: {reason}", time.time())
            steady = loop.time() - began > STEADY_S
            pause_s = self._pause_s_min if steady else min(2 * pause_s, PAUSE_S_MAX)

    async def _alone(self, pause_s: float) -> None:
        """Until the pause is over and nobody has reported in it."""
        while True:
            before = self._health.reports
            await asyncio.sleep(pause_s)
            if self._health.reports == before:
                return

    async def _run(self, http_address: str) -> str:
        """One life of it; the answer is why it ended."""
        if not self._installed():
            return "Spark is not installed (pip install 'brookmq[spark]')"
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            process = ChildProcess(
                [*self._program, *self._options(http_address)],
                lambda line: log.debug("%s", line.decode("utf-8", "replace").rstrip()),
                lambda text: log.debug("%s", text),
                ended.set_result,
            )
        except OperationError as error:
            return str(error)
        self._process = process
        await process.listen()
        self.starts += 1
        log.info("the pipeline is started", extra={"pipeline_pid": process.pid})
        code = await asyncio.shield(ended)
        self._process = None
        last = f": {process.last_words[-1]}" if process.last_words else ""
        return f"it ended with {reason_of(code)}{last}"

    def _options(self, http_address: str) -> list[str]:
        pipeline = self._config.pipeline
        return [
            "--servers",
            own_url(http_address),
            "--master",
            pipeline.master,
            "--data-dir",
            str(pipeline_folder(self._config)),
            "--rows-per-batch",
            str(pipeline.rows_per_batch),
        ]

    def _heard(self) -> None:
        if self._alarms.deactivate(ALARM, time.time()):
            log.info("the pipeline runs")


def own_url(http_address: str) -> str:
    """How a program on the same machine reaches the node."""
    address = parse_address(http_address)
    return f"http://{address._replace(host=ANYWHERE.get(address.host, address.host))}"

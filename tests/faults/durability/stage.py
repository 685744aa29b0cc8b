"""The node of a run: started again on the same folder each time that it dies, and the hand that kills it.

Only processes that the stage has started are killed, by their pid.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from brookmq.base.faults import ENVIRONMENT, Ledger, Victim
from tests.faults.durability.history import History, Killed
from tests.harness.node import Node, NotReadyError

STARTS_MAX = 10  # of a node that is killed while it starts
LOOK_SECONDS = 0.005
BOUNDS = {"table.tail_records": 150}  # so that snapshots are written every few seconds
STORE_PROGRAM = "nats-server"


@asynccontextmanager
async def staged(
    folder: Path, config: str = "", *, breaks: tuple[str, ...] = (), data: Path | None = None
) -> AsyncIterator[Stage]:
    """A node that lives until the end of the test, again and again; ``data``: a folder elsewhere."""
    stage = Stage(folder, config, breaks=breaks, data=data)
    try:
        await stage.open()
        yield stage
    except BaseException:
        await stage.abandon()
        raise
    await stage.close()


class Stage:
    """``Ground`` for the clients, and the lives of a node on one folder."""

    def __init__(
        self, folder: Path, config: str = "", *, breaks: tuple[str, ...] = (), data: Path | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.data = data or folder / "data"
        self.config = config
        self.history = History()
        self.ledger = Ledger.create(folder / "faults", *breaks, bounds=BOUNDS)
        self.life = 0
        self.kills = 0
        self.failures: list[str] = []  # of clients: a malformed packet, a bug in a test
        self.node: Node | None = None
        self._up = asyncio.Event()
        self._connections = itertools.count(1)
        self._keeper: asyncio.Task[None] | None = None

    # what the clients need

    async def address(self) -> tuple[tuple[str, int], int]:
        await self._up.wait()
        assert self.node is not None
        return self.node.mqtt, self.life

    def next_connection(self) -> int:
        return next(self._connections)

    # lives

    async def open(self) -> None:
        """The first life, and whoever keeps the node alive from then on."""
        asyncio.get_running_loop().set_exception_handler(self._failed)
        await self._start()
        self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """SIGTERM: the last life ends in order."""
        await self._stop_keeping()
        self._up.clear()
        node, self.node = self.node, None
        self.ledger.close()
        if node is not None:
            code = await asyncio.to_thread(node.stop)
            assert code == 0, f"the node ended with {code}:\n{node.log()}"

    async def abandon(self) -> None:
        """kill -9, after a failure."""
        await self._stop_keeping()
        if self.node is not None:
            await asyncio.to_thread(self.node.kill)
        self.ledger.close()

    @property
    def up(self) -> bool:
        return self._up.is_set()

    async def _stop_keeping(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _start(self) -> None:
        for _ in range(STARTS_MAX):
            self.life += 1
            try:
                self.node = await asyncio.to_thread(self._launch)
            except NotReadyError as error:
                if "exit code -9" not in str(error):
                    raise
                self._died("while it started")
                continue
            self._up.set()
            return
        raise AssertionError(f"the node was killed at each of {STARTS_MAX} starts")

    def _launch(self) -> Node:
        return Node(
            self.folder / f"life{self.life}",
            self.config,
            arguments=("--data-dir", str(self.data)),
            environment={ENVIRONMENT: str(self.folder / "faults")},
        )

    async def _keep(self) -> None:
        """Starts the node again whenever it has been killed; any other end of it is a failure."""
        while True:
            node = self.node
            assert node is not None
            while node.process.poll() is None:  # noqa: ASYNC110 - another process
                await asyncio.sleep(LOOK_SECONDS)
            self._up.clear()
            await asyncio.to_thread(node.kill)  # closes its files
            if node.process.returncode != -signal.SIGKILL:
                self.failures.append(f"the node ended with {node.process.returncode}:\n{node.log()}")
            node.check_log()
            self._died("")
            await self._start()

    def _died(self, when: str) -> None:
        self.history.add(Killed(self.life, f"node {when}"))

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def check(self) -> None:
        """Whether clients and keeper could do their work."""
        if self._keeper is not None and self._keeper.done() and not self._keeper.cancelled():
            self._keeper.result()
        assert not self.failures, "\n".join(self.failures)

    # kills

    def kill(self, victim: Victim) -> None:
        """kill -9 at once, from outside."""
        node = self.node
        if node is None or node.process.poll() is not None:
            return
        store = None if victim is Victim.NODE else self.store_pid(node)
        if store is not None:
            os.kill(store, signal.SIGKILL)
            self.history.add(Killed(self.life, "store"))
        if victim is not Victim.STORE:
            node.process.kill()
        self.kills += 1

    @contextmanager
    def frozen_store(self) -> Iterator[None]:
        """The store neither answers nor writes; goes on afterwards, if it still lives."""
        store = None if self.node is None else self.store_pid(self.node)
        assert store is not None, "there is no store to freeze"
        os.kill(store, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.kill(store, signal.SIGCONT)

    @staticmethod
    def store_pid(node: Node) -> int | None:
        """The store among the node's children."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(node.process.pid).children():
                with suppress(psutil.NoSuchProcess):  # it ends while it is looked at
                    if child.name() == STORE_PROGRAM:
                        return int(child.pid)
        return None

"""The node's own store: a nats-server that is started, watched, restarted and stopped last.

A thin shell around `SupervisionMachine`: it runs the orders and tells what happened. Who uses the store needs four
things of it: `addresses`, `credentials` (with `tls`), whether it is `ready`, and else the `diagnosis`.

A folder with a membership (`brookmq cluster init`, `join`) makes it one of a cluster's stores. A member that is there
but has no majority of the others is never started anew for that: it waits for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path

from brookmq.base.errors import OperationError
from brookmq.store import machine
from brookmq.store.core_address import joined
from brookmq.store.diagnosis import Diagnosis, Trouble, deletes_data, diagnose, ends_writes
from brookmq.store.folder import DataFolder, FolderFullError, FolderUnwritableError, trouble_with, write_file
from brookmq.store.machine import State, SupervisionMachine
from brookmq.store.membership import REPLICAS, read_membership
from brookmq.store.mending import mend_streams
from brookmq.store.prepare import PORTS, SETTINGS, Prepared, StoreOptions, prepare
from brookmq.store.probe import Outcome, Probe
from brookmq.store.process import ServerProcess
from brookmq.store.settings_file import Credentials, render

__all__ = ["StoreOptions", "StoreServer"]

log = logging.getLogger("brookmq.store")

READY_WAIT_SECONDS = 1.5  # that `start` waits: a node is ready within 2 s, or opens its listeners without its store
PORT_POLL_SECONDS_MIN = 0.005  # a small store listens after some 20 ms
PORT_POLL_SECONDS_MAX = 0.1
PROBE_SECONDS = 1.0  # between two questions to a store that is ready
RETRY_SECONDS = 0.05  # between two questions to one that is not
# Of a member: a question that comes to the cluster while it elects gets no answer, so it is asked again soon; and as
# long as an election may take, silence is no trouble.
MEMBER_ANSWER_SECONDS_MAX = 1.0
ELECTION_SECONDS_MAX = 10.0

# What an operator has to change before a start can work: said at start, not waited for.
_NEEDS_OPERATOR = frozenset({Trouble.PORT_IN_USE, Trouble.SETTINGS_REFUSED})


class StoreServer:
    """``on_ready()`` and ``on_down(diagnosis)`` are called on the loop, also when only the diagnosis changed.

    ``on_deleted(line)`` is called when the server says that it deletes a stream by itself, which is worth an alarm.
    """

    def __init__(
        self,
        folder: DataFolder,
        options: StoreOptions,
        on_ready: Callable[[], None],
        on_down: Callable[[Diagnosis], None],
        on_deleted: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = folder
        self._options = options
        self._on_ready = on_ready
        self._on_down = on_down
        self._on_deleted = on_deleted
        self._membership = membership = read_membership(folder)
        self._host = membership.own_host if membership else options.host
        self._port = membership.node.port if membership else options.port
        self._machine = SupervisionMachine(self._port)
        self._prepared: Prepared | None = None
        self._silent_since: float | None = None  # of a member that is there and has no answer from its cluster
        self._process: ServerProcess | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._launch_task: asyncio.Task[None] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()  # set at every report, for those who wait in start and stop

    @property
    def ready(self) -> bool:
        return self._machine.state is State.READY

    @property
    def diagnosis(self) -> Diagnosis | None:
        """Why the store does not serve; None while it does, and while its first start is under way."""
        return self._machine.diagnosis

    @property
    def reason(self) -> str:
        """The diagnosis as a sentence, also before there is one; empty while the store serves."""
        if self.ready:
            return ""
        if self.diagnosis is not None:
            return self.diagnosis.text
        alone = self._membership is not None and self._silent_since is not None
        return self._no_majority() if alone else f"the store is {self._machine.state.name.lower()}"

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process and self._machine.running else None

    @property
    def addresses(self) -> list[str]:
        """Where clients connect; known once the store was ready. The port can change: ask again in `on_ready`."""
        return [] if self._machine.port is None else [self._address(self._machine.port)]

    @property
    def credentials(self) -> Credentials | None:
        return self._prepared.credentials if self._prepared else None

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What clients need besides the credentials; None for a lone store."""
        return self._prepared.tls if self._prepared else None

    @property
    def replicas(self) -> int:
        """Copies that every stream should have."""
        return REPLICAS if self._membership else 1

    async def admit(self, readers: Sequence[Credentials]) -> None:
        """Let these readers in, and nobody else who was before; OperationError when that can't be done now."""
        if self._membership is not None:
            raise OperationError("the store of a cluster's core asks for a certificate, which no reader has")
        if self._prepared is None or self._process is None or not self._machine.running:
            raise OperationError(self.reason)
        text = render(replace(self._prepared.settings, readers=tuple(readers)))
        try:
            await asyncio.to_thread(write_file, self._folder.store_path / SETTINGS, text)
        except OSError as error:
            raise trouble_with(self._folder.path, error) from None
        await self._process.reload()

    async def prepare(self) -> None:
        """Look whether a start can work; OperationError for what only the operator can change. `start` does it, too."""
        try:
            self._prepared = await asyncio.to_thread(prepare, self._folder, self._options, self._membership)
        except OSError as error:
            raise trouble_with(self._folder.path, error) from None
        if self._membership is not None:
            for port in (self._membership.node.port, self._membership.node.route_port):
                _check_port(self._membership.listen, port, "the other cores know it there: end what has it")
        elif self._port is not None:
            _check_port(self._host, self._port, "choose another one with store.port")

    async def start(self, wait_seconds: float = READY_WAIT_SECONDS) -> bool:
        """Start it and wait for a while; whether it is ready. If not, supervision goes on and `on_ready` will tell.

        What only the operator can change (no program, one too old, settings refused, the configured port in use) is an
        OperationError, and nothing is left running.
        """
        if self._prepared is None:
            await self.prepare()
        self._apply(machine.StartAsked())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_seconds):
                while not self.ready and self._machine.state is not State.STOPPED:
                    self._changed.clear()
                    await self._changed.wait()
                    await self._stop_if_hopeless()
        return self.ready

    async def stop(self) -> None:
        """End it in order; returns when no process is left, at the latest after the bound of the machine."""
        self._apply(machine.StopAsked())
        while self._machine.state is not State.STOPPED:
            self._changed.clear()
            await self._changed.wait()
        if self._launch_task is not None:
            await self._launch_task
        await self._cancel_watch()

    # ── start ──

    async def _stop_if_hopeless(self) -> None:
        found = self._machine.diagnosis
        if found is None or found.trouble not in _NEEDS_OPERATOR:
            return
        if found.trouble is Trouble.PORT_IN_USE and self._port is None:
            return
        await self.stop()
        raise OperationError(f"the store cannot start: {found.text}")

    # ── the machine's orders ──

    def _apply(self, event: machine.Event) -> None:
        loop = asyncio.get_running_loop()
        for action in self._machine.handle(event, loop.time()):
            self._run(action)
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._machine.deadline
        self._timer = None if deadline is None else loop.call_at(deadline, self._apply, machine.Tick())

    def _run(self, action: machine.Action) -> None:
        match action:
            case machine.Launch(port):
                self._launch_task = _surfacing(self._launch(port))
            case machine.Terminate() if self._process:
                self._process.terminate()
            case machine.Kill() if self._process:
                self._process.kill()
            case machine.ReportReady():
                log.debug("the store is ready", extra={"address": self.addresses[0], "store_pid": self.pid})
                self._changed.set()
                self._on_ready()
            case machine.ReportDown(diagnosis):
                log.debug("the store does not serve", extra={"reason": diagnosis.text})
                self._changed.set()
                self._on_down(diagnosis)
            case machine.ReportStopped():
                self._changed.set()

    async def _launch(self, port: int | None) -> None:
        await self._cancel_watch()
        try:
            await asyncio.to_thread(self._folder.check_room, self._options.room_bytes_min)
            await asyncio.to_thread(mend_streams, self._folder.store_path)
            self._process = self._spawn(port)
        except OSError as error:
            self._apply(machine.StartFailed(_diagnosis(trouble_with(self._folder.path, error))))
        except OperationError as error:
            self._apply(machine.StartFailed(_diagnosis(error)))
        else:
            self._apply(machine.Started())
            await self._process.listen()
            self._watch_task = _surfacing(self._watch(self._process))

    def _spawn(self, port: int | None) -> ServerProcess:
        assert self._prepared is not None
        path = self._folder.store_path
        for stale in (path / PORTS).glob("*.ports"):  # of servers that were killed
            stale.unlink(missing_ok=True)
        command: list[str | Path] = [self._prepared.binary.path, "-c", path / SETTINGS]
        if port is not None:
            command += ["--port", str(port)]
        return ServerProcess(command, [self._folder.lock_descriptor], self._on_line, self._on_exit)

    # ── what the process tells ──

    def _on_line(self, line: str) -> None:
        if ends_writes(line):
            self._apply(machine.WritesEnded(diagnose(line)))
        if deletes_data(line):
            log.error("the store deletes a stream that its cluster does not know: %s", line)
            if self._on_deleted is not None:
                self._on_deleted(line)

    def _on_exit(self, code: int, last_complaint: str) -> None:
        if self._watch_task is not None:
            self._watch_task.cancel()
        self._apply(machine.Exited(code, last_complaint))

    async def _watch(self, process: ServerProcess) -> None:
        """Learn the port, then ask again and again whether JetStream answers."""
        port = await self._learn_port(process)
        probe = Probe([self._address(port)], self.credentials, self.tls)
        self._silent_since = None
        try:
            while True:
                answer = await probe.ask(MEMBER_ANSWER_SECONDS_MAX if self._membership else None)
                if answer.outcome is Outcome.ANSWERED:
                    self._silent_since = None
                    if not self.ready:
                        self._apply(machine.BecameReady(port))
                elif answer.outcome is Outcome.DISABLED:
                    self._apply(machine.WritesEnded(Diagnosis(Trouble.OTHER, answer.reason)))
                elif self._membership is not None and await probe.reaches():
                    self._wait_for_others()
                else:
                    self._apply(machine.FellSilent(answer.reason))
                    if process.has_worked():
                        self._apply(machine.Worked())
                await asyncio.sleep(PROBE_SECONDS if self.ready and self._silent_since is None else RETRY_SECONDS)
        finally:
            await probe.close()

    def _wait_for_others(self) -> None:
        """A member is there and its cluster does not answer: it elects, or has no majority."""
        self._apply(machine.Worked())
        now = asyncio.get_running_loop().time()
        if self._silent_since is None:
            self._silent_since = now
        if now - self._silent_since > ELECTION_SECONDS_MAX:
            self._apply(machine.FellSilent(self._no_majority()))

    def _no_majority(self) -> str:
        assert self._membership is not None
        cores = ", ".join(core.store for core in self._membership.cores)
        return (
            f"the store waits for others of the cluster {self._membership.cluster}: "
            f"{self._membership.majority} of {cores} have to be there, and all of them at the first start"
        )

    def _address(self, port: int) -> str:
        return f"{'tls' if self._membership else 'nats'}://{joined(self._host, port)}"

    async def _learn_port(self, process: ServerProcess) -> int:
        """From the file that the server writes once it listens; until then it is reading its journal back."""
        ports, pause = self._folder.store_path / PORTS, PORT_POLL_SECONDS_MIN
        while True:
            for file in ports.glob(f"*_{process.pid}.ports"):
                with contextlib.suppress(ValueError, LookupError, OSError):  # half written, or gone again
                    return int(json.loads(file.read_text("utf-8"))["nats"][0].rpartition(":")[2])
            if process.has_worked():
                self._apply(machine.Worked())
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, PORT_POLL_SECONDS_MAX)

    async def _cancel_watch(self) -> None:
        task, self._watch_task = self._watch_task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


def _surfacing(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """A task whose failure, which is a bug, is told at once, and not when somebody looks."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    def done(ended: asyncio.Task[None]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            loop.call_exception_handler({"message": "the store's supervision failed", "exception": error})

    task.add_done_callback(done)
    return task


def _check_port(host: str, port: int, advice: str) -> None:
    """Asked before the server tries: it may take its time to say so, and a node that starts waits for it briefly."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                where = joined(host, port)
                raise OperationError(f"the store cannot start: its port is in use ({where}); {advice}") from None
            # Anything else is for the server to say: it knows names, and what listening needs.


def _diagnosis(error: OperationError) -> Diagnosis:
    if isinstance(error, FolderFullError):
        return Diagnosis(Trouble.DISK_FULL, str(error))
    trouble = Trouble.UNWRITABLE if isinstance(error, FolderUnwritableError) else Trouble.OTHER
    return Diagnosis(trouble, str(error))

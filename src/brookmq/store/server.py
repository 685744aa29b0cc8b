"""The node's own store: a nats-server that is started, watched, restarted and stopped last.

A thin shell around `SupervisionMachine`: it runs the orders and tells what happened. Who uses the store needs four
things of it: `addresses`, `credentials`, whether it is `ready`, and else the `diagnosis`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path

from brookmq.base.errors import OperationError
from brookmq.store import machine
from brookmq.store.binary import Binary, find_binary
from brookmq.store.diagnosis import Diagnosis, Trouble, diagnose, ends_writes
from brookmq.store.folder import ROOM_BYTES_MIN, DataFolder, FolderFullError, FolderUnwritableError, trouble_with
from brookmq.store.machine import State, SupervisionMachine
from brookmq.store.probe import Outcome, Probe
from brookmq.store.process import ServerProcess
from brookmq.store.settings_file import Credentials, ServerSettings, keep_credentials, write_settings

log = logging.getLogger("brookmq.store")

READY_WAIT_SECONDS = 1.5  # that `start` waits: a node is ready within 2 s, or opens its listeners without its store
PORT_POLL_SECONDS_MIN = 0.005  # a small store listens after some 20 ms
PORT_POLL_SECONDS_MAX = 0.1
PROBE_SECONDS = 1.0  # between two questions to a store that is ready
RETRY_SECONDS = 0.05  # between two questions to one that is not

# What an operator has to change before a start can work: said at start, not waited for.
_NEEDS_OPERATOR = frozenset({Trouble.PORT_IN_USE, Trouble.SETTINGS_REFUSED})


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What the configuration may say. ``port`` None: any free one."""

    server_name: str
    binary: str | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    room_bytes_min: int = ROOM_BYTES_MIN


class StoreServer:
    """``on_ready()`` and ``on_down(diagnosis)`` are called on the loop, also when only the diagnosis changed."""

    def __init__(
        self,
        folder: DataFolder,
        options: StoreOptions,
        on_ready: Callable[[], None],
        on_down: Callable[[Diagnosis], None],
    ) -> None:
        self._folder = folder
        self._options = options
        self._on_ready = on_ready
        self._on_down = on_down
        self._machine = SupervisionMachine(options.port)
        self._binary: Binary | None = None
        self._credentials: Credentials | None = None
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
        return self.diagnosis.text if self.diagnosis else f"the store is {self._machine.state.name.lower()}"

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process and self._machine.running else None

    @property
    def addresses(self) -> list[str]:
        """Where clients connect; known once the store was ready. The port can change: ask again in `on_ready`."""
        return [] if self._machine.port is None else [f"nats://{self._options.host}:{self._machine.port}"]

    @property
    def credentials(self) -> Credentials | None:
        return self._credentials

    async def start(self, wait_seconds: float = READY_WAIT_SECONDS) -> bool:
        """Start it and wait for a while; whether it is ready. If not, supervision goes on and `on_ready` will tell.

        What only the operator can change (no program, one too old, settings refused, the configured port in use) is an
        OperationError, and nothing is left running.
        """
        try:
            await asyncio.to_thread(self._prepare)
        except OSError as error:
            raise trouble_with(self._folder.path, error) from None
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

    def _prepare(self) -> None:
        """All that blocks, in a thread."""
        path = self._folder.store_path
        self._binary = find_binary(self._options.binary)
        self._credentials = keep_credentials(path / "credentials")
        ports = path / "ports"
        ports.mkdir(mode=0o700, exist_ok=True)
        settings = ServerSettings(
            self._options.server_name, path, ports, self._credentials, self._options.host, self._options.port
        )
        write_settings(path / "nats.conf", settings, self._binary)

    async def _stop_if_hopeless(self) -> None:
        found = self._machine.diagnosis
        if found is None or found.trouble not in _NEEDS_OPERATOR:
            return
        if found.trouble is Trouble.PORT_IN_USE and self._options.port is None:
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
                log.info("the store is ready", extra={"address": self.addresses[0], "store_pid": self.pid})
                self._changed.set()
                self._on_ready()
            case machine.ReportDown(diagnosis):
                log.warning("the store does not serve", extra={"reason": diagnosis.text})
                self._changed.set()
                self._on_down(diagnosis)
            case machine.ReportStopped():
                self._changed.set()

    async def _launch(self, port: int | None) -> None:
        await self._cancel_watch()
        try:
            await asyncio.to_thread(self._folder.check_room, self._options.room_bytes_min)
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
        assert self._binary is not None
        path = self._folder.store_path
        for stale in (path / "ports").glob("*.ports"):  # of servers that were killed
            stale.unlink(missing_ok=True)
        command: list[str | Path] = [self._binary.path, "-c", path / "nats.conf"]
        if port is not None:
            command += ["--port", str(port)]
        return ServerProcess(command, [self._folder.lock_descriptor], self._on_line, self._on_exit)

    # ── what the process tells ──

    def _on_line(self, line: str) -> None:
        if ends_writes(line):
            self._apply(machine.WritesEnded(diagnose(line)))

    def _on_exit(self, code: int, last_complaint: str) -> None:
        if self._watch_task is not None:
            self._watch_task.cancel()
        self._apply(machine.Exited(code, last_complaint))

    async def _watch(self, process: ServerProcess) -> None:
        """Learn the port, then ask again and again whether JetStream answers."""
        port = await self._learn_port(process)
        probe = Probe([f"nats://{self._options.host}:{port}"], self._credentials)
        try:
            while True:
                answer = await probe.ask()
                if answer.outcome is Outcome.ANSWERED:
                    if not self.ready:
                        self._apply(machine.BecameReady(port))
                elif answer.outcome is Outcome.DISABLED:
                    self._apply(machine.WritesEnded(Diagnosis(Trouble.OTHER, answer.reason)))
                else:
                    self._apply(machine.FellSilent(answer.reason))
                    if process.has_worked():
                        self._apply(machine.Worked())
                await asyncio.sleep(PROBE_SECONDS if self.ready else RETRY_SECONDS)
        finally:
            await probe.close()

    async def _learn_port(self, process: ServerProcess) -> int:
        """From the file that the server writes once it listens; until then it is reading its journal back."""
        ports, pause = self._folder.store_path / "ports", PORT_POLL_SECONDS_MIN
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


def _diagnosis(error: OperationError) -> Diagnosis:
    if isinstance(error, FolderFullError):
        return Diagnosis(Trouble.DISK_FULL, str(error))
    trouble = Trouble.UNWRITABLE if isinstance(error, FolderUnwritableError) else Trouble.OTHER
    return Diagnosis(trouble, str(error))

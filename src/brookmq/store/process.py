"""One process of the store: started, listened to, awaited. It knows nothing of restarts.

It runs in a session of its own, so that Ctrl-C in a terminal reaches the node alone and the node stops its store last;
it dies with the node (see `tether`); and it holds the folder's lock. The end is noticed through a pidfd, which needs no
SIGCHLD handler and so gets in nobody's way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from brookmq.base.errors import OperationError
from brookmq.store.diagnosis import parse

log = logging.getLogger("brookmq.store")

TETHER = Path(__file__).with_name("tether.py")
LINE_BYTES_MAX = 8_192  # of a line on stderr; what is longer is cut
LAST_WORDS_SECONDS_MAX = 0.2  # from the end of the process to the end of what it said

_LEVELS = {"WRN": logging.WARNING, "ERR": logging.ERROR, "FTL": logging.ERROR}
# Said at every start: the password is in a file that nobody else can read, as is the certificate's key of others.
_EXPECTED = "Plaintext passwords detected"
_RELOADED = "Reloaded server configuration"
_NOT_RELOADED = "Failed to reload server configuration"
RELOAD_SECONDS_MAX = 5.0  # a few milliseconds, unless the machine is very busy
_PANICS = ("panic:", "fatal error:")  # the lines after these are a stack trace

WORK_SECONDS_MIN = 1.0  # between two looks at what the process does
WORK_TICKS_MIN = 5  # clock ticks (10 ms) per second: an idle server uses less than one
WORK_READ_BYTES_MIN = 1024 * 1024  # from the disk since the last look


class _Work(NamedTuple):
    time: float
    ticks: int
    read_bytes: int


class ServerProcess:
    """``on_line(line)`` is called for each line on stderr, ``on_exit(code, last_complaint)`` once, after all of them.

    The thread that makes it must live as long as the node: the kernel takes the end of that thread for the parent's.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        inherited: Sequence[int],
        on_line: Callable[[str], None],
        on_exit: Callable[[int, str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_line = on_line
        self._on_exit = on_exit
        self._complaint = ""  # the last line that was an error; of a panic its first
        self._work = _Work(self._loop.time(), 0, 0)
        self.looks = 0  # at what the process does
        self._pipe: asyncio.ReadTransport | None = None  # its stderr
        self._silent = asyncio.Event()  # stderr is at its end
        self._reload: asyncio.Future[str] | None = None  # somebody waits for what it says about its settings
        full = [sys.executable, "-I", "-S", TETHER, str(os.getpid()), *command]
        try:
            self._popen = subprocess.Popen(  # noqa: S603  the program that the operator chose
                full, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, pass_fds=inherited
            )
        except OSError as error:
            raise OperationError(f"{command[0]} cannot be run: {error.strerror}") from None
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        self._ending: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Take its stderr; call it right after making the process."""
        assert self._popen.stderr is not None
        self._pipe, _ = await self._loop.connect_read_pipe(
            lambda: _Lines(self._line, self._silent.set), self._popen.stderr
        )

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    async def reload(self) -> None:
        """Have it read its settings again; OperationError when it does not take them. One at a time."""
        self._reload = self._loop.create_future()
        self._send(signal.SIGHUP)
        try:
            async with asyncio.timeout(RELOAD_SECONDS_MAX):
                refusal = await self._reload
        except TimeoutError:
            refusal = f"no answer within {RELOAD_SECONDS_MAX:.0f} s"
        finally:
            self._reload = None
        if refusal:
            raise OperationError(f"the store does not take its new settings: {refusal}")

    def has_worked(self) -> bool:
        """Whether it was busy since the last look, which was at least a second ago: reading its journal back."""
        now = self._loop.time()
        before = self._work
        if now - before.time < WORK_SECONDS_MIN:
            return False
        found = self._measure(now)
        if found is None:
            return False
        self._work = found
        self.looks += 1
        share = WORK_TICKS_MIN * (now - before.time)
        return found.ticks - before.ticks >= share or found.read_bytes - before.read_bytes >= WORK_READ_BYTES_MIN

    def _measure(self, now: float) -> _Work | None:
        folder = Path("/proc", str(self.pid))
        try:
            stat = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            read = next(line for line in (folder / "io").read_text("ascii").splitlines() if line[:11] == "read_bytes:")
        except (OSError, StopIteration):
            return None
        return _Work(now, int(stat[11]) + int(stat[12]), int(read[11:]))  # user and system time, see proc(5)

    def _send(self, number: signal.Signals) -> None:
        if self._pidfd >= 0:  # not reaped, so the pid is still its own
            self._popen.send_signal(number)

    def _line(self, line: str) -> None:
        level, text = parse(line)
        if level in ("ERR", "FTL") and not self._complaint.startswith(_PANICS):
            self._complaint = line
        if self._reload is not None and text.startswith((_RELOADED, _NOT_RELOADED)):
            self._answer_reload("" if text.startswith(_RELOADED) else text)
        expected = text.startswith(_EXPECTED)
        log.log(
            logging.DEBUG if expected else _LEVELS.get(level, logging.DEBUG), "%s", text, extra={"store_pid": self.pid}
        )
        self._on_line(line)

    def _answer_reload(self, refusal: str) -> None:
        if self._reload is not None and not self._reload.done():
            self._reload.set_result(refusal)

    def _ended(self) -> None:
        self._answer_reload("it has ended")
        self._loop.remove_reader(self._pidfd)
        self._popen.wait()
        os.close(self._pidfd)
        self._pidfd = -1
        self._ending = self._loop.create_task(self._report_end())

    async def _report_end(self) -> None:
        try:
            await asyncio.wait_for(self._silent.wait(), LAST_WORDS_SECONDS_MAX)
        except TimeoutError:
            log.debug("the store has ended, and somebody still has its stderr")
        if self._pipe is not None:
            self._pipe.close()
        self._on_exit(self._popen.returncode, self._complaint)


class _Lines(asyncio.Protocol):
    """Cuts what arrives into lines, of a bounded length each."""

    def __init__(self, on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line)
        self._rest = rest[:LINE_BYTES_MAX]

    def connection_lost(self, error: Exception | None) -> None:
        if self._rest:
            self._take(self._rest)
        self._on_end()

    def _take(self, line: bytes) -> None:
        self._on_line(line[:LINE_BYTES_MAX].decode("utf-8", "replace"))

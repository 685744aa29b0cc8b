"""A program of BrookMQ's that a node runs beside itself, over its pipes: the rule checker, a pipeline.

It is tied to the node as the store is (`brookmq.store.tether`): the kernel kills it when the node dies, whatever the
node dies of; it has a session of its own, so that Ctrl-C in a terminal reaches the node alone, and so that all that it
has started can be killed with it. What a JVM below it needs to notice the end is its own pipe to this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from brookmq.base.errors import OperationError
from brookmq.store.process import TETHER

LINE_BYTES_MAX: Final = 64 * 1024 * 1024  # of stdout: the answer to the largest question
ERROR_LINE_BYTES_MAX: Final = 8_192  # of stderr; what is longer is cut
LAST_WORDS_MAX: Final = 20  # lines of stderr that are remembered
LAST_WORDS_S: Final = 1.0  # from the end of the process to the end of what it said


class ChildProcess:
    """``on_line`` gets the lines of stdout, ``on_complaint`` those of stderr, ``on_exit`` the exit code, last of all.

    Call `listen` right after making it. The thread that makes it must live as long as the node.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        on_line: Callable[[bytes], None],
        on_complaint: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_line = on_line
        self._on_complaint = on_complaint
        self._on_exit = on_exit
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS_MAX)
        command = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), sys.executable, "-P", *arguments]
        try:
            self._popen = subprocess.Popen(  # noqa: S603  a module of our own
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise OperationError(f"{arguments[-1]} can't be started: {error.strerror}") from None
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        self._ending: asyncio.Task[None] | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._outputs: list[asyncio.ReadTransport] = []
        self._silent: list[asyncio.Event] = []  # stdout and stderr are at their ends
        self._exited = asyncio.Event()

    @property
    def running(self) -> bool:
        return self._pidfd >= 0

    async def listen(self) -> None:
        """Take its pipes."""
        popen, loop = self._popen, self._loop
        assert popen.stdin is not None
        self._stdin, _ = await loop.connect_write_pipe(asyncio.Protocol, popen.stdin)
        for pipe, taken, most in (
            (popen.stdout, self._on_line, LINE_BYTES_MAX),
            (popen.stderr, self._complaint, ERROR_LINE_BYTES_MAX),
        ):
            silent = asyncio.Event()
            self._silent.append(silent)
            lines = _Lines(taken, silent.set, most)
            transport, _ = await loop.connect_read_pipe(lambda lines=lines: lines, pipe)  # type: ignore[misc]
            self._outputs.append(transport)

    def write(self, data: bytes) -> None:
        """To its stdin. What it does not take waits here: one question at a time is what the caller makes of it."""
        if self._stdin is not None:
            self._stdin.write(data)

    def close_stdin(self) -> None:
        """The polite end."""
        if self._stdin is not None:
            self._stdin.close()

    def terminate(self) -> None:
        """SIGTERM, to this process alone: it ends what it has started."""
        if self.running:
            self._popen.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """With all that is in its session."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self, patience_s: float) -> None:
        """Wait for its end, and make one when the patience is over."""
        try:
            async with asyncio.timeout(patience_s):
                await self._exited.wait()
        except TimeoutError:
            self.kill()
            await self._exited.wait()

    def _complaint(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self.last_words.append(text)
            self._on_complaint(text)

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        code = self._popen.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # what it has left behind
        os.close(self._pidfd)
        self._pidfd = -1
        self._ending = self._loop.create_task(self._report_end(code))

    async def _report_end(self, code: int) -> None:
        with contextlib.suppress(TimeoutError):  # somebody else may still have its pipes
            async with asyncio.timeout(LAST_WORDS_S):
                for silent in self._silent:
                    await silent.wait()
        for transport in (self._stdin, *self._outputs):
            if transport is not None:
                transport.close()
        self._exited.set()
        self._on_exit(code)


def reason_of(code: int) -> str:
    """An exit code as a person would say it."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


class _Lines(asyncio.Protocol):
    """Cuts what arrives into lines. One that is too long is cut off, and what follows up to its end is not taken."""

    def __init__(self, on_line: Callable[[bytes], None], on_end: Callable[[], None], most: int) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._most = most
        self._pieces: list[bytes] = []  # of the line that has not ended
        self._length = 0

    def data_received(self, data: bytes) -> None:
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            self._take()
        self._add(rest)

    def connection_lost(self, error: Exception | None) -> None:
        if self._length:
            self._take()
        self._on_end()

    def _add(self, piece: bytes) -> None:
        piece = piece[: self._most - self._length]
        self._pieces.append(piece)
        self._length += len(piece)

    def _take(self) -> None:
        line = b"".join(self._pieces)
        self._pieces.clear()
        self._length = 0
        self._on_line(line)

"""The processes of the demo: started in sessions of their own, so that Ctrl-C in a terminal reaches this one alone,
which ends them in order; and ended by the kernel when this one dies."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

READY: Final = "brookmq ready "
READY_S: Final = 60.0
STOP_S: Final = 40.0
TAIL_LINES: Final = 12
PR_SET_PDEATHSIG: Final = 1  # prctl(2)


class ProcessError(Exception):
    """A process that did not do what it should; the message has the end of its log."""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """A command of ``brookmq``, with its output in a file."""

    def __init__(self, title: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self._title = title
        self._process = process
        self._log = log

    @classmethod
    async def start(
        cls, title: str, arguments: list[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> Child:
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "brookmq", *arguments,
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                env={**os.environ, **(environment or {})}, start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        return cls(title, process, log)

    def check(self) -> None:
        if self._process.returncode is not None:
            raise ProcessError(f"{self._title} has ended with code {self._process.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])

    async def ready_line(self) -> dict[str, str]:
        """What a node says once it takes connections: ``mqtt``, ``http`` and so on."""
        deadline = asyncio.get_running_loop().time() + READY_S
        while True:
            found = re.search(rf"^{READY}(.*)$", self._log.read_text(errors="replace"), re.MULTILINE)
            if found:
                return dict(pair.split("=", 1) for pair in found[1].split())
            self.check()
            if asyncio.get_running_loop().time() > deadline:
                raise ProcessError(f"{self._title} is not ready after {READY_S:g} s:\n{self.tail()}")
            await asyncio.sleep(0.05)

    async def success(self) -> None:
        """Until it has ended by itself, and well."""
        if await self._process.wait():
            self.check()

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it; the exit code. What does not end by itself is killed, with all that belongs to it."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(how)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return await self._process.wait()

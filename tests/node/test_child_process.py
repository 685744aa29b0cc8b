"""Programs beside the node: what they say is heard in lines, their end is told once, and nothing of them stays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from brookmq.node import child_process as child_process_module
from brookmq.node.child_process import ChildProcess, reason_of
from tests.node.child_programs import DEADLINE_S, program, wait_until_gone

ECHO = """
import sys
for line in sys.stdin:
    print(line.strip().upper(), flush=True)
    print("heard " + line.strip(), file=sys.stderr, flush=True)
sys.exit(7)
"""
DEAF = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\ntime.sleep(600)\n"
)
TALKER = "import sys\nsys.stdout.write('x' * 100 + '\\nshort\\n' + 'y' * 5)\nsys.stderr.write('z' * 30 + '\\n')\n"
PARENT = """
import asyncio, sys
from brookmq.node.child_process import ChildProcess

async def main():
    ready = asyncio.Event()
    child = ChildProcess([sys.argv[1]], lambda line: print(child.pid, flush=True), print, lambda code: None)
    await child.listen()
    await asyncio.sleep(600)

asyncio.run(main())
"""


class Heard:
    def __init__(self, arguments: tuple[str, ...]) -> None:
        self.lines: list[bytes] = []
        self.complaints: list[str] = []
        self.codes: list[int] = []
        self.ended = asyncio.Event()
        self.child = ChildProcess(arguments, self.lines.append, self.complaints.append, self._exit)

    def _exit(self, code: int) -> None:
        self.codes.append(code)
        self.ended.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.005)


def run(arguments: tuple[str, ...], test: Callable[[Heard], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S):
            heard = Heard(arguments)
            await heard.child.listen()
            await test(heard)
            await heard.ended.wait()
            assert not heard.child.running
            assert len(heard.codes) == 1

    asyncio.run(bounded())


def test_it_answers_and_ends_with_its_stdin(tmp_path: Path) -> None:
    async def test(heard: Heard) -> None:
        heard.child.write(b"one\ntwo\n")
        await heard.until(lambda: len(heard.lines) == 2 and len(heard.complaints) == 2)
        heard.child.close_stdin()
        await heard.child.end(DEADLINE_S)
        assert heard.lines == [b"ONE", b"TWO"]
        assert heard.complaints == list(heard.child.last_words) == ["heard one", "heard two"]
        assert heard.codes == [7]

    run(program(tmp_path, ECHO), test)


def test_one_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    async def test(heard: Heard) -> None:
        await heard.until(lambda: heard.lines == [b"deaf"])
        heard.child.terminate()
        await heard.child.end(0.1)
        assert heard.codes == [-signal.SIGKILL]
        heard.child.terminate()  # of one that is gone: nothing
        heard.child.kill()

    run(program(tmp_path, DEAF), test)


def test_lines_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process_module, "LINE_BYTES_MAX", 10)
    monkeypatch.setattr(child_process_module, "ERROR_LINE_BYTES_MAX", 20)

    async def test(heard: Heard) -> None:
        await heard.ended.wait()
        assert heard.lines == [b"x" * 10, b"short", b"y" * 5]
        assert heard.complaints == ["z" * 20]

    run(program(tmp_path, TALKER), test)


def test_it_dies_with_the_node(tmp_path: Path) -> None:
    deaf = program(tmp_path, DEAF, "deaf.py")
    with subprocess.Popen(
        [sys.executable, *program(tmp_path, PARENT), *deaf], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
    wait_until_gone(pid)


def test_how_something_ended() -> None:
    assert reason_of(3) == "exit code 3"
    assert reason_of(-9) == "signal SIGKILL"
    assert reason_of(-200) == "signal 200"

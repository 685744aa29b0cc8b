"""Asks the rule checker, a process with Spark: started with the first question, ended when nobody asks for a while.

One question at a time; further ones wait, not too many. Who does not answer in time is killed, and so is who was left
in the middle of a question: a late answer can't be taken for another one. Whatever happens to it, the next question
starts it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from brookmq.base.errors import OperationError
from brookmq.node.child_process import ChildProcess, reason_of
from brookmq.ops.rule_view import CannotCheckError, RuleRefusedError

log = logging.getLogger("brookmq.rules")

FIRST_ANSWER_S: Final = 120.0  # with the start of a JVM: 5 to 15 s, and ten times that on a machine that is overloaded
ANSWER_S: Final = 30.0  # a rule with a decoder in Python starts a worker, too
WAITING_MAX: Final = 16  # questions
GRACE_S: Final = 5.0  # for a polite end
MODULE: Final = ("-m", "brookmq.spark.checker")
NEEDED: Final = ("pyspark", "pyarrow", "sqlglot")


def is_installed() -> bool:
    """Whether this installation has what the checker needs; it is found out without loading it."""
    return all(find_spec(name) is not None for name in NEEDED)


class RuleChecker:
    """``folder`` is the checker's own, for what Spark writes. ``program`` and ``installed`` are for tests."""

    def __init__(
        self,
        folder: Path,
        idle_s: float,
        program: Sequence[str] = MODULE,
        installed: Callable[[], bool] = is_installed,
        first_answer_s: float = FIRST_ANSWER_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._folder = folder
        self._idle_s = idle_s
        self._program = program
        self._installed = installed
        self._first_answer_s = first_answer_s
        self._answer_s = answer_s
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._number = 0  # of the last question
        self._process: ChildProcess | None = None
        self._answer: asyncio.Future[dict[str, Any]] | None = None  # somebody waits for it
        self._is_warm = False  # it has answered before
        self._idle: asyncio.TimerHandle | None = None
        self._leaving: set[asyncio.Task[None]] = set()  # processes on their way out
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        return self._process.pid if self._process is not None else None

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer; RuleRefusedError for what is wrong with the rule, OperationError when there is none."""
        if not self._installed():
            raise CannotCheckError(
                "this node can't check rules: install BrookMQ with Spark (pip install 'brookmq[spark]')"
            )
        if self._waiting >= WAITING_MAX:
            raise OperationError(f"the rule checker is busy: {WAITING_MAX} questions wait for it")
        self._waiting += 1
        try:
            async with self._turn:
                answer = await self._asked(question)
        finally:
            self._waiting -= 1
        error = answer.get("error")
        if error is not None:
            raise RuleRefusedError(error["message"], error["line"], error["column"])
        return answer

    async def close(self) -> None:
        """End it; nobody can ask any more."""
        self._closed = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(OperationError("the node is stopping"))
            self._kill()
        self._end_politely()
        await asyncio.gather(*self._leaving)

    async def _asked(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self._idle is not None:
            self._idle.cancel()
        if self._closed:
            raise OperationError("the node is stopping")
        process = self._process
        if process is None or not process.running:
            process = await self._start()
        self._number += 1
        limit_s = self._answer_s if self._is_warm else self._first_answer_s
        self._answer = asyncio.get_running_loop().create_future()
        process.write(json.dumps({"id": self._number, **question}).encode() + b"\n")
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._answer
        except TimeoutError:
            log.warning("the rule checker did not answer within %g s and is killed", limit_s)
            raise OperationError(
                f"the rule checker did not answer within {limit_s:g} s: is a pattern of the rule too costly?"
            ) from None
        finally:
            if not (self._answer.done() and not self._answer.cancelled() and self._answer.exception() is None):
                self._kill()
            self._answer = None
        self._is_warm = True
        self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._rest)
        return answer

    async def _start(self) -> ChildProcess:
        folder = self._folder
        try:
            await asyncio.to_thread(_emptied, folder)
        except OSError as error:
            raise OperationError(f"the rule checker needs the folder {folder}: {error.strerror}") from None
        process = ChildProcess(
            [*self._program, str(folder)],
            lambda line: self._heard(process, line),
            lambda text: log.debug("%s", text),
            lambda code: self._ended(process, code),
        )
        self._process = process
        self._is_warm = False
        await process.listen()
        log.info("the rule checker is started", extra={"checker_pid": process.pid})
        return process

    def _heard(self, process: ChildProcess, line: bytes) -> None:
        if process is not self._process or self._answer is None or self._answer.done():
            return
        try:
            answer = json.loads(line)
            matches = answer["id"] == self._number
        except (ValueError, LookupError, TypeError, RecursionError):
            matches = False
        if matches:
            self._answer.set_result(answer)
        else:
            self._answer.set_exception(OperationError("the rule checker's answer can't be read"))

    def _ended(self, process: ChildProcess, code: int) -> None:
        if process is not self._process:
            return
        self._process = None
        if self._answer is None:
            log.info("the rule checker has ended: %s", reason_of(code))
        elif not self._answer.done():
            last = f": {process.last_words[-1]}" if process.last_words else ""
            log.warning("the rule checker ended in the middle of a question (%s)%s", reason_of(code), last)
            self._answer.set_exception(
                OperationError(f"the rule checker ended in the middle of the question ({reason_of(code)}){last}")
            )

    def _kill(self) -> None:
        """It is in a state that nobody knows."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._see_off(process, 0.0)

    def _rest(self) -> None:
        log.info("the rule checker rests: nobody asked for %g s", self._idle_s)
        self._end_politely()

    def _end_politely(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            process.close_stdin()
            self._see_off(process, GRACE_S)

    def _see_off(self, process: ChildProcess, patience_s: float) -> None:
        task = asyncio.get_running_loop().create_task(process.end(patience_s))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


def _emptied(folder: Path) -> None:
    """What a checker that was killed has left there is of no use."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)

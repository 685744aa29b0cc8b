"""One registered hook and everything that keeps it from doing harm.

- ``async def`` runs as a task of its own with a time limit. Each of its steps on the loop is measured: one that holds
  the loop longer than ``hold_seconds_max`` (a ``time.sleep``, a long computation) switches the hook off.
- ``def`` runs in threads of its own with the same time limit; when all of them hang, the hook is switched off.
- ``sync=True`` runs in place, for answers that need no waiting (a decision from a table). It is measured too.

A failure (an error, a wrong answer, a time limit) is counted, logged at most once a minute and raises an alarm that
ends after a minute without failures. The caller gets FAILED and knows what that means at its hook point.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any, Final

from brookmq.access.steps import run_measured
from brookmq.access.threads import HookThreads
from brookmq.base.alarms import Alarms

logger = logging.getLogger("brookmq.hooks")

QUIET_SECONDS = 60.0  # between two log lines of one hook, and without failures before its alarm ends
STUCK_TASKS_MAX = 16  # calls of one hook that go on after their time limit and cancellation


class Failed(Enum):
    """The hook gave no answer that can be used."""

    FAILED = "failed"


FAILED: Final = Failed.FAILED


@dataclass(frozen=True, slots=True)
class HookLimits:
    """The limits of each hook."""

    answer_seconds_max: float = 5.0  # from the call to the answer, waiting for a thread included
    hold_seconds_max: float = 0.1  # one step on the loop
    threads_max: int = 4  # of a hook that blocks
    waiting_max: int = 256  # calls that wait for such a thread
    events_max: int = 1_000  # events that wait for a hook; further ones are dropped and counted


class Hook:
    """A function registered at a hook point."""

    def __init__(
        self,
        point: str,
        function: Callable[..., Any],
        owner: str,
        *,
        sync: bool,
        refuse_on_error: bool,
        order: int,
        limits: HookLimits,
        alarms: Alarms,
        clock: Callable[[], float],
        on_switched_off: Callable[[Hook], None],
    ) -> None:
        self.point = point
        self.owner = owner
        self.sync = sync  # called in place
        self.refuse_on_error = refuse_on_error
        self.order = order
        self.switched_off = False  # never called again: every call is FAILED
        self.calls = 0
        self.failures = 0
        self.dropped = 0  # events that found the queue full
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the method is looked at, not called
        )
        self._limits = limits
        self._alarms = alarms
        self._clock = clock
        self._on_switched_off = on_switched_off
        self._threads: HookThreads | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # calls under way, abandoned ones included
        self._abandoned = 0  # of _tasks
        self._events: deque[Any] = deque()
        self._drain: asyncio.Task[None] | None = None
        self._failed_at = float("-inf")  # clock of the last failure
        self._logged_at = float("-inf")
        self._unlogged = 0  # failures since the last log line

    @property
    def name(self) -> str:
        """Of which plugin and at which point: ``stamp/publish``."""
        return f"{self.owner}/{self.point}"

    def call_now(self, *arguments: Any) -> Any:
        """Call a ``sync`` hook in place."""
        if self.switched_off:
            return FAILED
        self.calls += 1
        started = perf_counter()
        try:
            answer = self._function(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is a failure of that plugin alone
            return self.failed("failed", error)
        finally:
            self.measured(perf_counter() - started)
        return self._accepted(answer)

    async def call(self, *arguments: Any) -> Any:
        """Call the hook, however it is written, and wait for its answer."""
        if self.sync:
            return self.call_now(*arguments)
        if self.switched_off:
            return FAILED
        self.calls += 1
        return await (self._call_async(arguments) if self._is_async else self._call_in_thread(arguments))

    def tell(self, event: Any) -> None:
        """Call the hook with an event, after those that came before; nobody waits for it."""
        if self.sync:
            self.call_now(event)
        elif len(self._events) >= self._limits.events_max:
            self.dropped += 1
            self.failed("is too slow for its events, some are dropped")
        else:
            self._events.append(event)
            if self._drain is None:
                self._drain = asyncio.get_running_loop().create_task(self._drain_events())

    def failed(self, what: str, error: BaseException | None = None) -> Failed:
        """Count a failure, say it in the log once in a while and raise the alarm; FAILED."""
        now = self._clock()
        self.failures += 1
        self._failed_at = now
        text = f"hook {self.point} of {self.owner} {what}" + (f": {type(error).__name__}: {error}" if error else "")
        self._alarms.activate(f"hook_failing/{self.name}", {"owner": self.owner, "point": self.point}, text, now)
        if now - self._logged_at >= QUIET_SECONDS:
            more = f" ({self._unlogged} more failures since the last line)" if self._unlogged else ""
            logger.error("%s%s", text, more, exc_info=error)
            self._logged_at = now
            self._unlogged = 0
        else:
            self._unlogged += 1
        return FAILED

    def measured(self, seconds: float) -> None:
        """A step of the hook took this long on the loop."""
        if seconds > self._limits.hold_seconds_max:
            limit = self._limits.hold_seconds_max
            self.switch_off(f"held the loop for {seconds * 1000:.0f} ms, the limit is {limit * 1000:.0f} ms")

    def switch_off(self, why: str) -> None:
        """Never call the hook again; say so."""
        if self.switched_off:
            return
        self.switched_off = True
        text = f"hook {self.point} of {self.owner} is switched off: it {why}"
        details = {"owner": self.owner, "point": self.point}
        self._alarms.activate(f"hook_switched_off/{self.name}", details, text, self._clock())
        logger.error("%s", text)
        self._on_switched_off(self)

    async def stop(self, seconds_max: float) -> None:
        """Give events that wait a little time, then end everything that is under way."""
        if self._drain is not None:
            await asyncio.wait((self._drain,), timeout=seconds_max)
        self._events.clear()
        pending = [task for task in (self._drain, *self._tasks) if task is not None and not task.done()]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending, timeout=seconds_max)
        if self._threads is not None:
            self._threads.stop()
        for kind in ("hook_failing", "hook_switched_off"):
            self._alarms.deactivate(f"{kind}/{self.name}", self._clock())

    def _accepted(self, answer: Any) -> Any:
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            return self.failed("answered with something to await: declare it with async def")
        if self._failed_at != float("-inf") and self._clock() - self._failed_at >= QUIET_SECONDS:
            self._failed_at = float("-inf")
            self._alarms.deactivate(f"hook_failing/{self.name}", self._clock())
        return answer

    async def _call_async(self, arguments: tuple[Any, ...]) -> Any:
        task = asyncio.get_running_loop().create_task(run_measured(self._function, arguments, self.measured))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait((task,), timeout=self._limits.answer_seconds_max)
        except asyncio.CancelledError:
            self._abandon(task)
            raise
        if not task.done():
            self._abandon(task)
            return self.failed(f"gave no answer within {self._limits.answer_seconds_max} s")
        if task.cancelled():
            return self.failed("was cancelled")
        error = task.exception()
        return self.failed("failed", error) if error is not None else self._accepted(task.result())

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        """Cancel a call that nobody waits for. It may go on regardless: too many of these switch the hook off."""
        self._abandoned += 1
        task.add_done_callback(self._abandoned_ended)
        task.cancel()
        if self._abandoned > STUCK_TASKS_MAX:
            self.switch_off(f"went on in {self._abandoned} calls after they were cancelled")

    def _abandoned_ended(self, task: asyncio.Task[Any]) -> None:
        self._abandoned -= 1
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it as lost

    async def _call_in_thread(self, arguments: tuple[Any, ...]) -> Any:
        if self._threads is None:
            self._threads = HookThreads(f"hook-{self.owner}", self._limits.threads_max, self._limits.waiting_max)
        call = self._threads.submit(self._function, arguments)
        if call is None:
            return self.failed("has too many calls waiting for a thread")
        try:
            await asyncio.wait((call.outcome,), timeout=self._limits.answer_seconds_max)
        except asyncio.CancelledError:
            self._threads.abandon(call)
            raise
        if not call.outcome.done():
            self._threads.abandon(call)
            if self._threads.all_stuck:
                self.switch_off("hangs in all of its threads")
            return self.failed(f"gave no answer within {self._limits.answer_seconds_max} s")
        answer, error = call.outcome.result()
        return self.failed("failed", error) if error is not None else self._accepted(answer)

    async def _drain_events(self) -> None:
        try:
            while self._events and not self.switched_off:
                await self.call(self._events.popleft())
        finally:
            self._drain = None

"""Threads for hooks that block: a few for each hook, so that one that hangs starves nobody else.

Not concurrent.futures: its threads are waited for when the interpreter ends, so one hook that hangs would keep a
stopped node alive for ever, and its queue has no bound.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any


class ThreadCall:
    """One call: waiting, then running, then over; or abandoned by a caller who waits no longer."""

    __slots__ = ("abandoned", "arguments", "function", "loop", "outcome", "running")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        self.loop = loop
        self.function = function
        self.arguments = arguments
        self.outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        self.running = False
        self.abandoned = False


class HookThreads:
    """Up to ``threads_max`` daemon threads, made when needed, and up to ``waiting_max`` calls that wait for one."""

    def __init__(self, name: str, threads_max: int, waiting_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._calls: queue.Queue[ThreadCall | None] = queue.Queue(waiting_max)
        self._lock = threading.Lock()  # of everything below and of the flags of the calls
        self._threads = 0
        self._busy = 0
        self._stuck = 0  # threads whose caller has given up
        self._stopped = False

    @property
    def all_stuck(self) -> bool:
        """Whether every thread hangs in a call that nobody waits for."""
        return self._stuck >= self._threads_max

    def submit(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> ThreadCall | None:
        """Call the function in a thread; ``outcome`` gets (result, error). None when too many calls wait."""
        call = ThreadCall(asyncio.get_running_loop(), function, arguments)
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            return None
        with self._lock:
            idle = self._threads - self._busy
            if idle < self._calls.qsize() and self._threads < self._threads_max and not self._stopped:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return call

    def abandon(self, call: ThreadCall) -> None:
        """Nobody waits for this call any more: it is not begun, or counted as stuck until it ends."""
        with self._lock:
            call.abandoned = True
            self._stuck += call.running
        call.outcome.cancel()

    def stop(self) -> None:
        """Let the threads end after what they do now. Waiting calls are not begun."""
        with self._lock:
            self._stopped = True
        while True:
            try:
                self._calls.get_nowait()
            except queue.Empty:
                break
        for _ in range(min(self._threads, self._calls.maxsize or self._threads)):
            self._calls.put_nowait(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            with self._lock:
                if call.abandoned or self._stopped:
                    continue
                call.running = True
                self._busy += 1
            try:
                outcome: tuple[Any, BaseException | None] = (call.function(*call.arguments), None)
            except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
                outcome = (None, error)
            with self._lock:
                self._busy -= 1
                self._stuck -= call.abandoned
                call.running = False
            try:
                call.loop.call_soon_threadsafe(_settle, call, outcome)
            except RuntimeError:
                return  # the loop is closed: the node has stopped without us


def _settle(call: ThreadCall, outcome: tuple[Any, BaseException | None]) -> None:
    if not call.outcome.done():
        call.outcome.set_result(outcome)

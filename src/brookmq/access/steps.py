"""How long each step of a coroutine holds the event loop.

A coroutine of a plugin shares the loop with every client, and nothing can interrupt it between two of its ``await``. So
it is driven by hand: what it waits for is handed through to the task around it, what the task sends or throws goes
back, and the time of each step in between is reported.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from time import perf_counter
from typing import Any


async def run_measured(
    function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...], report: Callable[[float], None]
) -> Any:
    """Call an ``async def`` function and await it; ``report`` gets the seconds of each of its steps."""
    return await _MeasuredSteps(_call(function, arguments), report)


async def _call(function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> Any:
    return await function(*arguments)


class _MeasuredSteps:
    __slots__ = ("_coroutine", "_report")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], report: Callable[[float], None]) -> None:
        self._coroutine = coroutine
        self._report = report

    def __await__(self) -> Generator[Any, Any, Any]:
        thrown: BaseException | None = None
        while True:
            started = perf_counter()
            try:
                waits_for = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration as stop:
                return stop.value
            finally:
                self._report(perf_counter() - started)
            try:
                yield waits_for
                thrown = None
            except BaseException as error:  # noqa: BLE001 - a cancellation, or the error of what was waited for
                thrown = error

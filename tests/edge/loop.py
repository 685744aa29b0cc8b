"""Tests that are coroutines: each runs on a loop of its own, and an error in a callback fails the test.

A `conftest.py` that wants it says `pytest_pyfunc_call = coroutine_tests(uvloop.new_event_loop)`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

Hook = Callable[[pytest.Function], bool | None]


def coroutine_tests(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> Hook:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
        problems: list[dict[str, Any]] = []

        async def run() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
            await pyfuncitem.obj(**arguments)

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(run())
        assert not problems, problems
        return True

    return pytest_pyfunc_call

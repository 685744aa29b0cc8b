"""Ending tasks for certain.

A request of the store's client that is cancelled in the turn in which its answer comes returns the answer, and the
cancellation is gone (``asyncio.wait_for`` does so before Python 3.12). A task that goes on in a loop would go on for
ever; so it is told again until it has ended. Not at once: one that heard it may still have something to put in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

AGAIN_S: Final = 1.0


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits for their end, however they take it."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)

"""Asking the store until it answers: what a table's snapshots need is not urgent, and never given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from brookmq.store.errors import Ambiguous, StoreFull
from brookmq.store.link import Link

PAUSE_S: Final = 0.05  # before something is tried again

Answer = TypeVar("Answer")


async def until_answered(link: Link, request: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    """Makes the request, again and again while its outcome is not known; so it must do no harm when done twice.

    One that is under way when the connection goes is not waited for: its answer can't come any more.
    """
    while True:
        try:
            return await _unless_lost(link, request())
        except (Ambiguous, StoreFull):
            await link_up(link)
            await asyncio.sleep(PAUSE_S)


async def link_up(link: Link) -> None:
    """Waits until there is a connection."""
    if not link.up:
        await _turned(link, True)


async def _unless_lost(link: Link, request: Coroutine[Any, Any, Answer]) -> Answer:
    """As a time limit does it: the task that asks is cancelled, and takes that as the end of this request alone."""
    asking = asyncio.current_task()
    assert asking is not None
    lost = False

    def turned(up: bool, _: str) -> None:
        nonlocal lost
        if not up and not lost:
            lost = True
            asking.cancel()

    end = link.watch(turned)
    cancelled_before = asking.cancelling()
    try:
        return await request
    except asyncio.CancelledError:
        if lost and asking.uncancel() <= cancelled_before:
            raise Ambiguous(f"the connection to the store went: {link.reason}") from None
        raise
    finally:
        end()


async def _turned(link: Link, wanted: bool) -> None:
    found = asyncio.get_running_loop().create_future()
    end = link.watch(lambda up, _: found.set_result(None) if up is wanted and not found.done() else None)
    try:
        await found
    finally:
        end()

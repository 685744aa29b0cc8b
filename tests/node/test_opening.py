"""Opening what a node keeps, over a real store."""

from __future__ import annotations

import asyncio

from brookmq.base.config import Config
from brookmq.node.opening import Opened, Opening
from tests.store.log_servers import Servers, linked, run, running

PATIENCE_S = 60.0  # only reached by a failure


async def closed_while_it_asks(servers: Servers) -> None:
    async with linked(servers) as journal, linked(servers) as tables:
        asked, opened = asyncio.Event(), asyncio.Event()

        async def on_open(_: Opened) -> None:
            opened.set()

        opening = Opening(Config(), 1, journal, tables, on_open, lambda: None)

        async def other() -> str:
            """As the store's client before Python 3.12: cancelled in the turn of its answer, it answers."""
            if opened.is_set() and not asked.is_set():
                asked.set()
                try:
                    await asyncio.sleep(PATIENCE_S)
                except asyncio.CancelledError:
                    return ""
            return ""

        opening._ownership.other = other  # type: ignore[method-assign]
        opening.begin()
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
            await opening.close()


def test_a_close_in_the_turn_of_an_answer_is_a_close() -> None:
    with running(room="20GB") as servers:
        run(closed_while_it_asks(servers))

"""Tasks that swallow a cancellation end all the same."""

from __future__ import annotations

import asyncio

from brookmq.base.ending import end


def test_a_task_that_takes_a_cancellation_for_something_else() -> None:
    asyncio.run(_ended_all_the_same())


async def _ended_all_the_same() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 3:
                    raise

    async def failing() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise OSError("while ending")

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(failing()), asyncio.create_task(asyncio.sleep(0))]
    await asyncio.sleep(0)
    await asyncio.wait_for(end(tasks), 5)
    assert swallowed == 3
    assert all(task.done() for task in tasks)
    assert isinstance(tasks[1].exception(), OSError)
    await end(tasks)

"""Run as a program on a small disk: a store meets the end of the disk and comes back when there is room.

`python -m tests.store.full_disk FOLDER`, where FOLDER is on a disk of some 48 MB. Prints what it saw; a failed
assertion is its exit code.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import nats.errors
import uvloop
from nats.js.client import JetStreamContext
from nats.js.errors import APIError

from brookmq.store.diagnosis import Diagnosis, Trouble
from brookmq.store.machine import STARTS_PER_MINUTE_MAX
from brookmq.store.server import StoreOptions, StoreServer
from tests.store.supervising import Told, connected, running, until

MEGABYTE = 1024 * 1024
ROOM = 8 * MEGABYTE
FULL_SECONDS = 3.0  # that the disk stays full


def is_full(told: Told) -> bool:
    last = told.story[-1] if told.story else None
    return isinstance(last, Diagnosis) and last.trouble is Trouble.DISK_FULL


async def append_until_full(jetstream: JetStreamContext) -> int:
    acknowledged = 0
    while True:
        try:
            await jetstream.publish("numbers", acknowledged.to_bytes(4) + bytes(MEGABYTE // 2), timeout=1)
        except (nats.errors.Error, APIError, TimeoutError):
            return acknowledged
        acknowledged += 1
        assert acknowledged < 1_000, "this disk is not small"


async def main(path: Path) -> None:
    data, filler = path / "data", path / "filler"
    filler.write_bytes(bytes(16 * MEGABYTE))
    async with running(data, StoreOptions("small", room_bytes_min=ROOM)) as (store, told):
        async with connected(store) as client:
            jetstream = client.jetstream()
            await jetstream.add_stream(name="NUMBERS", subjects=["numbers"])
            acknowledged = await append_until_full(jetstream)
        await until(lambda: is_full(told), "the full disk is told")
        print(f"after {acknowledged} appends: {store.reason}")
        await stay_full(store)
        begin = time.monotonic()
        filler.unlink()
        await until(lambda: store.ready, "ready again")
        print(f"ready {time.monotonic() - begin:.2f} s after there was room")
        async with connected(store) as client:
            await check(client.jetstream(), acknowledged)
    await start_on_a_full_disk(data, filler)


def fill(filler: Path) -> None:
    found = os.statvfs(filler.parent)
    filler.write_bytes(bytes(found.f_bavail * found.f_frsize))


async def stay_full(store: StoreServer) -> None:
    """Nothing spins meanwhile."""
    launches, before = 0, store._launch_task
    end = time.monotonic() + FULL_SECONDS
    while time.monotonic() < end:
        assert not store.ready
        launches += store._launch_task is not before
        before = store._launch_task
        await asyncio.sleep(0.002)
    print(f"{launches} attempts in {FULL_SECONDS:.0f} s")
    assert 0 < launches <= STARTS_PER_MINUTE_MAX / 2


async def check(jetstream: JetStreamContext, acknowledged: int) -> None:
    for number in range(acknowledged):
        message = await jetstream.get_msg("NUMBERS", number + 1)
        assert message.data is not None
        assert int.from_bytes(message.data[:4]) == number
    await jetstream.publish("numbers", bytes(MEGABYTE // 2))
    print(f"all {acknowledged} acknowledged appends are there")


async def start_on_a_full_disk(data: Path, filler: Path) -> None:
    """Not an error: the node starts, says why it has no store, and gets it when there is room."""
    fill(filler)
    async with running(data, StoreOptions("small", room_bytes_min=ROOM)) as (store, told):
        assert is_full(told), told.story
        await asyncio.to_thread(filler.unlink)
        print(f"ready {await until(lambda: store.ready, 'ready'):.2f} s after there was room")


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))

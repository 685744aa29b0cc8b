"""Run as a program: a small owner of a store, for tests that kill owners. `python -m tests.store.owner FOLDER`.

Prints the store's pid when it is ready. On SIGINT or SIGTERM it tells whether the store is still there, stops it, and
tells that too: the store goes last.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from brookmq.store.folder import DataFolder
from brookmq.store.server import StoreOptions, StoreServer
from tests.store.supervising import Told, lives


async def main(path: Path) -> None:
    told, asked = Told(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    folder = DataFolder.open(path)
    store = StoreServer(folder, StoreOptions("owned"), told.ready, told.down)
    assert await store.start(wait_seconds=20), store.reason
    pid = store.pid
    assert pid is not None
    print(pid, flush=True)
    await asked.wait()
    print("the store lives" if lives(pid) and store.ready else "the store is gone", flush=True)
    await store.stop()
    print("the store lives" if lives(pid) else "the store is gone", flush=True)
    folder.close()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))

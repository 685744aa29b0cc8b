"""Run as a program: owns a table and its store, until it is killed or through. `python -m tests.store.table.writer …`

Its changes come from a seed, so that the test knows them without being told. For each that is done it writes a byte to
its output: what is in a pipe survives the writer.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import uvloop

from brookmq.store.link import Link, LinkSettings
from brookmq.store.table.interface import META_KEY, Entry
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.opening import open_table
from tests.store.log_servers import SERVER, until
from tests.store.table.owners import Owner

LIMITS = TableLimits(
    record_bytes_max=4_000, piece_bytes_max=6_000, tail_bytes=12_000, tail_records=40, tail_bytes_max=40_000,
    chunk_bytes_max=500,
)  # fmt: skip
CHANGES = 300
DONE = b"."


def changes(seed: int) -> Iterator[Entry]:
    """What the writer with this seed does, in order."""
    chance = random.Random(seed)
    for _ in range(CHANGES):
        key = META_KEY if chance.random() < 0.1 else b"k%d" % chance.randrange(60)
        size = 8_000 if chance.random() < 0.005 else chance.choice([0, 20, 200, 700])
        yield key, b"%d:%d" % (seed, size) + chance.randbytes(size) if size else b""


class OwnStore:
    """The writer's store, started again when it dies."""

    def __init__(self, configuration: str) -> None:
        self._command = [SERVER, "-c", configuration, "-l", f"{configuration}.log"]
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        nowhere = subprocess.DEVNULL  # it outlives a writer that is killed, and must not hold its pipes open
        process = subprocess.Popen(self._command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        print(process.pid, flush=True)
        return process

    async def watch(self) -> None:
        while True:
            if self._process.poll() is not None:
                self._process = self._start()
            await asyncio.sleep(0.01)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


async def main(configuration: str, port: str, seed: int) -> None:
    store = OwnStore(configuration)
    watching = asyncio.create_task(store.watch())
    link = Link(LinkSettings([f"nats://127.0.0.1:{port}"], "writer"))
    await link.open(20)
    table = await open_table(link, "things", limits=LIMITS)
    owner = Owner(table)
    table.begin_loading()
    await until(lambda: table.all_loaded, "all is loaded")
    for number, (key, value) in enumerate(changes(seed)):
        owner.assign(key, value)
        table.change(key, value, lambda: os.write(2, DONE))
        if table.full:
            room = asyncio.Event()
            table.wait(room.set)
            await room.wait()
        if number % 3 == 0:
            await asyncio.sleep(0.001)
    await until(lambda: table.waiting_bytes == 0, "all is stored")
    assert table.failed is None
    await table.close()
    await link.close()
    watching.cancel()
    store.end()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

"""The null broker acknowledges everything and forwards nothing: what the tool reaches against it is the tool's limit.

Started as ``python -m brookmq.bench.null``, it prints the port that it listens on and ends when its standard input
does, so it cannot outlive the tool that started it.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

import uvloop

from brookmq.base.errors import InvariantError
from brookmq.bench.wire import NullInbox

RECEIVE_BYTES: Final = 256 * 1024


class NullConnection(asyncio.BufferedProtocol):
    """Reads into a buffer that all connections share: nothing is kept there from one call to the next."""

    buffer = bytearray(RECEIVE_BYTES)
    view = memoryview(buffer)

    def __init__(self) -> None:
        self._inbox = NullInbox()
        self._start = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        self._start = self._inbox.restore(self.buffer)
        return self.view[self._start :] if self._start else self.view

    def buffer_updated(self, nbytes: int) -> None:
        try:
            answers = self._inbox.feed(self.buffer, self._start + nbytes)
        except ValueError:
            self._transport.abort()
            return
        if answers is not None:
            self._transport.write(answers)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(NullConnection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    parent_gone = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), parent_gone.set)
    await parent_gone.wait()
    server.close()


@contextmanager
def null_broker() -> Iterator[tuple[int, int]]:
    """Port and process id of a null broker in a process of its own."""
    command = [sys.executable, "-m", "brookmq.bench.null"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        if process.stdout is None or process.stdin is None:
            raise InvariantError("a process started with pipes has none")
        try:
            yield int(process.stdout.readline()), process.pid
        finally:
            process.stdin.close()


if __name__ == "__main__":
    uvloop.run(serve())

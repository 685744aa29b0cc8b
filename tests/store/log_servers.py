"""Servers of the store for the tests of its client side: started bare, killed, stopped and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from brookmq.store.errors import StoreError
from brookmq.store.link import Link, LinkSettings
from brookmq.store.streams import Stream, declare, look

DEADLINE_S = 30.0
SERVER = shutil.which("nats-server") or str(Path(sys.executable).with_name("nats-server"))


def reserve_ports(count: int) -> list[socket.socket]:
    """Free ports that stay ours while their servers are down: a socket that is bound and does not listen keeps others
    off, also those who connect from any free port, and a server that reuses addresses may listen all the same."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
    return sockets


def port_of(reserved: socket.socket) -> int:
    return int(reserved.getsockname()[1])


class Servers:
    """One server, or three that replicate. Each keeps its folder and port through kills."""

    def __init__(self, folder: Path, count: int, extra: str, room: str) -> None:
        self._reserved = reserve_ports(2 * count)
        self.ports = [port_of(one) for one in self._reserved[:count]]
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        routes = [port_of(one) for one in self._reserved[count:]]
        for index in range(count):
            urls = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
            cluster = f'cluster {{ name: t, listen: "127.0.0.1:{routes[index]}", routes: [{urls}] }}'
            (folder / f"{index}.conf").write_text(
                f'server_name: n{index}\nlisten: "127.0.0.1:{self.ports[index]}"\nmax_payload: 8MB\n'
                f'jetstream {{ store_dir: "{folder}/{index}", sync_interval: always, max_file_store: {room} }}\n'
                f"{cluster if count > 1 else ''}\n{extra}\n"
            )

    @property
    def urls(self) -> list[str]:
        return [f"nats://127.0.0.1:{port}" for port in self.ports]

    def pid(self, index: int = 0) -> int:
        return self._processes[index].pid

    def start(self, index: int = 0) -> None:
        command = [SERVER, "-c", str(self._folder / f"{index}.conf"), "-l", str(self._folder / f"{index}.log")]
        self._processes[index] = subprocess.Popen(command)

    def kill(self, index: int = 0) -> None:
        process = self._processes.pop(index)
        process.kill()
        process.wait()

    def freeze(self, index: int = 0) -> None:
        self._processes[index].send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid(index), os.WSTOPPED | os.WNOWAIT)  # its threads stop one after the other

    def thaw(self, index: int = 0) -> None:
        self._processes[index].send_signal(signal.SIGCONT)

    def end(self) -> None:
        for index in list(self._processes):
            self.kill(index)

    def close(self) -> None:
        self.end()
        for one in self._reserved:
            one.close()


@contextmanager
def running(count: int = 1, extra: str = "", room: str = "2GB") -> Iterator[Servers]:
    with tempfile.TemporaryDirectory(prefix="brookmq-store-") as folder:
        servers = Servers(Path(folder), count, extra, room)
        try:
            for index in range(count):
                servers.start(index)
            yield servers
        finally:
            servers.close()


@asynccontextmanager
async def linked(servers: Servers, role: str = "test") -> AsyncIterator[Link]:
    link = Link(LinkSettings(servers.urls, role))
    try:
        await link.open(DEADLINE_S)
        yield link
    finally:
        await link.close()


async def until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    try:
        async with asyncio.timeout(deadline_s):
            while not condition():  # noqa: ASYNC110 - what is waited for is in other processes
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {deadline_s} s: {what}") from None


async def declared(link: Link, stream: Stream) -> None:
    """Declares, through the time in which servers that have just started elect their leaders."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                await declare(link, stream)
                if stream.replicas == 1 or (await look(link, stream.name)).leader:
                    return
            except StoreError:
                await asyncio.sleep(0.1)


def run(test: Awaitable[None]) -> None:
    """A test's coroutine, with a deadline for all of it."""

    async def bounded() -> None:
        async with asyncio.timeout(4 * DEADLINE_S):
            await test

    asyncio.run(bounded())

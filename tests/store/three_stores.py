"""Three stores that replicate, as bare processes with the production settings: killed, frozen and started at will.

    with three_stores(folder) as stores:              # TLS and certificates, as `brookmq cluster init` makes them
    with three_stores(folder, tls=False) as stores:   # the same without TLS, for a node with `store.servers`
        stores.wait_ready()
        stores.kill(1)          # SIGKILL; it stays dead
        stores.start(1)
        stores.kill_all()
        stores.start_all()
        Link(stores.link_settings("test"))

Everything is synchronous, so that any test can use it; nobody restarts a killed one but the test. The processes die
with the test's process. What a supervised store does (`StoreServer`) is tested elsewhere: a killed one is back at once.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brookmq.store.binary import find_binary
from brookmq.store.core_address import CoreAddress
from brookmq.store.folder import DataFolder
from brookmq.store.joining import init_cluster, join_cluster, read_secret
from brookmq.store.link import LinkSettings
from brookmq.store.membership import Membership
from brookmq.store.prepare import SETTINGS, StoreOptions, prepare
from brookmq.store.probe import Outcome, Probe
from brookmq.store.process import TETHER
from brookmq.store.settings_file import Credentials

CLUSTER = "three"
READY_SECONDS_MAX = 60.0  # three that start together elect within 10 s on a quiet machine


class ReservedPorts:
    """Free ports that nobody else gets meanwhile: bound and not listened on, which leaves a listener its place."""

    def __init__(self, count: int) -> None:
        self._sockets = [socket.socket() for _ in range(count)]
        for one in self._sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
        self.ports = [int(one.getsockname()[1]) for one in self._sockets]

    def release(self) -> None:
        for one in self._sockets:
            one.close()


def found_cluster(path: Path, ports: list[int], cluster: str = CLUSTER) -> list[Membership]:
    """Three folders (path/0 to path/2) that are the cores n0 to n2 of a new cluster; six ports."""
    cores = [
        CoreAddress(f"n{index}@127.0.0.1", "127.0.0.1", ports[2 * index], ports[2 * index + 1]) for index in range(3)
    ]
    first, file = init_cluster(path / "0", cluster, cores[0].name, cores)
    secret = read_secret(file)
    return [first, *(join_cluster(path / str(index), secret, cores[index].name) for index in (1, 2))]


class ThreeStores:
    """``memberships`` are those of the three folders; indexes are 0, 1 and 2."""

    def __init__(self, path: Path, *, tls: bool) -> None:
        self.path = path
        self.tls = tls
        self._reserved = ReservedPorts(6)
        self.memberships = found_cluster(path, self._reserved.ports)
        self._folders = [DataFolder.open(path / str(index)) for index in range(3)]
        self._binary = find_binary().path
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for folder, membership in zip(self._folders, self.memberships, strict=True):
            prepare(folder, StoreOptions(membership.node.name), membership)
            if not tls:
                _without_tls(folder.store_path / SETTINGS)

    @property
    def addresses(self) -> list[str]:
        """Where clients connect, one for each store."""
        return [f"{'tls' if self.tls else 'nats'}://{each.node.store}" for each in self.memberships]

    @property
    def credentials(self) -> Credentials:
        return self.memberships[0].credentials

    def tls_context(self, index: int = 0) -> ssl.SSLContext | None:
        """What a client that is this core needs besides the credentials."""
        return self.memberships[index].tls_context() if self.tls else None

    def link_settings(self, role: str) -> LinkSettings:
        user, password = self.credentials
        return LinkSettings(self.addresses, role, user, password, self.tls_context())

    def index_of(self, name: str) -> int:
        """Of a server's name, such as the leader of a stream."""
        return [each.node.name for each in self.memberships].index(name)

    @property
    def running(self) -> list[int]:
        return sorted(index for index, process in self._processes.items() if process.poll() is None)

    def pid(self, index: int) -> int:
        return self._processes[index].pid

    def log(self, index: int) -> str:
        """Everything that this store has said."""
        return (self.path / f"{index}.log").read_text("utf-8", "replace")

    def start(self, index: int) -> None:
        assert index not in self._processes, f"{index} runs"
        command = [sys.executable, "-I", "-S", TETHER, str(os.getpid()), self._binary, "-c"]
        settings = self._folders[index].store_path / SETTINGS
        with (self.path / f"{index}.log").open("ab") as log:
            self._processes[index] = subprocess.Popen(
                [*command, settings], stdin=subprocess.DEVNULL, stderr=log, start_new_session=True
            )

    def kill(self, index: int) -> None:
        """SIGKILL, and wait for the end."""
        process = self._processes.pop(index)
        process.kill()
        process.wait()

    def terminate(self, index: int) -> None:
        """SIGTERM, and wait for the end."""
        process = self._processes.pop(index)
        process.terminate()
        process.wait(READY_SECONDS_MAX)

    def freeze(self, index: int) -> None:
        self._processes[index].send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid(index), os.WSTOPPED | os.WNOWAIT)  # its threads stop one after the other

    def thaw(self, index: int) -> None:
        self._processes[index].send_signal(signal.SIGCONT)

    def start_all(self) -> None:
        for index in range(3):
            if index not in self._processes:
                self.start(index)

    def kill_all(self) -> None:
        """At once: all signals before the first end is waited for."""
        for process in self._processes.values():
            process.kill()
        for index in list(self._processes):
            self.kill(index)

    def wait_ready(self, seconds: float = READY_SECONDS_MAX) -> float:
        """Until each store that runs says that JetStream answers; how long it took. Not for a running loop."""
        begin = time.monotonic()
        for index in self.running:
            asyncio.run(self._until_ready(index, begin + seconds))
        return time.monotonic() - begin

    async def _until_ready(self, index: int, deadline: float) -> None:
        probe = Probe([self.addresses[index]], self.credentials, self.tls_context(index))
        try:
            while (answer := await probe.ask(1.0)).outcome is not Outcome.ANSWERED:
                assert time.monotonic() < deadline, f"store {index}: {answer.reason}\n{self.log(index)[-2000:]}"
                await asyncio.sleep(0.05)
        finally:
            await probe.close()

    def release_folder(self, index: int) -> None:
        """Let another process have the folder of a store that does not run; it is not started here again."""
        assert index not in self._processes
        self._folders[index].close()

    def close(self) -> None:
        self.kill_all()
        for folder in self._folders:
            folder.close()
        self._reserved.release()


@contextmanager
def three_stores(path: Path, *, tls: bool = True, start: bool = True) -> Iterator[ThreeStores]:
    """Three stores in folders under ``path``, started unless told otherwise, killed at the end."""
    stores = ThreeStores(path, tls=tls)
    try:
        if start:
            stores.start_all()
        yield stores
    finally:
        stores.close()


def _without_tls(settings: Path) -> None:
    """Production settings always have TLS: it is taken out of the text."""
    text = re.sub(r"(?m)^ *tls \{.*\}\n", "", settings.read_text("utf-8"))
    settings.write_text(text.replace("tls://", "nats://"), "utf-8")

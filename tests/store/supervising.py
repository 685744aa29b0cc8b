"""Helpers for tests with a real store: what it told, and waiting for what has to come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import psutil
from nats.aio.client import Client

from brookmq.store.diagnosis import Diagnosis
from brookmq.store.folder import DataFolder
from brookmq.store.server import StoreOptions, StoreServer

PATIENCE_SECONDS = 60.0  # far above what anything here takes on a busy machine


class Told:
    """What a store reported, in order: "ready", or the text of a diagnosis."""

    def __init__(self) -> None:
        self.story: list[str | Diagnosis] = []

    def ready(self) -> None:
        self.story.append("ready")

    def down(self, diagnosis: Diagnosis) -> None:
        self.story.append(diagnosis)


async def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """Wait for a condition; how long it took."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.002)
    return time.monotonic() - begin


def lives(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped by whoever inherited it does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@asynccontextmanager
async def running(path: Path, options: StoreOptions | None = None) -> AsyncIterator[tuple[StoreServer, Told]]:
    """A started store on this folder, stopped at the end, with no process left."""
    told = Told()
    folder = DataFolder.open(path)
    store = StoreServer(folder, options or StoreOptions("test"), told.ready, told.down)
    try:
        await store.start()
        yield store, told
    finally:
        pid = store.pid
        await store.stop()
        folder.close()
    assert pid is None or not lives(pid)


@asynccontextmanager
async def connected(store: StoreServer) -> AsyncIterator[Client]:
    """A client of this store that finds it again after a restart."""
    assert store.credentials is not None
    client = await nats.connect(
        store.addresses,
        user=store.credentials.user,
        password=store.credentials.password,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.02,
        error_cb=_ignored,
    )
    try:
        yield client
    finally:
        await client.close()


async def _ignored(error: Exception) -> None:
    """A lost connection is what these tests are about."""

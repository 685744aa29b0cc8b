"""Data folders with very many sessions in them, made before a start is measured.

To connect, subscribe and leave takes a client some 200 µs, and a million of them minutes. So the states are written
through the node's own session table, with nothing but the store running.
"""

from __future__ import annotations

import asyncio
import math
import time
from array import array
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench.brokers import BrokerError
from brookmq.base.config import Config
from brookmq.store import session_ops
from brookmq.store.folder import DataFolder
from brookmq.store.link import Link, LinkSettings
from brookmq.store.server import StoreOptions, StoreServer
from brookmq.store.session_record import encode_state
from brookmq.store.session_state import SessionState, SubscriptionRecord, session_key
from brookmq.store.table.interface import PARTS, Entry, part_of
from brookmq.store.table.log import TableLog
from brookmq.store.table.opening import open_table

CLIENT_ID: Final = "bench-session-{}"
FILTER: Final = "bench/stored/{}"
TABLE: Final = "sessions"
CHANGES_PER_TURN: Final = 256
READY_S: Final = 30.0


def fill_with_sessions(folder: Path, count: int) -> None:
    """The data folder ``folder/data`` gets ``count`` absent sessions, ``bench-session-N`` with one filter each."""
    asyncio.run(_fill(folder / "data", count))


async def _fill(folder: Path, count: int) -> None:
    async with session_table(folder) as table:
        await _write(table, Sessions(count, Config().journal.shards))


@asynccontextmanager
async def session_table(folder: Path) -> AsyncIterator[TableLog]:
    """The table of sessions in a data folder that no node uses."""
    data = DataFolder.open(folder)
    server = StoreServer(data, StoreOptions(Config().node.name), lambda: None, lambda _: None)
    try:
        if not await server.start(READY_S) or server.credentials is None:
            raise BrokerError(f"the store did not start: {server.reason}")
        link = Link(LinkSettings(server.addresses, "bench", *server.credentials))
        try:
            await link.open()
            table = await open_table(link, TABLE)
            yield table
            await table.close()
        finally:
            await link.close()
    finally:
        await server.stop()
        data.close()


class Sessions:
    """The sessions to be made, by part: made when they are asked for, since a million of them fill a gigabyte."""

    def __init__(self, count: int, shards: int) -> None:
        self.numbers = [array("I") for _ in range(PARTS)]
        for number in range(count):
            self.numbers[part_of(session_key(CLIENT_ID.format(number)))].append(number)
        self._shards = shards
        self._now = time.time()

    def state(self, number: int) -> SessionState:
        session = SessionState(CLIENT_ID.format(number))
        session.expiry = math.inf
        session.created_at = session.disconnected_at = self._now
        topic_filter = FILTER.format(number)
        session.subscriptions[topic_filter] = SubscriptionRecord(topic_filter, topic_filter.encode(), 1)
        session.cursors = [0] * self._shards
        return session

    def encode_part(self, part: int) -> Iterator[Entry]:
        for number in self.numbers[part] if part < PARTS else ():
            state = self.state(number)
            yield session_key(state.client_id), encode_state(state)


async def _write(table: TableLog, sessions: Sessions) -> None:
    """Part by part, so that each part is snapshotted about once."""
    table.encode_part = sessions.encode_part
    table.on_part = lambda *_: None
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()
    table.on_failed = failed.set_exception
    for numbers in sessions.numbers:
        for start in range(0, len(numbers), CHANGES_PER_TURN):
            for number in numbers[start : start + CHANGES_PER_TURN]:
                state = sessions.state(number)
                table.change(session_key(state.client_id), session_ops.state(state))
            room: asyncio.Future[None] = loop.create_future()
            table.wait(partial(room.set_result, None))
            await asyncio.wait((room, failed), return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                raise BrokerError(f"the sessions could not be stored: {table.failed}") from failed.exception()

"""The sessions of a broker, as those see them who take all of them at once: a backup, and another node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from brookmq.broker.broker import Broker
from brookmq.broker.channel import Channel
from brookmq.mqtt import reasons
from brookmq.store.table.interface import Table

SLICE: Final = 100  # sessions ended in one turn
LOOK_S: Final = 0.005


class KeptSessions:
    def __init__(self, broker: Broker, table: Table) -> None:
        self._broker = broker
        self._table = table

    def count(self) -> int:
        return len(self._broker.sessions.by_client_id)

    async def end_all(self) -> None:
        sessions = self._broker.sessions
        for number, session in enumerate(sessions.by_client_id.values()):
            session.will = None
            channel = session.channel
            if isinstance(channel, Channel):
                channel.end(reasons.ADMINISTRATIVE_ACTION)
            if sessions.by_client_id.get(session.client_id) is session:
                sessions.end(session, reasons.ADMINISTRATIVE_ACTION, time.time())
            if number % SLICE == 0:
                await asyncio.sleep(0)

    async def send_away(self) -> None:
        """Another node has them now. Here they would never get a message again, so their clients go and find it; the
        wills of these connections are its to send."""
        for number, session in enumerate([*self._broker.sessions.by_client_id.values()]):
            channel = session.channel
            if session.kept and isinstance(channel, Channel):
                session.will = None
                channel.end(reasons.USE_ANOTHER_SERVER, "another node has taken over the store")
            if number % SLICE == 0:
                await asyncio.sleep(0)

    def hold(self, refusing: bool) -> None:
        self._broker.accepting = not refusing

    def put(self, key: bytes, state: bytes) -> None:
        self._broker.restoring.put(key, state)

    async def stored(self) -> None:
        while self._table.waiting_bytes:  # noqa: ASYNC110 - a table knows callers, not tasks
            await asyncio.sleep(LOOK_S)
        self._broker.restoring.complete()

    def ends(self, epoch: int) -> Sequence[int]:
        if epoch == self._broker.keeper.epoch:
            return self._broker.journaling.heads()
        found = self._broker.restoring.meta.epochs.get(epoch)
        return found.watermark if found is not None else ()

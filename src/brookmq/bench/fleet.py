"""The clients of one load: who publishes what, who receives it, and how their messages are bounded."""

from __future__ import annotations

import os
from itertools import count
from typing import Final

from brookmq.bench import packets
from brookmq.bench.client import Client, Flow
from brookmq.bench.engine import RECEIVE_BYTES, Engine
from brookmq.bench.packets import Topic
from brookmq.bench.settings import Settings
from brookmq.bench.wire import Inbox, Latencies

KEPT_EXPIRY_S: Final = 3600


class Fleet:
    """Makes clients for an engine. Subscribers come first when the fleet is brought up, so that nothing is missed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.engine = Engine(settings.target.connector(), max(RECEIVE_BYTES, 4 * settings.payload_bytes))
        self.latencies = Latencies()
        self.publishers: list[Client] = []
        self.subscribers: list[Client] = []
        self.others: list[Client] = []
        self.kept_ids: list[str] = []
        self._numbers = count(1)
        self._run = f"{os.getpid():x}"

    @property
    def clients(self) -> list[Client]:
        return [*self.subscribers, *self.publishers, *self.others]

    def flow(self, copies: int, publishers: int = 1) -> Flow:
        flow = Flow(copies, publishers * self.settings.outstanding_max)
        self.engine.flows.append(flow)
        return flow

    def client(self, client_id: str = "", filters: list[bytes] | None = None, *, kept: bool = False) -> Client:
        """``kept``: the session outlives the connection, for ``KEPT_EXPIRY_S`` (MQTT 5) or as the broker likes."""
        settings = self.settings
        client_id = client_id or f"bench-{self._run}-{next(self._numbers)}"
        if kept:
            self.kept_ids.append(client_id)
        opening = packets.connect(
            client_id,
            settings.version,
            keep_alive_s=settings.keep_alive_s,
            clean=not kept,
            expiry_s=KEPT_EXPIRY_S if kept else 0,
            user=settings.user,
            password=settings.password,
        )
        wanted = filters or []
        subscriptions = packets.subscribe(wanted, settings.version, settings.qos)
        return Client(opening, Inbox(settings.version, self.latencies), subscriptions, len(wanted))

    def idle(self, client_id: str = "") -> Client:
        client = self.client(client_id, kept=self.settings.kept)
        self.others.append(client)
        return client

    def subscriber(self, filters: list[bytes], flow: Flow | None) -> Client:
        client = self.client(filters=filters, kept=self.settings.kept)
        client.receiving = flow
        self.subscribers.append(client)
        return client

    def publisher(self, topic: Topic, flow: Flow, *, first_serial: int = 0, retain: bool = False) -> Client:
        settings = self.settings
        client = self.client()
        block = packets.publish_block(
            topic, settings.payload_bytes, settings.version, settings.qos, settings.write_size, retain=retain
        )
        block.serial = first_serial
        client.publish_from(block, flow, settings.qos, settings.window, settings.write_size)
        self.publishers.append(client)
        return client

"""A real node that captures, with publishers and what a test needs to know about its store."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable
from pathlib import Path

import nats
import psutil

from brookmq.spark.node_client import NodeClient
from tests.harness import wire
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.wire import Kind

CONFIG = """
[journal]
capture = ["#"]
shards = {shards}
"""
NOTICED_S = 60.0
PIPELINED = 200  # messages between two looks at their acknowledgements


class JournalNode:
    """``url`` is for the option ``servers``."""

    def __init__(self, folder: Path, shards: int = 2, config: str = "") -> None:
        self.node = Node(folder, CONFIG.format(shards=shards) + config)
        self.url = f"http://127.0.0.1:{self.node.http[1]}"

    def publish_all(self, messages: Iterable[tuple[str, bytes]], *, version: int = 5, client_id: str = "bulk") -> None:
        """At QoS 1, many at a time; all are stored when it returns."""
        with Client(self.node.mqtt, version) as client:
            client.connect(client_id)
            waiting: list[int] = []
            for number, (topic, payload) in enumerate(messages):
                packet_id = number % 60_000 + 1
                client.send(wire.publish(topic, payload, version=version, qos=1, packet_id=packet_id))
                waiting.append(packet_id)
                if len(waiting) == PIPELINED:
                    for one in waiting:
                        client.await_(Kind.PUBACK, one)
                    waiting.clear()
            for one in waiting:
                client.await_(Kind.PUBACK, one)

    @property
    def store(self) -> psutil.Process:
        """The process of the store."""
        found = [one for one in psutil.Process(self.node.process.pid).children(recursive=True) if "nats" in one.name()]
        assert len(found) == 1, found
        return found[0]

    @property
    def store_port(self) -> int:
        ports = {one.laddr.port for one in self.store.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
        assert len(ports) == 1, ports
        return int(ports.pop())

    def purge(self, shard: int, keep: int) -> None:
        """Removes all but the newest records of a shard, as an operator or retention would."""
        settings = next((self.node.folder / "data").rglob("nats.conf")).read_text()
        user, password = re.search(r'users: \[\{ user: "([^"]+)", password: "([^"]+)" \}\]', settings).groups()  # type: ignore[union-attr]

        async def purge() -> None:
            link = await nats.connect(f"nats://127.0.0.1:{self.store_port}", user=user, password=password)
            query = json.dumps({"keep": keep}).encode()
            answer = await link.request(f"$JS.API.STREAM.PURGE.JOURNAL_{shard}", query, timeout=10)
            await link.close()
            assert json.loads(answer.data)["success"], answer.data

        asyncio.run(purge())

    def ends(self) -> dict[int, int]:
        """By shard, the offset behind the last."""
        client = NodeClient([self.url])
        try:
            return client.journal().ends
        finally:
            client.close()

    def await_first(self, shard: int, above: int) -> None:
        """Until the node knows that what is below is gone: it looks every few seconds."""
        client = NodeClient([self.url])
        deadline = time.monotonic() + NOTICED_S
        while client.journal().firsts[shard] <= above:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        client.close()

    def stop(self) -> None:
        self.node.stop()

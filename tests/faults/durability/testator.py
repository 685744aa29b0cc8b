"""Clients with wills, who die or take leave; and the one who reads the retained messages at the end."""

from __future__ import annotations

import asyncio

from tests.faults.durability.content import damage, message_in
from tests.faults.durability.history import Message, Retained, Spoiled
from tests.faults.durability.peer import Ground, Peer
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind

STAYS_SECONDS = (0.05, 1.2)
STAYS_AWAY_SECONDS = (0.0, 0.3)
ORDERLY = 0.3  # the share of its connections that end with a DISCONNECT
READ_SECONDS_MAX = 20.0


class Testator(Peer):
    """Every connection has a will with a number of its own."""

    __test__ = False  # no test, whatever its name begins with

    def __init__(self, ground: Ground, name: str, version: int, seed: str, topic: str, *, kept: bool) -> None:
        super().__init__(ground, name, version, seed, kept=kept)
        self.topic = topic
        self.last = 0

    async def run(self) -> None:
        """Until the run comes to its end."""
        while not self.finishing:
            self.last += 1
            if not await self.connect(clean=not self.kept, will=Message(self.topic, self.last)):
                continue
            await self.stay(self.chance.uniform(*STAYS_SECONDS))
            if self.finishing or self.chance.random() < ORDERLY:
                await self.leave()
            else:
                self.drop()
            await self.stay_away(self.chance.uniform(*STAYS_AWAY_SECONDS))


class RetainedReader(Peer):
    """A new client that asks for the retained messages of some topics."""

    def __init__(self, ground: Ground, name: str, topics: list[str]) -> None:
        super().__init__(ground, name, 5, "", kept=False)
        self._topics = topics
        self._found: dict[str, int] = {}
        self._all = asyncio.Event()

    async def read(self) -> None:
        """Writes down what each topic has, 0 for nothing."""
        while not await self.connect(clean=True):
            pass
        await self._first(self._all, self._over, seconds=READ_SECONDS_MAX)
        for topic in self._topics:
            self.history.add(Retained(topic, self._found.get(topic, 0)))
        await self.leave()

    def began(self) -> None:
        self.send(wire.subscribe(1, [(topic, 1) for topic in self._topics]))

    def take(self, packet: Packet) -> None:
        if packet.kind is not Kind.PUBLISH or not packet.retain:
            return
        if packet.qos:
            self.send(wire.acknowledge(Kind.PUBACK, packet.packet_id))
        message = message_in(packet)
        if message is None or (wrong := damage(packet, message, self.version)):
            what = wrong if message else f"payload {packet.payload[:80]!r}"
            self.history.add(Spoiled(self.name, packet.topic.decode(), what))
            return
        self._found[message.topic] = message.number
        if len(self._found) == len(self._topics):
            self._all.set()

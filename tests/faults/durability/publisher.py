"""A publisher with a kept session: numbered messages, several under way, sent again as MQTT demands.

After a new connection everything that was not acknowledged is sent again with its packet id, in the order in which it
was sent first: PUBLISH with DUP, or the PUBREL if the PUBREC had come (section 4.4). Packet ids are few, so that they
come back soon.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from tests.faults.durability.content import payload_of, properties_of
from tests.faults.durability.history import Message, Sent, Settled
from tests.faults.durability.peer import Ground, Peer
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind

WINDOW = 12  # messages under way
IDS = 3 * WINDOW
BURST_MAX = 5
PAUSE_SECONDS_MAX = 0.04
STAY_SECONDS = (0.2, 4.0)


class Topic(NamedTuple):
    """A topic that only one publisher has."""

    name: str
    qos: int
    retain: bool = False


@dataclass(slots=True)
class Outgoing:
    """A message under way; ``received``: its PUBREC has come."""

    message: Message
    topic: Topic
    received: bool = False


class Publisher(Peer):
    """``pace`` above 1 sends faster, below 1 slower."""

    def __init__(
        self, ground: Ground, name: str, version: int, seed: str, topics: list[Topic], *, pace: float = 1.0
    ) -> None:
        super().__init__(ground, name, version, seed)
        self.topics = topics
        self.restless = True  # leaves now and then
        self.settled = 0  # acknowledged messages
        self.last: dict[Topic, int] = dict.fromkeys(topics, 0)
        self._under_way: dict[int, Outgoing] = {}  # in the order in which they were sent first
        self._next_id = 0
        self._pace = pace

    @property
    def idle(self) -> bool:
        return not self._under_way

    @property
    def full(self) -> bool:
        """It sends no more before something is acknowledged."""
        return len(self._under_way) >= WINDOW

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not await self.connect():
                continue
            leaves_after = asyncio.get_running_loop().time() + self.chance.uniform(*STAY_SECONDS)
            while self.connected and (self._stays or asyncio.get_running_loop().time() < leaves_after):
                if not self.finishing:
                    self._burst()
                await asyncio.sleep(self.chance.uniform(0, PAUSE_SECONDS_MAX) / self._pace)
            self.drop()

    @property
    def _stays(self) -> bool:
        return self.finishing or not self.restless

    def publish(self, topic: Topic) -> None:
        """The next message of a topic."""
        self.last[topic] += 1
        packet_id = self._free_id()
        self._under_way[packet_id] = Outgoing(Message(topic.name, self.last[topic]), topic)
        self._send(packet_id, dup=False)

    def _burst(self) -> None:
        if not self.topics:
            return
        for _ in range(min(self.chance.randint(1, BURST_MAX), WINDOW - len(self._under_way))):
            self.publish(self.chance.choice(self.topics))

    def _free_id(self) -> int:
        while True:
            self._next_id = self._next_id % IDS + 1
            if self._next_id not in self._under_way:
                return self._next_id

    def _send(self, packet_id: int, *, dup: bool) -> None:
        message, topic = self._under_way[packet_id].message, self._under_way[packet_id].topic
        self.history.add(Sent(self.name, message, topic.qos, packet_id, dup=dup))
        self.send(
            wire.publish(
                message.topic,
                payload_of(message),
                version=self.version,
                qos=topic.qos,
                packet_id=packet_id,
                retain=topic.retain,
                dup=dup,
                props=properties_of(message) if self.version == 5 else (),
            )
        )

    def began(self) -> None:
        if not self.present:
            self._under_way.clear()  # a session that is gone has nothing under way [MQTT-3.2.2-5]
        for packet_id, outgoing in self._under_way.items():
            if outgoing.received:
                self.send(wire.acknowledge(Kind.PUBREL, packet_id))
            else:
                self._send(packet_id, dup=True)

    def take(self, packet: Packet) -> None:
        outgoing = self._under_way.get(packet.packet_id)
        if packet.kind is Kind.PUBACK and outgoing is not None:
            self._settle(packet, outgoing)
            del self._under_way[packet.packet_id]
        elif packet.kind is Kind.PUBREC:
            if outgoing is not None and not outgoing.received:
                self._settle(packet, outgoing)
                if packet.reason >= 0x80:
                    del self._under_way[packet.packet_id]
                    return
                outgoing.received = True
            self.send(wire.acknowledge(Kind.PUBREL, packet.packet_id))
        elif packet.kind is Kind.PUBCOMP and outgoing is not None:
            del self._under_way[packet.packet_id]

    def _settle(self, packet: Packet, outgoing: Outgoing) -> None:
        accepted = packet.reason < 0x80
        self.settled += accepted
        self.refusals += not accepted
        self.history.add(Settled(self.name, outgoing.message, accepted))

"""Subscribers with kept sessions that come and go, and take their time to acknowledge."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from tests.faults.durability.content import damage, message_in
from tests.faults.durability.history import Answered, Received, Released, Spoiled, Subscribed, Subscribing
from tests.faults.durability.peer import Ground, Peer
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind

SUBSCRIBE_ID = 60_000  # far from what else it sends: nothing
AGAIN_SECONDS = 0.1  # after a refused SUBSCRIBE
HOLD_SECONDS_MAX = 0.1  # that acknowledgements are kept back now and then
NO_RETAINED = 2  # Retain Handling


class Habits(NamedTuple):
    """How a subscriber behaves; times in seconds."""

    stays: tuple[float, float] = (0.2, 3.0)
    stays_away: tuple[float, float] = (0.0, 0.6)
    orderly: float = 0.5  # the share of its leaves that begin with a DISCONNECT
    holds: float = 0.3  # the share of its acknowledgements that it holds back for a while
    cleans: float = 0.0  # the share of its connections that begin a new session
    receive_max: tuple[int, ...] = (4, 20, 100)


class Subscriber(Peer):
    """Subscribes once to one filter, and takes what comes."""

    def __init__(
        self,
        ground: Ground,
        name: str,
        version: int,
        seed: str,
        filter: str,
        qos: int,
        *,
        group: str = "",
        habits: Habits | None = None,
    ) -> None:
        super().__init__(ground, name, version, seed)
        self.filter = filter
        self.qos = qos
        self.group = group
        self.habits = habits or Habits()
        self.subscribed = asyncio.Event()
        self.stubborn = False  # acknowledges nothing: it takes what it has to, and then falls behind
        self._due: deque[tuple[int, bytes]] = deque()  # acknowledgements, in order [MQTT-4.6.0-2] [MQTT-4.6.0-3]
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Until cancelled."""
        habits = self.habits
        while True:
            clean = not self.finishing and self.chance.random() < habits.cleans
            while not await self.connect(clean=clean, receive_max=self.chance.choice(habits.receive_max)):
                pass  # one who wants a new session asks until there is one
            await self.stay(self.chance.uniform(*habits.stays))
            if self.finishing:
                await self.stay_on()
                continue
            if self.chance.random() < habits.orderly:
                if not self.stubborn:
                    self._answer()
                await self.leave()
            else:
                self.drop()
            await self.stay_away(self.chance.uniform(*habits.stays_away))

    def began(self) -> None:
        if not self.present:
            self.subscribed.clear()
        if not self.subscribed.is_set():
            self._subscribe()

    def ended(self) -> None:
        self._due.clear()
        self._stop_holding()

    def take(self, packet: Packet) -> None:
        if packet.kind is Kind.PUBLISH:
            self._publish(packet)
        elif packet.kind is Kind.PUBREL:
            self.history.add(Released(self.name, self.connection, packet.packet_id))
            if not self.leaving:
                self.send(wire.acknowledge(Kind.PUBCOMP, packet.packet_id))
        elif packet.kind is Kind.SUBACK:
            if packet.reasons[0] < 0x80:
                self.history.add(Subscribed(self.name, self.filter, self.group))
                self.subscribed.set()
            else:
                asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._subscribe)

    def _subscribe(self) -> None:
        self.history.add(Subscribing(self.name, self.filter, self.qos, self.group))
        asked = f"$share/{self.group}/{self.filter}" if self.group else self.filter
        handling = wire.options(self.qos, retain_handling=NO_RETAINED) if self.version == 5 else self.qos
        self.send(wire.subscribe(SUBSCRIBE_ID, [(asked, handling)], version=self.version))

    def _publish(self, packet: Packet) -> None:
        message = message_in(packet)
        if message is None:
            self.history.add(Spoiled(self.name, packet.topic.decode(), f"payload {packet.payload[:80]!r}"))
            return
        if wrong := damage(packet, message, self.version):
            self.history.add(Spoiled(self.name, message.topic, wrong))
        if not packet.retain:  # a retained message is no delivery of the one that was published
            self.history.add(
                Received(self.name, self.connection, message, packet.qos, packet.packet_id, dup=packet.dup)
            )
        if self.leaving:
            return
        kind = Kind.PUBACK if packet.qos == 1 else Kind.PUBREC
        if packet.qos:
            self._due.append((0 if packet.retain else packet.packet_id, wire.acknowledge(kind, packet.packet_id)))
        if self._timer is not None or self.stubborn:
            return
        if self.chance.random() < self.habits.holds and not self.finishing:
            delay = self.chance.uniform(0, HOLD_SECONDS_MAX)
            self._timer = asyncio.get_running_loop().call_later(delay, self._answer)
        else:
            self._answer()

    def _stop_holding(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _answer(self) -> None:
        self._stop_holding()
        for packet_id, _ in self._due:
            if packet_id:
                self.history.add(Answered(self.name, self.connection, packet_id))
        self.send(b"".join(acknowledgement for _, acknowledgement in self._due))
        self._due.clear()

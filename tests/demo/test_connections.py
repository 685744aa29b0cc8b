"""The devices' connections, with a real node."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.connections import AlarmDesk, Connection, Fleet, LostConnectionError
from demo.fleet import Measuring, devices

from tests.harness.node import Node
from tests.harness.raw import Client

COUNT = 120


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    found = Node(tmp_path)
    yield found
    found.stop()


def test_all_readings_of_all_devices_arrive_in_order(node: Node) -> None:
    with Client(node.mqtt) as watching:
        watching.connect()
        watching.subscribe("campus/#", qos=1)
        fleet = Fleet(devices(COUNT), Measuring(COUNT))
        asyncio.run(spoken(fleet, node, 1.5))
        assert fleet.connected == COUNT
        assert fleet.acknowledged == fleet.sent
        numbers: dict[str, list[int]] = defaultdict(list)
        for _ in range(fleet.sent):
            message = watching.take()
            numbers[message.topic.decode().rpartition("/")[2]].append(json.loads(message.payload)["n"])
        watching.expect_nothing()
    assert {device: list(range(1, len(times) + 1)) for device, times in fleet.sent_at.items()} == numbers


async def spoken(fleet: Fleet, node: Node, seconds: float) -> None:
    await fleet.connect(*node.mqtt)
    await fleet.greet()
    await fleet.speak(time.monotonic() + seconds)
    await fleet.settle()
    await fleet.close()


def test_a_desk_knows_how_long_alarms_took(node: Node) -> None:
    fleet = Fleet(devices(10), Measuring(10))
    desk = AlarmDesk(fleet, "alarms/#")

    async def alarmed() -> None:
        await desk.open(*node.mqtt)
        await spoken(fleet, node, 0.1)
        sender = Connection("rule")
        await sender.open(*node.mqtt)
        for number in (1, 2):
            alarm = json.dumps({"client_id": "energy-0001", "n": number})
            sender.publish("alarms/energy-0001", alarm.encode(), number)
        deadline = time.monotonic() + 20
        while desk.count < 2:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await sender.close()
        await desk.close()

    asyncio.run(alarmed())
    assert len(desk.delays_s) == 1  # greetings do not count
    assert 0 < desk.delays_s[0] < 30


def test_a_lost_connection_is_noticed(node: Node) -> None:
    fleet = Fleet(devices(10), Measuring(10))

    async def lost() -> None:
        await fleet.connect(*node.mqtt)
        with Client(node.mqtt) as thief:
            thief.connect("energy-0001")  # the same client id: the other one has to go
            try:
                await fleet.speak(time.monotonic() + 20)
            finally:
                await fleet.close()

    with pytest.raises(LostConnectionError, match=r"energy-0001 was disconnected with reason 0x8E"):
        asyncio.run(lost())

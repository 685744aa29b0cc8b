"""docs/guide/replay.md: captured history for MQTT clients, on a real node."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from tests.features.figures import wait_until
from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import Client
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property

CONFIG = """
[journal]
capture = ["sensors/#", "doors/+"]
cache_bytes_max = "1MiB"
"""
KEPT = [(Property.SESSION_EXPIRY, 1000), (Property.RECEIVE_MAXIMUM, 100)]
ALL = "$replay/earliest/#"
TOPICS = 10


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with 4,000 messages of 1 KB that were captured: four times what it has memory for."""
    started = Node(tmp_path_factory.mktemp("replay"), CONFIG)
    with Client(started.mqtt).connect() as publisher:
        publish(publisher, 0, 4000, b" " * 1000)
    yield started
    started.stop()


def publish(client: Client, first: int, last: int, filling: bytes = b"") -> None:
    """Numbered messages over ten topics, acknowledged."""
    for start in range(first, last, 100):
        numbers = range(start, min(start + 100, last))
        client.send(
            *[
                wire.publish(f"sensors/{number % TOPICS}", b"%d" % number + filling, qos=1, packet_id=number % 100 + 1)
                for number in numbers
            ]
        )
        for _ in numbers:
            client.expect(Kind.PUBACK)


def check(packets: list[Packet], last: int) -> None:
    """Each number once, in order on each topic; offsets rise in each partition."""
    numbers = [int(packet.payload) for packet in packets]
    assert sorted(numbers) == [*range(last)]
    for topic in range(TOPICS):
        assert all(one < two for one, two in pairwise([each for each in numbers if each % TOPICS == topic]))
    for partition in range(4):
        offsets = [offset for where, offset in map(place, packets) if where == partition]
        assert all(one < two for one, two in pairwise(offsets))


def place(packet: Packet) -> tuple[int, int]:
    found = properties(packet)
    return int(found["partition"]), int(found["offset"])


def properties(packet: Packet) -> dict[str, str]:
    return dict(packet.all(Property.USER_PROPERTY))  # type: ignore[arg-type]


def test_history_and_then_live_without_gap_or_repeat(node: Node, client: ClientMaker) -> None:
    reader, publisher = client(to=node, props=KEPT[1:]), client(to=node)
    reader.subscribe("$replay/earliest/sensors/#", qos=1)
    packets = []
    for start in range(4000, 5000, 50):
        packets += [reader.take() for _ in range(225)]
        publish(publisher, start, start + 50)
    packets += [reader.take() for _ in range(500)]
    check(packets, 5000)
    publisher.publish("sensors/0", b"5000", qos=1)
    assert reader.take().payload == b"5000"


@pytest.mark.parametrize("version", [3, 4, 5])
def test_every_version_gets_it_at_qos_0(node: Node, client: ClientMaker, version: int) -> None:
    reader = client(version, to=node)
    reader.subscribe("$replay/earliest/sensors/3", qos=0)
    numbers = [int(reader.take().payload) for _ in range(400)]
    assert numbers == [*range(3, 4000, 10)]


def test_time_and_offset(node: Node, client: ClientMaker) -> None:
    publisher = client(to=node)
    reader = client(to=node)
    reader.subscribe("$replay/earliest/doors/+", qos=1)
    publisher.publish("doors/front", b"open", qos=1)
    opened = float(properties(reader.take())["published_at"])
    wait_until(lambda: time.time() > opened + 0.002)
    publisher.publish("doors/front", b"closed", qos=1)
    closed = properties(reader.take())
    reader.unsubscribe("$replay/earliest/doors/+")
    moment, offset = closed["published_at"], closed["offset"]
    for form in (
        f"time/{moment}/doors/+",
        f"time/{moment.replace('.', '')}/doors/+",
        f"offset/{offset}/doors/front",
        f"offset/{closed['partition']}:{offset}/doors/front",
    ):
        reader.subscribe(f"$replay/{form}", qos=1)
        packet = reader.take()
        assert (packet.payload, properties(packet)) == (b"closed", closed)
        reader.unsubscribe(f"$replay/{form}")


def test_it_is_listed(node: Node, client: ClientMaker) -> None:
    client(5, "historian", to=node).subscribe(ALL, qos=1)
    host, port = node.http
    answer = httpx.get(f"http://{host}:{port}/api/v1/clients/historian/subscriptions").raise_for_status().json()
    assert [(row["filter"], row["qos"]) for row in answer["items"]] == [(ALL, 1)]


def test_wrong_forms_are_explained(node: Node, client: ClientMaker) -> None:
    answer = client(to=node).subscribe("$replay/yesterday/sensors/#", "$share/g/$replay/earliest/#", qos=1)
    assert answer.reasons == [0x8F, 0x8F]
    (reason,) = answer.all(Property.REASON_STRING)
    assert "$replay/earliest/FILTER" in str(reason)


@pytest.mark.parametrize("kill", [True, False])
def test_a_kept_replay_goes_on_after_a_restart(tmp_path: Path, kill: bool) -> None:
    node = Node(tmp_path, CONFIG)
    with Client(node.mqtt).connect() as publisher:
        publish(publisher, 0, 2000)
    reader = Client(node.mqtt).connect("reader", props=KEPT)
    reader.subscribe(ALL, qos=1)
    packets = [reader.take() for _ in range(700)]
    if kill:
        node.kill()
    else:
        node.stop()
    reader.close()
    node = Node(tmp_path, CONFIG)
    with Client(node.mqtt).connect() as publisher:
        publish(publisher, 2000, 2500)
    reader = Client(node.mqtt).connect("reader", clean=False, props=KEPT)
    assert reader.connack.session_present
    seen = {int(packet.payload) for packet in packets}
    while len(seen) < 2500:
        packet = reader.take()
        assert packet.dup or int(packet.payload) not in seen
        packets.append(packet)
        seen.add(int(packet.payload))
    if not kill:
        assert len(packets) <= 2500 + 100  # what was in the window may come again
    reader.close()
    node.stop()


def test_the_example_of_the_guide(tmp_path: Path) -> None:
    program = shutil.which("mosquitto_sub")
    assert program, "make setup-test installs it"
    node = Node(tmp_path, CONFIG)
    with Client(node.mqtt).connect() as publisher:
        for payload in (b"20.5", b"20.7"):
            publisher.publish("sensors/hall", payload, qos=1)
    host, port = node.mqtt
    command = [program, "-V", "5", "-h", host, "-p", str(port), "-q", "1", "-C", "2", "-W", "10"]
    command += ["-t", "$replay/earliest/sensors/#", "-F", "%t %p %P"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["sensors/hall", "20.5"], ["sensors/hall", "20.7"]]
    assert [line.split()[3] for line in lines] == ["offset:0", "offset:1"]
    node.stop()

"""Subscribers that do not read: each costs a bounded number of bytes, and the others go on."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading

import pytest

from tests.faults.crowd import Crowd
from tests.faults.watching import MIB, Watched, wait_until
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.raw import Address, Client
from tests.harness.wire import Properties, Property

STUCK = 100
READERS = 3
PAYLOAD = 10_000
OUTPUT_BYTES_MAX = MIB  # edge.output_bytes_max

# plain messages are one object for all receivers; one with a property is written for each of them
OWN_COPIES: Properties = [(Property.USER_PROPERTY, ("for", "each"))]


@pytest.mark.parametrize("props", [(), OWN_COPIES], ids=["shared bytes", "own copies"])
def test_stuck_subscribers_cost_bounded_memory_and_the_others_get_everything(
    make_node: NodeMaker, client: ClientMaker, crowd: Crowd, props: Properties
) -> None:
    node = make_node()
    readers = [client(to=node) for _ in range(READERS)]
    for reader in readers:
        reader.subscribe("t")
    publisher = client(to=node)
    with Watched(node) as watched:
        before = watched.rss()
        crowd.gather(STUCK, node.mqtt, "t")
        number = 0
        # until every stuck one is given up, and then as much again as each may keep
        while watched.counter("subscribers_lagging") < STUCK or number % 100:
            number = publish(publisher, readers, number, props)
        for _ in range(OUTPUT_BYTES_MAX // PAYLOAD):
            number = publish(publisher, readers, number, props)
        assert watched.counter("subscribers_lagging") == STUCK  # each is waited for once
        assert watched.counter("dropped_output_full") >= STUCK * OUTPUT_BYTES_MAX // PAYLOAD
        assert watched.rss() - before < STUCK * OUTPUT_BYTES_MAX * 11 // 10
        for reader in readers:
            reader.expect_nothing()
        crowd.reset()
        wait_until(lambda: watched.gauge("transports") == READERS + 1, "the stuck ones are gone")
        number = publish(publisher, readers, number, props)


def publish(publisher: Client, readers: list[Client], number: int, props: Properties) -> int:
    """One message; every reader gets it, in its order."""
    payload = number.to_bytes(4, "big") + bytes(PAYLOAD - 4)
    publisher.publish("t", payload, props=props)
    for reader in readers:
        assert reader.take().payload == payload
    return number + 1


def test_a_subscriber_that_reads_again_gets_new_messages(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node()
    slow, publisher = client(to=node), client(to=node)
    slow.subscribe("t")
    payload = bytes(PAYLOAD)
    with Watched(node) as watched:
        while not watched.counter("dropped_output_full"):
            publisher.publish("t", payload)
        assert watched.counter("subscribers_lagging") == 1
        sent = watched.counter("messages_sent")
        for _ in range(sent):  # everything that was not dropped is still there, whole
            assert slow.take().payload == payload
        slow.expect_nothing()
        publisher.publish("t", b"new")
        assert slow.take().payload == b"new"


def test_patience_of_zero_holds_nobody_up(make_node: NodeMaker, client: ClientMaker) -> None:
    node = make_node('[edge]\npatience = "0s"')
    stuck, publisher = client(to=node), client(to=node)
    stuck.subscribe("t")
    with Watched(node) as watched:
        while not watched.counter("dropped_output_full"):
            publisher.publish("t", bytes(PAYLOAD))
        assert watched.counter("publishers_paused") == 0
        assert watched.counter("subscribers_lagging") == 1


def test_qos_1_for_a_stuck_subscriber_waits_in_its_queue(make_node: NodeMaker, client: ClientMaker) -> None:
    """What is kept is what comes back after a reconnect: nothing of it is lost up to the bounds of the queue."""
    node = make_node()
    stuck = client(4, "stuck", to=node, clean=False)
    stuck.subscribe("t", qos=1)
    publisher = client(to=node)
    count = 600  # of 10 kB: more than socket and outlet take, less than queue_count_max and queue_bytes_max
    for number in range(count):
        publisher.publish("t", number.to_bytes(4, "big") + bytes(PAYLOAD), qos=1)
    with Watched(node) as watched:
        assert watched.counter("dropped_queue_full") == watched.counter("dropped_output_full") == 0
        stuck.drop()
        wait_until(lambda: watched.gauge("connections") == 1, "the stuck one is gone")
        back = client(4, "stuck", to=node, clean=False)
        assert back.connack.session_present
        got = [int.from_bytes(back.take().payload[:4], "big") for _ in range(count)]
        assert got == list(range(count))
        back.expect_nothing()


@pytest.mark.long
def test_a_thousand_stuck_subscribers_for_a_minute(
    make_node: NodeMaker, crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,000 messages/s of 100 bytes for 60 s to 1,000 subscribers that do not read, and ten that do."""
    node = make_node()
    with Watched(node) as watched:
        alone = median_p99(node.mqtt)
        before = watched.rss()
        crowd.gather(1_000, node.mqtt, "bench/#", keep_alive=0)
        highest = Highest(watched)
        filling = fan_out_p99(node.mqtt, seconds=60)
        grown = highest.stop() - before
        lagging = watched.counter("subscribers_lagging")
        beside = median_p99(node.mqtt)
    with capsys.disabled():
        print(
            f"\n1,000 stuck subscribers: {grown / MIB:.0f} MiB more; {lagging} lagging; p99 of the others "
            f"{alone:.2f} ms without them, {beside:.2f} ms beside them "
            f"({filling:.2f} ms over the minute in which the buffers filled)"
        )
    assert lagging == 1_000
    assert grown < 1_100_000_000
    assert beside <= 2 * alone


def median_p99(address: Address) -> float:
    """Of three short runs: a machine that has something else to do for a moment shall not decide."""
    return statistics.median(fan_out_p99(address, seconds=10) for _ in range(3))


def fan_out_p99(address: Address, seconds: int) -> float:
    """Latency in milliseconds of ten subscribers that read and one publisher, 1,000 messages/s of 100 bytes."""
    command = [sys.executable, "-m", "brookmq", "bench", "fan-out", "--subscribers", "10", "--rate", "1000"]
    command += ["--payload", "100", "--duration", str(seconds), "--warm-up", "1", "--json", "--quiet"]
    command += ["--host", address[0], "--port", str(address[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60)
    p99: float = json.loads(done.stdout)["latency_ms"]["p99"]
    return p99


class Highest:
    """The most memory that a node had while this was running."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self._most = max(self._most, self._watched.rss())

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most

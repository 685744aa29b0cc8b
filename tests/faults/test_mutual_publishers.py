"""Clients that publish to each other, or to themselves, faster than they take: nobody waits for somebody who waits."""

from __future__ import annotations

import threading

import pytest

from tests.faults.watching import Watched
from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.raw import Client
from tests.harness.wire import Kind

COUNT = 4_000
RECEIVE_MAX = 20  # a small window, so that the queue of the session fills


def exchange(client: Client, topic: str, got: list[int]) -> None:
    """Send all in one go, then acknowledge what comes until everything was received and acknowledged."""
    numbers = range(1, COUNT + 1)
    packets = b"".join(wire.publish(topic, b"%d" % n, qos=1, packet_id=n) for n in numbers)
    sending = threading.Thread(target=client.send, args=(packets,))
    sending.start()
    acknowledged = 0
    while len(got) < COUNT or acknowledged < COUNT:
        packet = client.receive()
        if packet.kind is Kind.PUBLISH:
            got.append(int(packet.payload))
            sending.join()  # its acknowledgements stand behind its messages in the stream
            client.send(wire.acknowledge(Kind.PUBACK, packet.packet_id))
        else:
            assert packet.kind is Kind.PUBACK
            acknowledged += 1


@pytest.mark.parametrize("targets", [("b", "a"), ("a", "b")], ids=["each other", "themselves"])
def test_nobody_waits_for_somebody_who_waits(
    make_node: NodeMaker, client: ClientMaker, targets: tuple[str, str]
) -> None:
    node = make_node(
        f"[session]\nqueue_count_max = {3 * COUNT // 2}\ninflight_max = {RECEIVE_MAX}\n[edge]\npatience = '60s'"
    )
    clients = [client(to=node), client(to=node)]
    received: list[list[int]] = [[], []]
    for one, topic in zip(clients, ("a", "b"), strict=True):
        one.subscribe(topic, qos=1)
    threads = [
        threading.Thread(target=exchange, args=arguments) for arguments in zip(clients, targets, received, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == [[*range(1, COUNT + 1)]] * 2
    with Watched(node) as watched:
        assert watched.counter("subscribers_lagging") == 0
        assert watched.counter("dropped_queue_full") == 0

"""docs/guide/overload.md: a subscriber that does not read costs a bound, and others go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.figures import metric, wait_until
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.node import Node
from tests.harness.raw import unique
from tests.harness.wire import PINGREQ, Kind, Properties, Property, publish

OUTPUT_BYTES_MAX = 64 * 1024
PAYLOAD = bytes(1000)
SYSTEM_BYTES_MAX = 16 * 1024 * 1024  # what the two sockets of a connection on one machine may hold
IMPATIENT = """
[edge]
output_bytes_max = "64KiB"
patience = "2s"

[session]
queue_count_max = 100
"""


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    started = Node(tmp_path_factory.mktemp("impatient"), IMPATIENT)
    yield started
    started.stop()


def test_qos_0_is_dropped_for_who_does_not_read_and_others_get_all(impatient: Node, client: ClientMaker) -> None:
    topic = unique()
    stuck, reader, publisher = client(to=impatient), client(to=impatient), client(to=impatient)
    stuck.subscribe(topic)
    reader.subscribe(f"{topic}/+")
    burst = publish(topic, PAYLOAD) * 200
    sent = 0
    while metric(impatient, "dropped_output_full") == 0:
        publisher.send(burst)
        publisher.sync()
        sent += len(burst)
        assert sent < 4 * SYSTEM_BYTES_MAX, "nothing was dropped"
    assert metric(impatient, "publishers_paused") > 0
    assert metric(impatient, "subscribers_lagging") > 0
    publisher.publish(f"{topic}/other", b"through")
    assert reader.take().payload == b"through"
    for _ in range(50):  # lagging: nobody waits for it any more
        publisher.send(burst)
        publisher.sync()
    received = 0
    while received * len(PAYLOAD) < OUTPUT_BYTES_MAX:
        received += stuck.receive().kind is Kind.PUBLISH
    assert metric(impatient, "connections") == 3


def test_a_lagging_subscriber_that_reads_again_is_an_ordinary_one(impatient: Node, client: ClientMaker) -> None:
    topic = unique()
    stuck, publisher = client(to=impatient), client(to=impatient)
    stuck.subscribe(topic)
    burst = publish(topic, PAYLOAD) * 200
    lagging = metric(impatient, "subscribers_lagging")
    while metric(impatient, "subscribers_lagging") == lagging:
        publisher.send(burst)
        publisher.sync()
    last = b"the last one"
    seen = b""
    while seen != last:  # sent again and again, until it is no longer dropped
        publisher.publish(topic, last)
        stuck.sync()
        for _ in range(len(stuck._early)):
            seen = stuck.receive().payload
    before = metric(impatient, "dropped_output_full")
    publisher.publish(topic, b"one more")
    while stuck.receive().payload != b"one more":
        pass
    assert metric(impatient, "dropped_output_full") == before


@pytest.mark.parametrize("props", [(), ((Property.USER_PROPERTY, ("way", "slow")),)], ids=["runs", "singly"])
def test_a_burst_costs_time_and_no_messages(client: ClientMaker, make_node: NodeMaker, props: Properties) -> None:
    node = make_node('[edge]\noutput_bytes_max = "64KiB"\npatience = "30s"\n')
    slow, publisher = client(to=node), client(to=node)
    slow.subscribe("burst")
    burst = publish("burst", PAYLOAD, props=props) * 200
    sent = 0
    while metric(node, "publishers_paused") == 0:
        publisher.send(burst)
        sent += 200
        assert sent * len(PAYLOAD) < 4 * SYSTEM_BYTES_MAX, "nobody was slowed down"
    for _ in range(sent):
        slow.expect(Kind.PUBLISH)
    assert metric(node, "dropped_output_full") == 0
    assert metric(node, "subscribers_lagging") == 0


def test_without_patience_nobody_waits(client: ClientMaker, make_node: NodeMaker) -> None:
    node = make_node('[edge]\noutput_bytes_max = "64KiB"\npatience = 0\n')
    stuck, publisher = client(to=node), client(to=node)
    stuck.subscribe("burst")
    burst = publish("burst", PAYLOAD) * 200
    while metric(node, "dropped_output_full") == 0:
        publisher.send(burst)
        publisher.sync()
    assert metric(node, "publishers_paused") == 0


def test_a_publisher_that_does_not_read_its_acknowledgements_is_not_read_from(
    client: ClientMaker, make_node: NodeMaker
) -> None:
    node = make_node('[edge]\noutput_bytes_max = "64KiB"\n')
    publisher = client(to=node)
    pings = PINGREQ * 10_000
    sent = 0
    while metric(node, "publishers_paused") == 0:
        publisher.send(pings)
        sent += 10_000
    for _ in range(sent):
        publisher.expect(Kind.PINGRESP)


def test_qos_1_waits_in_the_queue_which_is_bounded(impatient: Node, client: ClientMaker) -> None:
    topic = unique()
    slow = client(to=impatient, props=[(Property.RECEIVE_MAXIMUM, 1)])
    slow.subscribe(topic, qos=1)
    publisher = client(to=impatient)
    dropped = metric(impatient, "dropped_queue_full")
    for number in range(150):
        publisher.publish(topic, b"%d" % number, qos=1)
    wait_until(lambda: metric(impatient, "dropped_queue_full") - dropped == 150 - 1 - 100)
    assert slow.take_payloads(101) == [b"0", *(b"%d" % number for number in range(50, 150))]
    slow.expect_nothing()


def test_a_client_that_is_away_slows_nobody_down(impatient: Node, client: ClientMaker) -> None:
    topic = unique()
    away = client(5, unique(), to=impatient, clean=False, props=[(Property.SESSION_EXPIRY, 100)])
    away.subscribe(topic, qos=1)
    away.disconnect()
    publisher = client(to=impatient)
    paused = metric(impatient, "publishers_paused")
    for number in range(200):
        publisher.publish(topic, b"%d" % number, qos=1)
    assert metric(impatient, "publishers_paused") == paused

"""Packets that ask for more than a client or a turn of the loop can take, and what fuzzing found beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from brookmq.access.points import ClientInfo
from brookmq.broker.replay import SLICE, SLICES_MAX
from brookmq.broker.settings import Settings
from tests.broker.memory import MemoryNode, MemoryStream
from tests.broker.reading import packets
from tests.harness import wire
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property

PROTOCOL_ERROR, PACKET_TOO_LARGE, QUOTA_EXCEEDED, TOPIC_FILTER_INVALID = 0x82, 0x95, 0x97, 0x8F


@pytest.fixture
def node() -> Iterator[MemoryNode]:
    made = Settings()
    made.subscriptions_max = 50
    memory = MemoryNode(settings=made)
    yield memory
    memory.close()


def stream(node: MemoryNode, **fields: object) -> MemoryStream:
    opened = MemoryStream(node, "")
    opened.send(wire.connect("c", **fields))  # type: ignore[arg-type]
    assert came(opened)[0].reason == 0
    return opened


def came(stream: MemoryStream) -> list[Packet]:
    data = bytes(stream.host.written)
    stream.host.written.clear()
    return packets(data, 5)


def test_a_second_connect_is_a_protocol_error_whatever_it_says(node: MemoryNode) -> None:
    """[MQTT-3.1.0-2] An unknown version has a reason code in CONNACK, but none in DISCONNECT."""
    client = stream(node)
    client.send(wire.connect("c", version=6))
    assert [(packet.kind, packet.reason) for packet in came(client)] == [(Kind.DISCONNECT, PROTOCOL_ERROR)]
    assert client.host.closed


@pytest.mark.parametrize(("count", "fits"), [(25, True), (26, False)])
@pytest.mark.parametrize("kind", [Kind.SUBSCRIBE, Kind.UNSUBSCRIBE])
def test_an_answer_never_exceeds_the_packet_size_of_the_client(
    node: MemoryNode, kind: Kind, count: int, fits: bool
) -> None:
    """[MQTT-3.1.2-24] Nothing is subscribed either: the client could not be told of it."""
    client = stream(node, props=[(Property.MAXIMUM_PACKET_SIZE, 30)])
    names = [f"t{number}" for number in range(count)]
    if kind is Kind.SUBSCRIBE:
        client.send(wire.subscribe(1, [(name, 0) for name in names]))
    else:
        client.send(wire.unsubscribe(1, names))
    (answer,) = came(client)
    assert answer.size <= 30
    if fits:
        assert len(answer.reasons) == count
    else:
        assert (answer.kind, answer.reason) == (Kind.DISCONNECT, PACKET_TOO_LARGE)
        assert node.broker.subscriptions.count == 0


def test_a_packet_has_no_more_filters_than_a_client_may_have_subscriptions(node: MemoryNode) -> None:
    client = stream(node)
    client.send(wire.subscribe(1, [("t", 0)] * 50))
    assert len(came(client)[0].reasons) == 50
    client.send(wire.subscribe(2, [("t", 0)] * 51))
    assert [(packet.kind, packet.reason) for packet in came(client)] == [(Kind.DISCONNECT, QUOTA_EXCEEDED)]


def test_retained_messages_for_many_filters_come_in_slices(node: MemoryNode) -> None:
    publisher = node.client()
    for number in range(2 * SLICE):
        publisher.publish(f"r/{number}", b"x", retain=True)
    client = stream(node)
    filters = ["#", "+/#", *(f"+/{number}" for number in range(40))]
    client.host.channel.receive(wire.subscribe(1, [(name, 0) for name in filters]), node.monotonic)
    assert node.broker.counters.messages_sent <= SLICES_MAX * SLICE
    node.settle()
    messages = [packet for packet in came(client) if packet.kind is Kind.PUBLISH]
    assert len(messages) == 2 * (2 * SLICE) + 40


def test_what_is_exclusive_cannot_be_shared(node: MemoryNode) -> None:
    client = stream(node)
    client.send(wire.subscribe(1, [("$share/g/$exclusive/t", 0)]))
    assert came(client)[0].reasons == [TOPIC_FILTER_INVALID]
    client.close()
    assert not node.broker.subscriptions.exclusive


class Talker:
    """A mechanism whose challenge is longer than some clients take."""

    def begin(self, client: ClientInfo) -> Talker:
        return self

    def step(self, data: bytes | None) -> tuple[bool, bytes | None, str | None]:
        return False, bytes(100), None


@pytest.mark.parametrize(("most", "fits"), [(200, True), (50, False)])
def test_auth_never_exceeds_the_packet_size_of_the_client(node: MemoryNode, most: int, fits: bool) -> None:
    node.broker.mechanisms["talk"] = Talker()
    opened = MemoryStream(node, "")
    opened.send(wire.connect("c", props=[(Property.AUTH_METHOD, "talk"), (Property.MAXIMUM_PACKET_SIZE, most)]))
    (answer,) = came(opened)
    assert answer.size <= most
    assert (answer.kind, answer.reason) == ((Kind.AUTH, 0x18) if fits else (Kind.CONNACK, PACKET_TOO_LARGE))


def test_auth_may_come_in_pieces(node: MemoryNode) -> None:
    node.broker.mechanisms["talk"] = Talker()
    opened = MemoryStream(node, "")
    opened.send(wire.connect("c", props=[(Property.AUTH_METHOD, "talk")]))
    for byte in wire.auth(0x18, [(Property.AUTH_METHOD, "talk")]):
        opened.send(bytes((byte,)))
    assert [packet.kind for packet in came(opened)] == [Kind.AUTH, Kind.AUTH]

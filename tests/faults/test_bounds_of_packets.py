"""Every limit of `[mqtt]` at its bound and one beyond it: what the table of limits promises, over a socket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import unique
from tests.harness.wire import Kind, Property

CONFIG = """
[mqtt]
packet_size_max = 1000
topic_levels_max = 3
topic_length_max = 20
client_id_length_max = 24
subscriptions_max = 3
user_properties_max = 2
receive_max = 3
topic_alias_max = 2
topic_alias_out_max = 1
qos_max = 2
"""
KEEP: list[tuple[int, wire.Value]] = [(Property.SESSION_EXPIRY, 30)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    limited = Node(tmp_path_factory.mktemp("limited"), CONFIG)
    yield limited
    limited.stop()


def of_size(size: int, version: int) -> bytes:
    """A PUBLISH of exactly so many bytes."""
    packet = wire.publish("t", bytes(size - len(wire.publish("t", bytes(200), version=version)) + 200), version=version)
    assert len(packet) == size
    return packet


@pytest.mark.parametrize("version", [3, 4, 5])
def test_packet_size(node: Node, client: ClientMaker, version: int) -> None:
    sender = client(version, to=node)
    if version == 5:
        assert sender.connack.number(Property.MAXIMUM_PACKET_SIZE) == 1_000
    sender.send(of_size(1_000, version)).sync()
    sender.send(of_size(1_001, version)).expect_closed(0x95)


def test_packet_size_by_its_first_bytes(node: Node, client: ClientMaker) -> None:
    """The length alone is enough: nothing of the packet is waited for."""
    client(to=node).send(of_size(1_001, 5)[:3]).expect_closed(0x95)


def test_packet_size_of_a_connect(node: Node, raw: ClientMaker) -> None:
    """There is nobody to answer yet: the version of the client is in the bytes that are not read."""
    raw(to=node).send(wire.connect("c", password=bytes(1_000), username="u")).expect_closed()


@pytest.mark.parametrize("version", [4, 5])
def test_topic_levels(node: Node, client: ClientMaker, version: int) -> None:
    sender = client(version, to=node)
    refused = 0x8F if version == 5 else 0x80
    assert sender.subscribe("a/b/c", "a/b/c/d").reasons == [0, refused]
    assert sender.subscribe("+/+/#", "+/+/+/#").reasons == [0, refused]
    sender.publish("a/b/c", b"in")
    assert sender.take().payload == b"in"
    sender.send(wire.publish("a/b/c/d", version=version)).expect_closed(0x90)


def test_topic_levels_of_a_will(node: Node, raw: ClientMaker) -> None:
    raw(to=node).send(wire.connect("w1", will=wire.Will("a/b/c/d"))).expect_refused(0x90)


@pytest.mark.parametrize("letter", ["x", "ä"], ids=["ASCII", "two bytes each"])
@pytest.mark.parametrize("qos", [0, 1])
def test_topic_length(node: Node, client: ClientMaker, letter: str, qos: int) -> None:
    at_bound = letter * (20 // len(letter.encode()))
    sender = client(to=node)
    assert sender.subscribe(at_bound, at_bound + "x").reasons == [0, 0x8F]
    sender.publish(at_bound, b"in", qos=qos)
    assert sender.take().payload == b"in"
    beyond = wire.publish(at_bound + "x", qos=qos, packet_id=9 if qos else None)
    sender.send(beyond).expect_closed(0x90)


def test_topic_length_of_a_will(node: Node, raw: ClientMaker, client: ClientMaker) -> None:
    client(5, "w2", to=node, will=wire.Will("w" * 20)).disconnect()
    raw(to=node).send(wire.connect("w3", will=wire.Will("w" * 21))).expect_refused(0x90)


@pytest.mark.parametrize(("version", "refused"), [(3, 2), (4, 2), (5, 0x85)])
@pytest.mark.parametrize("letter", ["x", "ä"], ids=["ASCII", "two bytes each"])
def test_client_id_length(
    node: Node, client: ClientMaker, raw: ClientMaker, version: int, refused: int, letter: str
) -> None:
    at_bound = letter * (24 // len(letter.encode()))
    client(version, at_bound, to=node).disconnect()
    raw(version, to=node).send(wire.connect(at_bound + "x", version=version)).expect_refused(refused)


@pytest.mark.parametrize(("version", "refused"), [(4, 0x80), (5, 0x97)])
def test_subscriptions_of_a_client(node: Node, client: ClientMaker, version: int, refused: int) -> None:
    sender = client(version, to=node)
    assert sender.subscribe("1", "2", "3").reasons == [0, 0, 0]
    assert sender.subscribe("3", qos=1).reasons == [1]  # one that it has is changed, not added
    assert sender.subscribe("4").reasons == [refused]
    sender.unsubscribe("1")
    assert sender.subscribe("4").reasons == [0]
    sender.send(wire.subscribe(9, [(str(number), 0) for number in range(4)], version=version)).expect_closed(0x97)


def test_user_properties(node: Node, client: ClientMaker) -> None:
    pair: tuple[int, wire.Value] = (Property.USER_PROPERTY, ("&", "&"))  # & is the byte of the property's identifier
    sender = client(to=node)
    sender.subscribe("t")
    sender.publish("t", props=[pair] * 2)
    assert len(sender.take().all(Property.USER_PROPERTY)) == 2
    sender.send(wire.publish("t", props=[pair] * 3)).expect_closed(0x97)


def test_receive_maximum(node: Node, client: ClientMaker) -> None:
    sender = client(to=node)
    assert sender.connack.number(Property.RECEIVE_MAXIMUM) == 3
    for packet_id in (1, 2, 3):
        sender.send(wire.publish("t", qos=2, packet_id=packet_id))
        assert sender.expect(Kind.PUBREC).packet_id == packet_id
    sender.send(wire.acknowledge(Kind.PUBREL, 1))
    assert sender.expect(Kind.PUBCOMP).packet_id == 1
    sender.send(wire.publish("t", qos=2, packet_id=4))
    assert sender.expect(Kind.PUBREC).packet_id == 4
    sender.send(wire.publish("t", qos=2, packet_id=5)).expect_closed(0x93)


def test_receive_maximum_in_one_write(node: Node, client: ClientMaker) -> None:
    sender = client(to=node)
    sender.send(*(wire.publish("t", qos=2, packet_id=packet_id) for packet_id in (1, 2, 3, 4)))
    for packet_id in (1, 2, 3):
        assert sender.expect(Kind.PUBREC).packet_id == packet_id
    sender.expect_closed(0x93)


def test_topic_alias_towards_the_node(node: Node, client: ClientMaker) -> None:
    sender = client(to=node)
    assert sender.connack.number(Property.TOPIC_ALIAS_MAXIMUM) == 2
    sender.subscribe("t")
    sender.send(wire.publish("t", b"set", props=[(Property.TOPIC_ALIAS, 2)]))
    sender.send(wire.publish("", b"used", props=[(Property.TOPIC_ALIAS, 2)]))
    assert sender.take_payloads(2) == [b"set", b"used"]
    sender.send(wire.publish("t", props=[(Property.TOPIC_ALIAS, 3)])).expect_closed(0x94)


def test_topic_alias_towards_the_client(node: Node, client: ClientMaker) -> None:
    """The client would take ten; the node uses one, and names for the rest."""
    receiver, sender = client(to=node, props=[(Property.TOPIC_ALIAS_MAXIMUM, 10)]), client(to=node)
    receiver.subscribe("#")
    for _ in range(2):
        sender.publish("first")
        sender.publish("second")
    got = [receiver.take() for _ in range(4)]
    assert [packet.topic for packet in got] == [b"first", b"second", b"", b"second"]
    assert [packet.get(Property.TOPIC_ALIAS) for packet in got] == [1, None, 1, None]


def test_a_client_that_was_refused_leaves_no_session(node: Node, client: ClientMaker, raw: ClientMaker) -> None:
    name = unique()
    refused = wire.connect(name, props=KEEP, clean=False, will=wire.Will("a/b/c/d"))
    raw(to=node).send(refused).expect_refused(0x90)
    assert not client(5, name, to=node, clean=False).connack.session_present

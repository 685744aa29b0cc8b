"""It makes no difference how the network cuts a stream: the same bytes lead to the same packets for everybody.

Runs of packets are handed on as slices; where a piece ends, a run ends. So this also holds the fast way to what the
slow way does with each packet alone. (A client that gets a message twice, through a shared subscription as well, may
get the two in another order: a run goes to one subscription after the other.)
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brookmq.broker.settings import Settings
from tests.broker.memory import MemoryHost, MemoryNode, MemoryStream
from tests.broker.reading import packets
from tests.catalogue import CATALOGUE, CLIENT, EITHER
from tests.harness import wire
from tests.harness.raw import Client
from tests.harness.received import Packet
from tests.harness.wire import Kind, Property, Will

NO_MATCHING_SUBSCRIBERS = 0x10  # told where it is known without extra work, so it may depend on the way taken
TOPICS = st.sampled_from(["t", "t", "t", "t/1", "nobody", "$own", "s", "é"])
PACKET_IDS = st.integers(1, 12)

RECEIVERS: dict[str, tuple[int, list[tuple[str, int]], list[tuple[int, wire.Value]], list[tuple[int, wire.Value]]]] = {
    # name: version, filters with options, properties of its CONNECT, properties of its SUBSCRIBE
    "old": (3, [("t", 1)], [], []),
    "zero": (4, [("#", 0)], [], []),
    "one": (4, [("t", 1), ("t/#", 1)], [], []),
    "two": (5, [("t", 2), ("s", 2)], [], []),
    "identified": (5, [("t", 1), ("+", 2)], [], [(Property.SUBSCRIPTION_ID, 3)]),
    "aliased": (5, [("#", 1)], [(Property.TOPIC_ALIAS_MAXIMUM, 2)], []),
    "small": (5, [("#", 2)], [(Property.MAXIMUM_PACKET_SIZE, 60), (Property.RECEIVE_MAXIMUM, 3)], []),
    "member": (4, [("$share/g/t", 1)], [], []),
    "other member": (5, [("$share/g/t", 0)], [], []),
}


@st.composite
def publishes(draw: st.DrawFn, version: int) -> bytes:
    qos = draw(st.sampled_from([0, 0, 1, 1, 2]))
    props: list[tuple[int, wire.Value]] = draw(
        st.sampled_from([[], [], [], [(Property.CONTENT_TYPE, "x")], [(Property.TOPIC_ALIAS, 1)]])
    )
    return wire.publish(
        draw(TOPICS),
        draw(st.sampled_from([b"", b"x", b"hello", bytes(130)])),
        version=version,
        qos=qos,
        packet_id=draw(PACKET_IDS) if qos else None,
        retain=draw(st.sampled_from([False, False, False, False, True])),
        dup=qos > 0 and draw(st.sampled_from([False, False, False, True])),
        props=props,
    )


@st.composite
def bursts(draw: st.DrawFn, version: int) -> bytes:
    """Messages of one topic back to back, as publishers send them."""
    topic, qos = draw(TOPICS), draw(st.integers(0, 2))
    first = draw(st.integers(1, 6))
    return b"".join(
        wire.publish(topic, b"%d" % number, version=version, qos=qos, packet_id=first + number if qos else None)
        for number in range(draw(st.integers(2, 6)))
    )


@st.composite
def acknowledgements(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from([Kind.PUBACK, Kind.PUBREC, Kind.PUBREL, Kind.PUBREL, Kind.PUBCOMP]))
    return b"".join(wire.acknowledge(kind, number) for number in draw(st.lists(PACKET_IDS, min_size=1, max_size=5)))


@st.composite
def requests(draw: st.DrawFn, version: int) -> bytes:
    return draw(
        st.sampled_from(
            [
                wire.PINGREQ,
                wire.subscribe(20, [("t", 1), ("#", 2)], version=version),
                wire.unsubscribe(22, ["t", "none"], version=version),
            ]
        )
    )


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, bytes, list[int]]:
    """``(version, what a publisher sends, where it is cut)``; now and then with a packet that ends it."""
    version = draw(st.sampled_from([3, 4, 5]))
    odd = [entry.data for entry in CATALOGUE.values() if entry.sender in {CLIENT, EITHER} and len(entry.data) < 200]
    part = st.one_of(publishes(version), bursts(version), bursts(version), acknowledgements(), requests(version))
    parts = draw(st.lists(part, min_size=1, max_size=12))
    if draw(st.sampled_from([False, False, True])):
        parts.append(draw(st.sampled_from(odd)))
    stream = b"".join(parts)
    cuts = draw(st.one_of(st.just([*range(1, len(stream))]), st.lists(st.integers(1, len(stream)), max_size=12)))
    return version, stream, sorted(set(cuts))


def play(version: int, stream: bytes, cuts: list[int], receive_max: int) -> dict[str, list[Packet]]:
    """What everybody has got when the stream has come in these pieces."""
    made = Settings()
    made.receive_max = receive_max
    node = MemoryNode(settings=made)
    everybody: dict[str, Client] = {}
    for name, (its_version, filters, props, subscribe_props) in RECEIVERS.items():
        client = node.client(its_version, name, props=props if its_version == 5 else [])
        client.subscribe(*filters, props=subscribe_props)
        everybody[name] = client
    away = node.client(4, "away", clean=False)
    away.subscribe("t", qos=1)
    away.close()
    will = Will("t/1", b"gone", qos=1)
    publisher = node.client(
        version, "publisher", will=will, props=[(Property.RECEIVE_MAXIMUM, 5)] if version == 5 else []
    )
    everybody["publisher"] = publisher
    at = 0
    for cut in (*cuts, len(stream)):
        if cut > at and not host(publisher).closed:
            publisher.send(stream[at:cut])
            at = cut
    node.settle()
    ended = host(publisher).closed
    publisher.close()
    got = {name: packets(written(client), client.version) for name, client in everybody.items()}
    if ended:  # what was acknowledged before depends on when the journal had it
        got["publisher"] = [each for each in got["publisher"] if each.kind not in {Kind.PUBACK, Kind.PUBREC}]
    back = Client(("", 0), 4, MemoryStream(node, "")).connect("away", clean=False)
    got["away"] = packets(written(back), 4)
    for session in node.broker.sessions.by_client_id.values():
        session.check_invariants()
    node.close()
    return got


def host(client: Client) -> MemoryHost:
    assert isinstance(client.stream, MemoryStream)
    return client.stream.host


def written(client: Client) -> bytes:
    data = bytes(host(client).written)
    host(client).written.clear()
    return bytes(client._buffer) + data


def comparable(got: dict[str, list[Packet]]) -> dict[str, tuple[list[Packet], ...]]:
    """Messages, their acknowledgements and other answers of each client, each in their order: acknowledgements wait
    for the journal, other answers for nothing."""
    plain = {Kind.PUBACK, Kind.PUBREC}
    return {
        name: (
            [packet for packet in received if packet.kind is Kind.PUBLISH],
            [
                replace(packet, reason=0, size=4) if packet.reason in {0, NO_MATCHING_SUBSCRIBERS} else packet
                for packet in received
                if packet.kind in plain
            ],
            [packet for packet in received if packet.kind not in {Kind.PUBLISH, *plain}],
        )
        for name, received in got.items()
    }


@settings(max_examples=60)
@given(streams(), st.sampled_from([3, 1024]))
def test_pieces_make_no_difference(told: tuple[int, bytes, list[int]], receive_max: int) -> None:
    version, stream, cuts = told
    whole = comparable(play(version, stream, [], receive_max))
    assert comparable(play(version, stream, cuts, receive_max)) == whole


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize(
    "ids",
    [[1, 2, 3], [1, 9], [9, 1], [1, 1], [1, 2, 1, 9, 2]],
)
def test_each_pubrel_gets_its_own_answer(version: int, ids: list[int]) -> None:
    """PUBREL of messages that are open and of others in one piece. [MQTT-4.3.3-11]"""
    opened = b"".join(wire.publish("t", b"x", version=version, qos=2, packet_id=number) for number in (1, 2, 3))
    released = b"".join(wire.acknowledge(Kind.PUBREL, number) for number in ids)
    got = play(version, opened + released, [], 1024)["publisher"]
    left, expected = {1, 2, 3}, []
    for number in ids:
        expected.append((number, 0 if number in left or version < 5 else 0x92))
        left.discard(number)
    assert [(packet.packet_id, packet.reason) for packet in got if packet.kind is Kind.PUBCOMP] == expected


@pytest.mark.parametrize("head", [0x10, 0x1F])
def test_connect_may_come_byte_by_byte(head: int) -> None:
    """In MQTT 3.1 the lower half of the first byte is not used."""
    data = bytearray(wire.connect("c", version=3))
    data[0] = head
    node = MemoryNode()
    stream = MemoryStream(node, "")
    for byte in data:
        stream.send(bytes((byte,)))
    assert [packet.kind for packet in packets(bytes(stream.host.written), 3)] == [Kind.CONNACK]
    node.close()


def test_anything_but_connect_ends_a_connection_at_its_first_byte() -> None:
    node = MemoryNode()  # [MQTT-3.1.0-1]
    stream = MemoryStream(node, "")
    stream.send(b"\x30")
    assert stream.host.closed
    assert not stream.host.written
    node.close()

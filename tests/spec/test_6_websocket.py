"""Chapter 6: MQTT over WebSocket."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Broker
from tests.harness.raw import Client, unique
from tests.harness.websocket import BINARY, CONTINUATION, PING, PONG, TEXT, WebSocketStream
from tests.harness.wire import PINGREQ, Kind
from tests.spec.marks import both, mqtt5, mqtt311


def stream(node: Broker, subprotocols: str | None = "mqtt") -> WebSocketStream:
    """A WebSocket of the node."""
    assert node.websocket is not None, "the node has no WebSocket listener"
    return WebSocketStream(node.websocket, subprotocols)


@both
@mqtt5("6.0.0-1", "6.0.0-4", "4.2.0-1")
@mqtt311("6.0.0-1", "6.0.0-4", "7.1.1-1")
def test_packets_travel_in_binary_frames(node: Broker, raw: ClientMaker, client: ClientMaker, version: int) -> None:
    topic = unique()
    socket = stream(node)
    assert socket.subprotocol == "mqtt"
    browser = raw(version, stream=socket).connect()
    browser.subscribe(topic, qos=1)
    other = client(version)
    other.publish(topic, b"x" * 70_000, qos=1)
    assert browser.take().payload == b"x" * 70_000
    other.subscribe(f"{topic}/back")
    browser.publish(f"{topic}/back", b"y" * 70_000, qos=1)
    assert other.take().payload == b"y" * 70_000
    assert set(socket.frames) <= {BINARY, CONTINUATION}


@both
@mqtt5("6.0.0-1")
@mqtt311("6.0.0-1")
def test_a_text_frame_ends_the_connection(node: Broker, raw: ClientMaker, version: int) -> None:
    socket = stream(node)
    browser = raw(version, stream=socket).connect()
    socket.frame(TEXT, PINGREQ)
    browser.expect_closed()


@both
@pytest.mark.parametrize("size", [1, 3, 10])
@mqtt5("6.0.0-2")
@mqtt311("6.0.0-2")
def test_packets_may_be_cut_by_frames(node: Broker, raw: ClientMaker, version: int, size: int) -> None:
    socket = stream(node)
    browser = raw(version, stream=socket)
    packet = wire.connect(unique(), version=version)
    for start in range(0, len(packet), size):
        socket.frame(BINARY, packet[start : start + size])
    assert browser.expect(Kind.CONNACK).reason == 0
    browser.expect_nothing()


@both
@mqtt5("6.0.0-2")
@mqtt311("6.0.0-2")
def test_a_frame_may_have_many_packets_and_a_message_many_frames(node: Broker, raw: ClientMaker, version: int) -> None:
    socket = stream(node)
    browser = raw(version, stream=socket)
    packets = wire.connect(unique(), version=version) + PINGREQ * 3 + PINGREQ[:1]
    socket.frame(BINARY, packets)
    assert browser.expect(Kind.CONNACK).reason == 0
    for _ in range(3):
        browser.expect(Kind.PINGRESP)
    socket.frame(BINARY, PINGREQ[1:], final=False)  # the second half, as the first fragment of a message
    socket.frame(PING, b"are you there")  # control frames may come between fragments
    socket.frame(CONTINUATION, PINGREQ)
    browser.expect(Kind.PINGRESP)
    browser.expect(Kind.PINGRESP)
    assert PONG in socket.frames


@mqtt5("6.0.0-4")
@mqtt311("6.0.0-4")
@pytest.mark.parametrize("offered", ["mqtt", "mqttv3.1, mqtt", "mqtt, other", "other,mqtt"])
def test_the_selected_subprotocol_is_mqtt(node: Broker, offered: str) -> None:
    socket = stream(node, offered)
    try:
        assert socket.subprotocol == "mqtt"
    finally:
        socket.close()


@both
@mqtt5("4.13.1-1", "6.0.0-1")
@mqtt311("4.8.0-1", "6.0.0-1")
def test_a_breach_over_websocket_ends_the_connection(node: Broker, raw: ClientMaker, version: int) -> None:
    browser: Client = raw(version, stream=stream(node)).connect()
    browser.send(wire.publish("a", version=version, qos=3, packet_id=1)).expect_closed(0x81)

"""Section 3.14: DISCONNECT, from both sides."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, PINGREQ, Kind, Property
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, SHUTTING_DOWN = 0x81, 0x82, 0x8B


@both
@mqtt5("3.14.4-1", "3.14.4-2")
@mqtt311("3.14.4-1")
def test_the_node_closes_after_a_clients_disconnect(client: ClientMaker, version: int) -> None:
    leaving = client(version)
    assert leaving.send(wire.disconnect()).read_to_end() == b""


@both
@mqtt5("3.14.4-1")
@mqtt311("3.14.4-2")
def test_nothing_after_disconnect_is_handled(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher, leaving = client(version), client(version)
    watcher.subscribe(topic)
    leaving.send(wire.disconnect(), wire.publish(topic, b"x", version=version), PINGREQ)
    assert leaving.read_to_end() == b""
    watcher.expect_nothing()


@pytest.mark.parametrize(
    ("props", "reasons"),
    [
        pytest.param([(Property.SESSION_EXPIRY, 10)], [PROTOCOL_ERROR], id="session-expiry-after-zero"),
        pytest.param([(Property.SESSION_EXPIRY, 0)] * 2, [PROTOCOL_ERROR], id="twice"),
        pytest.param([(Property.WILL_DELAY, 0)], [MALFORMED, PROTOCOL_ERROR], id="property-of-another"),
    ],
)
@mqtt5("4.13.1-1", "3.14.4-1")
def test_a_wrong_disconnect_is_answered_with_one(
    client: ClientMaker, props: wire.Properties, reasons: list[int]
) -> None:
    client().send(wire.disconnect(0, props)).expect_closed(*reasons)


@mqtt5("3.14.2-1", "4.13.1-1")
def test_a_reason_code_that_disconnect_does_not_have_is_answered_with_one(client: ClientMaker) -> None:
    client().send(wire.disconnect(0x42)).expect_closed(MALFORMED, PROTOCOL_ERROR)


@mqtt5("3.1.2-23", "4.1.0-2")
def test_disconnect_can_change_the_session_expiry(client: ClientMaker) -> None:
    first = client(**KEPT)
    first.disconnect(0, [(Property.SESSION_EXPIRY, 0)])
    second = client(5, first.client_id, **KEPT)
    assert not second.connack.session_present
    second.disconnect(0, [(Property.SESSION_EXPIRY, 60)])
    assert client(5, first.client_id, **KEPT).connack.session_present


BREACHES = {
    "malformed": wire.publish("a", qos=3, packet_id=1),
    "second-connect": wire.connect("again"),
    "alias": wire.publish("", b"x", props=[(Property.TOPIC_ALIAS, 1)]),
    "no-filter": wire.subscribe(1, []),
}


@pytest.mark.parametrize("breach", BREACHES)
@mqtt5("3.14.2-1", "3.14.2-2", "3.14.4-1", "3.14.4-2", "4.13.2-1")
def test_a_disconnect_of_the_node_is_its_last_packet(client: ClientMaker, breach: str) -> None:
    topic = unique()
    bad, publisher = client(), client()
    bad.subscribe(topic)
    bad.send(BREACHES[breach])
    publisher.send(*(wire.publish(topic, b"%d" % number) for number in range(20)))
    packets = list(bad.drain())
    assert packets[-1].kind is Kind.DISCONNECT
    assert packets[-1].reason >= 0x80
    assert packets[-1].get(Property.SESSION_EXPIRY) is None


@pytest.mark.parametrize("breach", BREACHES)
@mqtt5("3.14.2-3", "3.14.2-4", "3.1.2-24")
def test_a_disconnect_of_the_node_stays_within_the_maximum_packet_size(client: ClientMaker, breach: str) -> None:
    small = client(props=[(Property.MAXIMUM_PACKET_SIZE, 20)])
    assert len(small.send(BREACHES[breach]).read_to_end()) <= 20


@mqtt5("3.14.2-1", "3.14.4-2")
@both
def test_a_node_that_stops_says_so(client: ClientMaker, make_node: NodeMaker, version: int) -> None:
    stopping = make_node()
    connected = client(version, to=stopping)
    assert stopping.stop() == 0
    connected.expect_closed(SHUTTING_DOWN)

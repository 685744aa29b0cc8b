"""Sections 3.1.2.10 and 3.1.2.11: what a CONNECT asks of the node for the whole connection."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker, NodeMaker
from tests.harness.raw import Client, ClosedError, SilenceError, unique
from tests.harness.wire import Kind, Property, Will
from tests.spec.marks import acknowledged_qos, both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR = 0x81, 0x82
KEEP_ALIVE_TIMEOUT, TAKEN_OVER = 0x8D, 0x8E


# -- keep alive --------------------------------------------------------------------------------------------------


@both
@mqtt5("3.1.2-22", "3.2.2-22")
@mqtt311("3.1.2-24")
def test_a_silent_client_is_closed_after_one_and_a_half_keep_alives(client: ClientMaker, version: int) -> None:
    watcher = client(version)
    patient, silent = client(version, keep_alive=0), client(version, keep_alive=1, will=Will(f"{watcher.client_id}/w"))
    watcher.subscribe(f"{watcher.client_id}/w")
    assert silent.connack.get(Property.SERVER_KEEP_ALIVE) is None
    start = time.monotonic()
    silent.expect_closed(KEEP_ALIVE_TIMEOUT)
    assert time.monotonic() - start > 1.0
    assert watcher.take().payload == b"will"  # as if the network had failed
    patient.expect_nothing()


@both
@mqtt5("3.1.2-22")
@mqtt311("3.1.2-24")
def test_any_packet_keeps_a_client_alive(client: ClientMaker, version: int) -> None:
    busy = client(version, keep_alive=1)
    until = time.monotonic() + 2.2
    while time.monotonic() < until:
        busy.publish(unique(), qos=1)
        with pytest.raises(AssertionError, match="nothing within"):
            busy.receive(timeout=0.4)
    busy.expect_nothing()


def closed_within(client: Client, seconds: float, meanwhile: Callable[[], object]) -> bool:
    """Whether the node closes the connection while `meanwhile` happens again and again."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        meanwhile()
        with contextlib.suppress(SilenceError):
            try:
                while client.receive(timeout=0.2).kind is not Kind.DISCONNECT:
                    pass
            except ClosedError:
                pass
            return True
    return False


@both
@mqtt5("3.1.2-22")
@mqtt311("3.1.2-24")
def test_what_a_client_gets_does_not_keep_it_alive(client: ClientMaker, version: int) -> None:
    topic = unique()
    silent, publisher = client(version, keep_alive=1), client(version)
    silent.subscribe(topic)
    assert closed_within(silent, 4, lambda: publisher.publish(topic, b"x"))


@both
@mqtt5("3.1.2-22")
@mqtt311("3.1.2-24")
def test_a_packet_that_never_ends_does_not_keep_a_client_alive(client: ClientMaker, version: int) -> None:
    slow = client(version, keep_alive=1)
    slow.send(wire.publish("a", b"x" * 10_000, version=version)[:100])
    assert closed_within(slow, 4, lambda: slow.send(b"x"))


# -- properties that bind the node -------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
@mqtt5("3.1.2-24", "3.1.2-25")
def test_a_message_too_large_for_the_client_is_dropped_as_if_sent(client: ClientMaker, qos: int) -> None:
    topic = unique()
    props = [(Property.MAXIMUM_PACKET_SIZE, 60), (Property.RECEIVE_MAXIMUM, 1)]
    small, publisher = client(5, props=props), client()
    small.subscribe(topic, qos=2)
    for payload in (b"a", b"b" * 200, b"c" * 200, b"d"):
        publisher.publish(topic, payload, qos=qos)
    assert small.take_payloads(2) == [b"a", b"d"]  # the dropped ones used up nothing of the window
    small.expect_nothing()


@mqtt5("3.1.2-24")
def test_a_packet_of_exactly_the_maximum_size_is_sent(client: ClientMaker) -> None:
    topic = unique()
    header = 2 + 2 + len(topic) + 1
    small = client(5, props=[(Property.MAXIMUM_PACKET_SIZE, header + 10)])
    small.subscribe(topic)
    publisher = client()
    publisher.publish(topic, b"x" * 11)
    publisher.publish(topic, b"y" * 10)
    got = small.take()
    assert (got.payload, got.size) == (b"y" * 10, header + 10)


@acknowledged_qos
@mqtt5("3.1.2-24", "3.1.2-25")
def test_an_absent_client_with_a_small_maximum_gets_the_rest(client: ClientMaker, qos: int) -> None:
    props = [(Property.MAXIMUM_PACKET_SIZE, 60), (Property.SESSION_EXPIRY, 30)]
    topic = unique()
    absent = client(5, props=props)
    absent.subscribe(topic, qos=2)
    absent.disconnect()
    publisher = client()
    for payload in (b"a", b"b" * 200, b"c"):
        publisher.publish(topic, payload, qos=qos)
    back = client(5, absent.client_id, clean=False, props=props)
    assert back.take_payloads(2) == [b"a", b"c"]
    back.expect_nothing()


@pytest.mark.parametrize("maximum", [None, 0, 1, 3], ids=str)
@mqtt5("3.1.2-26", "3.1.2-27", "3.3.2-11")
def test_topic_aliases_of_the_node_stay_within_the_clients_maximum(client: ClientMaker, maximum: int | None) -> None:
    props = [] if maximum is None else [(Property.TOPIC_ALIAS_MAXIMUM, maximum)]
    base = unique()
    subscriber, publisher = client(5, props=props), client()
    subscriber.subscribe(f"{base}/#")
    known: dict[int, bytes] = {}
    for number in [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 1]:
        publisher.publish(f"{base}/{number}", b"%d" % number)
        got = subscriber.take()
        alias = got.number(Property.TOPIC_ALIAS)
        assert alias <= (maximum or 0)
        if alias and got.topic:
            known[alias] = got.topic
        assert (got.topic or known[alias]) == f"{base}/{number}".encode()


@mqtt5("3.1.2-29")
def test_without_problem_information_only_some_packets_explain_themselves(client: ClientMaker) -> None:
    quiet = client(5, props=[(Property.REQUEST_PROBLEM_INFORMATION, 0)])
    answers = [
        quiet.subscribe(unique()),
        quiet.unsubscribe("never/subscribed"),
        quiet.publish(unique(), qos=1),
        quiet.publish(unique(), qos=2),
        quiet.send(wire.acknowledge(Kind.PUBREL, 999)).expect(Kind.PUBCOMP),
    ]
    assert [answer.properties for answer in answers if answer] == [[]] * 5


@both
@mqtt5("3.1.2-23")
@mqtt311("3.1.2-4")
def test_sessions_of_mqtt_3_live_for_the_longest_expiry(
    client: ClientMaker, make_node: NodeMaker, version: int
) -> None:
    brief = make_node("[session]\nexpiry_max = 1\n")
    props = [(Property.SESSION_EXPIRY, 1000)]
    first = client(version, to=brief, clean=False, props=props)
    first.disconnect()
    back = client(version, first.client_id, to=brief, clean=False, props=props)
    assert back.connack.session_present
    back.disconnect()
    closed = time.monotonic()
    while time.monotonic() < closed + 2.2:  # time itself is what this is about
        time.sleep(0.05)
    assert not client(version, first.client_id, to=brief, clean=False, props=props).connack.session_present

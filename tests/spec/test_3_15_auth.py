"""Sections 3.15 and 4.12: AUTH and enhanced authentication, with a mechanism that asks twice (`mechanism.py`)."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import Client, unique
from tests.harness.wire import PINGREQ, Kind, Property
from tests.spec.marks import both, mqtt5, mqtt311
from tests.spec.patched import start_patched

MALFORMED, PROTOCOL_ERROR, NOT_AUTHORIZED, BAD_METHOD = 0x81, 0x82, 0x87, 0x8C
CONTINUE, AGAIN = 0x18, 0x19
METHOD = "spec-two-rounds"


def data(value: bytes, method: str = METHOD) -> wire.Properties:
    return [(Property.AUTH_METHOD, method), (Property.AUTH_DATA, value)]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the mechanism."""
    if "BROOKMQ_TEST_BROKER" in os.environ:
        pytest.skip("needs a node with a mechanism for enhanced authentication")
    node = start_patched(tmp_path_factory.mktemp("asking"), "tests.spec.mechanism")
    yield node
    node.stop()


@pytest.fixture
def challenged(asking: Node, raw: ClientMaker) -> Client:
    """A client whose CONNECT was answered with the first question."""
    client = raw(to=asking)
    client.send(wire.connect(unique(), props=[(Property.AUTH_METHOD, METHOD)]))
    question = client.expect(Kind.AUTH)
    assert question.reason == CONTINUE
    assert question.get(Property.AUTH_METHOD) == METHOD
    assert question.get(Property.AUTH_DATA) == b"first?"
    return client


@pytest.fixture
def authenticated(challenged: Client) -> Client:
    """A client that has answered both questions."""
    challenged.send(wire.auth(CONTINUE, data(b"first!")))
    assert challenged.expect(Kind.AUTH).get(Property.AUTH_DATA) == b"second?"
    challenged.send(wire.auth(CONTINUE, data(b"second!")))
    challenged.connack = challenged.expect(Kind.CONNACK)
    return challenged


@mqtt5("4.12.0-1")
def test_an_unknown_method_is_refused(raw: ClientMaker) -> None:
    raw().send(wire.connect(unique(), props=data(b"x", "no-such-method"))).expect_refused(BAD_METHOD)


@mqtt5("4.12.0-2", "4.12.0-5", "3.15.2-1", "3.2.0-1")
def test_an_exchange_to_its_end(authenticated: Client) -> None:
    assert authenticated.connack.reason == 0
    assert authenticated.connack.get(Property.AUTH_METHOD) == METHOD
    assert authenticated.connack.get(Property.AUTH_DATA) == b"welcome"
    authenticated.expect_nothing()


@mqtt5("4.12.0-4", "3.2.2-7")
def test_a_wrong_answer_is_refused_at_any_point(challenged: Client) -> None:
    challenged.send(wire.auth(CONTINUE, data(b"first!"))).expect(Kind.AUTH)
    challenged.send(wire.auth(CONTINUE, data(b"wrong"))).expect_refused(NOT_AUTHORIZED)


@pytest.mark.parametrize("reason", [0x00, AGAIN])
@mqtt5("4.12.0-3")
def test_the_client_must_continue_the_exchange(challenged: Client, reason: int) -> None:
    challenged.send(wire.auth(reason, data(b"first!"))).expect_refused(PROTOCOL_ERROR)


@mqtt5("4.12.0-5")
def test_another_method_in_the_exchange_is_refused(challenged: Client) -> None:
    challenged.send(wire.auth(CONTINUE, data(b"first!", "other"))).expect_refused(PROTOCOL_ERROR, BAD_METHOD)


@pytest.mark.parametrize(
    "packet",
    [PINGREQ, wire.publish("a", b"x"), wire.subscribe(1, [("a", 0)]), wire.connect("again")],
    ids=["pingreq", "publish", "subscribe", "connect"],
)
@mqtt5("3.1.2-30", "3.2.0-1", "3.14.0-1")
def test_only_auth_and_disconnect_may_come_before_connack(challenged: Client, packet: bytes) -> None:
    challenged.send(packet).expect_refused(PROTOCOL_ERROR, or_silence=True)


@mqtt5("3.1.2-30")
def test_the_client_may_give_up(challenged: Client) -> None:
    assert challenged.send(wire.disconnect()).read_to_end() == b""


@mqtt5("4.12.0-6")
def test_without_a_method_there_is_none_in_the_answer(asking: Node, client: ClientMaker) -> None:
    plain = client(to=asking)
    assert plain.connack.get(Property.AUTH_METHOD) is None
    assert plain.connack.get(Property.AUTH_DATA) is None


@mqtt5("4.12.0-7", "4.13.1-1")
def test_auth_without_a_method_is_a_protocol_error(client: ClientMaker) -> None:
    client().send(wire.auth(AGAIN, data(b"x"))).expect_closed(PROTOCOL_ERROR)


@mqtt5("4.12.1-1", "4.12.0-5", "3.15.2-1")
def test_authenticating_again_on_an_open_connection(authenticated: Client) -> None:
    authenticated.send(wire.auth(AGAIN, data(b"")))
    assert authenticated.expect(Kind.AUTH).reason == CONTINUE
    authenticated.publish(unique(), qos=1)  # the connection works meanwhile
    authenticated.send(wire.auth(CONTINUE, data(b"first!"))).expect(Kind.AUTH)
    done = authenticated.send(wire.auth(CONTINUE, data(b"second!"))).expect(Kind.AUTH)
    assert (done.reason, done.get(Property.AUTH_METHOD)) == (0, METHOD)
    authenticated.expect_nothing()


@mqtt5("4.12.1-1")
def test_authenticating_again_by_another_method_is_a_protocol_error(authenticated: Client) -> None:
    authenticated.send(wire.auth(AGAIN, data(b"", "other"))).expect_closed(PROTOCOL_ERROR, BAD_METHOD)


@mqtt5("4.12.1-2")
def test_failing_to_authenticate_again_ends_the_connection(authenticated: Client) -> None:
    authenticated.send(wire.auth(AGAIN, data(b""))).expect(Kind.AUTH)
    authenticated.send(wire.auth(CONTINUE, data(b"wrong"))).expect_closed(NOT_AUTHORIZED)


@pytest.mark.parametrize("flags", [0b0001, 0b0010, 0b0100, 0b1000])
@mqtt5("3.15.1-1", "2.1.3-1")
def test_reserved_flags_of_auth_end_the_connection(client: ClientMaker, flags: int) -> None:
    client().send(wire.auth(AGAIN, data(b"x"), flags=flags)).expect_closed(MALFORMED)


@mqtt5("3.15.2-1", "4.13.1-1")
def test_a_reason_code_that_auth_does_not_have_ends_the_connection(authenticated: Client) -> None:
    authenticated.send(wire.auth(0x42, data(b"x"))).expect_closed(MALFORMED, PROTOCOL_ERROR)


@mqtt5("3.15.2-2", "3.15.2-3", "3.1.2-24")
def test_auth_stays_within_the_maximum_packet_size(asking: Node, raw: ClientMaker) -> None:
    maximum = len(METHOD) + 20
    small = raw(to=asking)
    props: wire.Properties = [(Property.AUTH_METHOD, METHOD), (Property.MAXIMUM_PACKET_SIZE, maximum)]
    small.send(wire.connect(unique(), props=props))
    assert small.expect(Kind.AUTH).size <= maximum


@both
@mqtt5("4.13.1-1")
@mqtt311("3.1.0-1")
def test_auth_as_the_first_packet_ends_the_connection(raw: ClientMaker, version: int) -> None:
    raw(version).send(wire.auth(CONTINUE, data(b"x"))).expect_refused()

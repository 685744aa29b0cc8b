"""Sections 4.1, 4.4 and 4.5: what a session keeps, for how long, and what it sends again."""

from __future__ import annotations

import contextlib
import time

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import KEPT, Kind, Property
from tests.spec.marks import acknowledged_qos, both, mqtt5, mqtt311


@both
@acknowledged_qos
@mqtt5("3.1.2-5", "3.1.2-23", "4.5.0-1", "4.1.0-1")
@mqtt311("3.1.2-4", "3.1.2-5", "4.1.0-1", "4.5.0-1")
def test_messages_wait_for_an_absent_session(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    absent = client(version, **KEPT)
    absent.subscribe(topic, qos=2)
    absent.disconnect()
    publisher = client(version)
    for number in range(20):
        publisher.publish(topic, b"%d" % number, qos=qos)
    back = client(version, absent.client_id, **KEPT)
    assert back.connack.session_present
    got = [back.take() for _ in range(20)]
    assert [one.payload for one in got] == [b"%d" % number for number in range(20)]
    assert {(one.qos, one.dup) for one in got} == {(qos, False)}
    publisher.publish(topic, b"live", qos=qos)  # the subscription is there as well
    assert back.take().payload == b"live"


@both
@mqtt5("4.5.0-1", "3.1.2-5")
@mqtt311("4.5.0-1", "3.1.2-4")
def test_a_lost_connection_keeps_the_session_too(client: ClientMaker, version: int) -> None:
    topic = unique()
    lost = client(version, **KEPT)
    lost.subscribe(topic, qos=1)
    lost.drop()
    client(version).publish(topic, b"x", qos=1)
    assert client(version, lost.client_id, **KEPT).take().payload == b"x"


@both
@mqtt5("3.1.2-4", "4.1.0-2")
@mqtt311("3.1.2-6")
def test_state_of_a_clean_session_is_never_used_again(client: ClientMaker, version: int) -> None:
    topic = unique()
    first = client(version, clean=True)  # no expiry: it ends with its connection
    first.subscribe(topic, qos=1)
    first.disconnect()
    client(version).publish(topic, b"x", qos=1)
    again = client(version, first.client_id, **KEPT)
    assert not again.connack.session_present
    again.expect_nothing()


@mqtt5("3.1.2-23", "4.1.0-2")
@pytest.mark.parametrize("clean", [True, False])
def test_without_session_expiry_a_session_ends_with_its_connection(client: ClientMaker, clean: bool) -> None:
    first = client(5, clean=clean)
    first.subscribe(unique(), qos=1)
    first.disconnect()
    assert not client(5, first.client_id, clean=False).connack.session_present


@mqtt5("4.1.0-2", "3.1.2-23")
def test_a_session_ends_when_its_expiry_has_passed(client: ClientMaker) -> None:
    topic = unique()
    brief, longer = ({"clean": False, "props": [(Property.SESSION_EXPIRY, seconds)]} for seconds in (1, 30))
    first, second = client(**brief), client(**longer)
    for one in (first, second):
        one.subscribe(topic, qos=1)
        one.disconnect()
    closed = time.monotonic()
    client().publish(topic, b"x", qos=1)
    while time.monotonic() < closed + 2.2:  # time itself is what this is about
        time.sleep(0.05)
    back = client(5, first.client_id, **longer)
    assert not back.connack.session_present
    back.expect_nothing()
    kept = client(5, second.client_id, **longer)
    assert kept.connack.session_present
    assert kept.take().payload == b"x"


@mqtt5("4.1.0-1", "3.1.2-23")
@mqtt311("4.1.0-2")
def test_a_session_never_ends_before_its_connection(client: ClientMaker) -> None:
    topic = unique()
    brief = client(5, props=[(Property.SESSION_EXPIRY, 1)])
    old = client(4)
    for one in (brief, old):
        one.subscribe(topic)
    opened = time.monotonic()
    while time.monotonic() < opened + 1.6:  # longer than the expiry, which counts from the end of the connection
        time.sleep(0.05)
    client().publish(topic, b"x")
    assert brief.take().payload == b"x"
    assert old.take().payload == b"x"


@mqtt5("3.1.2-23")
def test_the_largest_session_expiry_is_taken(client: ClientMaker) -> None:
    forever = {"clean": False, "props": [(Property.SESSION_EXPIRY, 0xFFFFFFFF)]}
    first = client(**forever)
    first.disconnect()
    back = client(5, first.client_id, **forever)
    assert back.connack.session_present
    back.disconnect(0, [(Property.SESSION_EXPIRY, 0)])


# -- what is sent again ------------------------------------------------------------------------------------------


@both
@mqtt5("4.4.0-1", "4.3.3-4", "4.3.3-5", "4.3.3-6", "3.3.1-1", "4.6.0-1")
@mqtt311("4.4.0-1", "4.3.3-1", "3.3.1-1", "4.6.0-1")
def test_a_resumed_session_sends_again_what_is_unacknowledged(client: ClientMaker, version: int) -> None:
    topic = unique()
    lost = client(version, **KEPT)
    lost.subscribe(topic, qos=2)
    publisher = client(version)
    for number, qos in enumerate((1, 2, 2, 1, 1, 2)):
        publisher.publish(topic, b"%d" % number, qos=qos)
    first = [lost.expect(Kind.PUBLISH) for _ in range(6)]
    lost.send(wire.acknowledge(Kind.PUBACK, first[0].packet_id))  # done
    lost.send(wire.acknowledge(Kind.PUBREC, first[1].packet_id))  # half done: its PUBREL is to be sent again
    lost.expect(Kind.PUBREL)
    lost.send(wire.acknowledge(Kind.PUBREC, first[2].packet_id))
    lost.expect(Kind.PUBREL)
    lost.send(wire.acknowledge(Kind.PUBCOMP, first[2].packet_id))  # done
    lost.sync().drop()

    back = client(version, lost.client_id, **KEPT)
    again = [back.receive() for _ in range(4)]
    published = [one for one in again if one.kind is Kind.PUBLISH]
    assert [one.payload for one in published] == [b"3", b"4", b"5"]  # in their order
    assert all(one.dup for one in published)
    assert [one.packet_id for one in published] == [one.packet_id for one in first[3:]]
    released = [one.packet_id for one in again if one.kind is Kind.PUBREL]
    assert released == [first[1].packet_id]  # and not its PUBLISH
    back.expect_nothing()


@both
@acknowledged_qos
@mqtt5("4.4.0-1")
def test_nothing_is_sent_again_on_an_open_connection(client: ClientMaker, version: int, qos: int) -> None:
    topic = unique()
    lazy = client(version)
    lazy.subscribe(topic, qos=2)
    client(version).publish(topic, b"x", qos=qos)
    lazy.expect(Kind.PUBLISH)
    opened = time.monotonic()
    while time.monotonic() < opened + 1.2:
        lazy.expect_nothing()


@acknowledged_qos
@mqtt5("4.4.0-2", "4.8.2-6")
def test_a_refused_message_is_not_sent_again(client: ClientMaker, qos: int) -> None:
    topic = unique()
    refusing = client(**KEPT)
    refusing.subscribe(topic, qos=2)
    client().publish(topic, b"x", qos=qos)
    got = refusing.expect(Kind.PUBLISH)
    refusing.send(wire.acknowledge(Kind.PUBACK if qos == 1 else Kind.PUBREC, got.packet_id, 0x83))
    refusing.expect_nothing()  # no PUBREL either
    refusing.drop()
    client(5, refusing.client_id, **KEPT).expect_nothing()


@both
@pytest.mark.parametrize(("qos", "wrong"), [(1, Kind.PUBREC), (1, Kind.PUBCOMP), (2, Kind.PUBACK), (2, Kind.PUBCOMP)])
@mqtt5("4.3.2-3", "4.3.3-3")
@mqtt311("4.3.2-1", "4.3.3-1")
def test_the_wrong_acknowledgement_settles_nothing(client: ClientMaker, version: int, qos: int, wrong: Kind) -> None:
    """It may end the connection; either way the message is still to be delivered."""
    topic = unique()
    confused = client(version, **KEPT)
    confused.subscribe(topic, qos=2)
    client(version).publish(topic, b"x", qos=qos)
    sent = confused.expect(Kind.PUBLISH)
    confused.send(wire.acknowledge(wrong, sent.packet_id))
    with contextlib.suppress(AssertionError):  # closed, or answered with PUBREL
        confused.expect_nothing()
    confused.drop()
    again = client(version, confused.client_id, **KEPT).take()
    assert (again.packet_id, again.dup, again.qos) == (sent.packet_id, True, qos)


@both
@mqtt5("4.3.3-4", "4.3.3-5")
@mqtt311("4.3.3-1")
def test_a_repeated_pubrec_has_its_pubrel_again(client: ClientMaker, version: int) -> None:
    topic = unique()
    subscriber = client(version)
    subscriber.subscribe(topic, qos=2)
    client(version).publish(topic, b"x", qos=2)
    packet_id = subscriber.expect(Kind.PUBLISH).packet_id
    for _ in range(3):
        got = subscriber.send(wire.acknowledge(Kind.PUBREC, packet_id)).expect(Kind.PUBREL)
        assert (got.packet_id, got.reason) == (packet_id, 0)


@both
@mqtt5("4.4.0-1", "4.3.3-10", "4.3.3-12")
@mqtt311("4.4.0-1", "4.3.3-2")
def test_an_open_qos2_exchange_of_the_client_survives_its_connection(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher, lost = client(version), client(version, **KEPT)
    watcher.subscribe(topic, qos=2)
    message = wire.publish(topic, b"once", version=version, qos=2, packet_id=5)
    lost.send(message).expect(Kind.PUBREC)
    lost.drop()
    back = client(version, lost.client_id, **KEPT)
    back.send(wire.publish(topic, b"once", version=version, qos=2, packet_id=5, dup=True)).expect(Kind.PUBREC)
    back.send(wire.acknowledge(Kind.PUBREL, 5))
    assert back.expect(Kind.PUBCOMP).packet_id == 5
    assert watcher.take().payload == b"once"
    watcher.expect_nothing()


@both
@mqtt5("3.1.2-4", "4.3.3-12")
@mqtt311("3.1.2-6", "4.3.3-2")
def test_a_clean_start_forgets_open_qos2_exchanges(client: ClientMaker, version: int) -> None:
    topic = unique()
    watcher, lost = client(version), client(version, **KEPT)
    watcher.subscribe(topic, qos=2)
    message = wire.publish(topic, b"x", version=version, qos=2, packet_id=5)
    lost.send(message).expect(Kind.PUBREC)
    lost.send(wire.acknowledge(Kind.PUBREL, 5)).expect(Kind.PUBCOMP)
    lost.send(message).expect(Kind.PUBREC)
    lost.drop()
    fresh = client(version, lost.client_id, clean=True)
    fresh.send(message).expect(Kind.PUBREC)
    fresh.send(wire.acknowledge(Kind.PUBREL, 5)).expect(Kind.PUBCOMP)
    assert watcher.take().payload == b"x"
    assert watcher.take().payload == b"x"


@both
@mqtt5("4.5.0-1", "3.1.4-3")
@mqtt311("4.5.0-1", "3.1.4-2")
def test_a_takeover_keeps_the_session_whole(client: ClientMaker, version: int) -> None:
    topic = unique()
    old = client(version, **KEPT)
    old.subscribe(topic, qos=1)
    publisher = client(version)
    publisher.publish(topic, b"before", qos=1)
    sent = old.expect(Kind.PUBLISH)
    new = client(version, old.client_id, **KEPT)
    publisher.publish(topic, b"after", qos=1)
    got = [new.take(), new.take()]
    assert [(one.payload, one.dup) for one in got] == [(b"before", True), (b"after", False)]
    assert got[0].packet_id == sent.packet_id

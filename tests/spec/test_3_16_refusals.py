"""What a node refuses for reasons of its own (sections 3.1.4, 3.3.5, 3.4.2, 3.9.3): with a plugin that says no."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import unique
from tests.harness.wire import Kind, Property
from tests.spec.marks import both, mqtt5, mqtt311

NOT_AUTHORIZED = 0x87
CONFIG = '[plugins]\nrequired = ["spec_door"]\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose plugin refuses the users `wrong` and `banned` and every topic with `forbidden` in it."""
    if "BROOKMQ_TEST_BROKER" in os.environ:
        pytest.skip("needs a node with a plugin")
    paths = [str(Path(__file__).with_name("plugin")), os.environ.get("PYTHONPATH", "")]
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    node = Node(tmp_path_factory.mktemp("guarded"), CONFIG, environment=environment)
    yield node
    node.stop()


@both
@pytest.mark.parametrize(("user", "reasons"), [("wrong", (4, 0x86)), ("banned", (5, 0x87))])
@mqtt5("3.1.4-2", "3.2.2-6", "3.2.2-7", "3.2.2-8", "4.13.2-1")
@mqtt311("3.2.2-4", "3.2.2-5", "3.1.4-5")
def test_who_may_not_come_in_is_told_so(
    guarded: Node, raw: ClientMaker, client: ClientMaker, version: int, user: str, reasons: tuple[int, int]
) -> None:
    topic = unique()
    watcher = client(version, to=guarded)
    watcher.subscribe(topic)
    refused = raw(version, to=guarded).send(
        wire.connect(unique(), version=version, username=user, password=b"x"),
        wire.publish(topic, b"x", version=version),
    )
    refused.expect_refused(reasons[version == 5])
    watcher.expect_nothing()


@pytest.mark.parametrize("maximum", [10, 20, 100])
@mqtt5("3.2.2-19", "3.2.2-20")
def test_a_refusal_is_explained_only_within_the_maximum_packet_size(
    guarded: Node, raw: ClientMaker, maximum: int
) -> None:
    props = [(Property.MAXIMUM_PACKET_SIZE, maximum)]
    refused = raw(to=guarded).send(wire.connect(unique(), username="banned", props=props))
    got = refused.expect_refused(NOT_AUTHORIZED)
    assert got is not None
    assert got.size <= maximum


@both
@pytest.mark.parametrize("qos", [0, 1, 2])
@mqtt5("3.4.2-1", "3.5.2-1", "3.3.4-1")
@mqtt311("3.3.5-2")
def test_a_forbidden_message_goes_nowhere(guarded: Node, client: ClientMaker, version: int, qos: int) -> None:
    base = unique()
    watcher, publisher = client(version, to=guarded), client(version, to=guarded)
    watcher.subscribe(f"{base}/#")
    packet_id = 1 if qos else None
    publisher.send(wire.publish(f"{base}/forbidden", b"x", version=version, qos=qos, packet_id=packet_id))
    if qos:
        answer = publisher.expect(Kind.PUBACK if qos == 1 else Kind.PUBREC)
        # 3.1.1 has no way to say no: the acknowledgement looks like any other
        assert answer.reason == (NOT_AUTHORIZED if version == 5 else 0)
    publisher.expect_nothing()
    watcher.expect_nothing()


@both
@mqtt5("3.4.2-1", "3.3.4-1")
@mqtt311("3.3.5-2")
def test_a_decision_holds_for_its_qos_only(guarded: Node, client: ClientMaker, version: int) -> None:
    topic = f"{unique()}/qos0-only"
    watcher, publisher = client(version, to=guarded), client(version, to=guarded)
    watcher.subscribe(topic, qos=0)
    for payload in (b"1", b"2", b"3"):
        publisher.publish(topic, payload)
    answer = publisher.publish(topic, b"no", qos=1)
    assert answer is not None
    assert answer.reason == (NOT_AUTHORIZED if version == 5 else 0)
    publisher.publish(topic, b"4")
    assert watcher.take_payloads(4) == [b"1", b"2", b"3", b"4"]
    watcher.expect_nothing()


@mqtt5("4.3.3-9")
def test_after_a_refusing_pubrec_the_packet_id_is_free(guarded: Node, client: ClientMaker) -> None:
    base = unique()
    watcher, publisher = client(to=guarded), client(to=guarded)
    watcher.subscribe(f"{base}/#")
    publisher.send(wire.publish(f"{base}/forbidden", b"x", qos=2, packet_id=1))
    assert publisher.expect(Kind.PUBREC).reason == NOT_AUTHORIZED
    publisher.send(wire.publish(f"{base}/allowed", b"y", qos=2, packet_id=1))
    assert publisher.expect(Kind.PUBREC).reason == 0
    publisher.send(wire.acknowledge(Kind.PUBREL, 1))
    assert publisher.expect(Kind.PUBCOMP).reason == 0
    assert watcher.take().payload == b"y"


@both
@mqtt5("3.8.4-7", "3.9.3-1", "3.9.3-2")
@mqtt311("3.8.4-5", "3.9.3-1", "3.9.3-2")
def test_a_forbidden_filter_is_refused_in_its_place(guarded: Node, client: ClientMaker, version: int) -> None:
    base = unique()
    subscriber = client(version, to=guarded)
    answer = subscriber.subscribe((f"{base}/a", 1), (f"{base}/forbidden", 1), (f"{base}/b", 2))
    assert answer.reasons == [1, NOT_AUTHORIZED if version == 5 else 0x80, 2]


@mqtt5("3.1.2-29")
def test_refusals_are_not_explained_to_who_does_not_ask(guarded: Node, client: ClientMaker) -> None:
    quiet = client(to=guarded, props=[(Property.REQUEST_PROBLEM_INFORMATION, 0)])
    assert quiet.subscribe("forbidden").properties == []
    for qos in (1, 2):
        answer = quiet.publish("forbidden", qos=qos)
        assert answer is not None
        assert answer.reason == NOT_AUTHORIZED
        assert answer.properties == []


@mqtt5("3.4.2-2", "3.4.2-3", "3.5.2-2", "3.5.2-3", "3.9.2-1", "3.9.2-2")
def test_refusals_are_explained_only_within_the_maximum_packet_size(guarded: Node, client: ClientMaker) -> None:
    small = client(to=guarded, props=[(Property.MAXIMUM_PACKET_SIZE, 20)])
    assert small.subscribe("forbidden").size <= 20
    for qos in (1, 2):
        answer = small.publish("forbidden", qos=qos)
        assert answer is not None
        assert answer.size <= 20


@mqtt5("3.1.2-8")
def test_a_forbidden_will_is_not_published(guarded: Node, client: ClientMaker, raw: ClientMaker) -> None:
    """A node may refuse the CONNECT or drop the will; what may not be published is not."""
    base = unique()
    watcher = client(to=guarded)
    watcher.subscribe(f"{base}/#")
    will = wire.Will(f"{base}/forbidden")
    name = unique()
    raw(to=guarded).send(wire.connect(name, will=will)).expect(Kind.CONNACK)
    client(5, name, to=guarded)  # ends the first connection, if it was let in, as if the network had failed
    watcher.expect_nothing()

"""Section 4.7: topic names and topic filters."""

from __future__ import annotations

import pytest

from tests.harness import wire
from tests.harness.fixtures import ClientMaker
from tests.harness.raw import unique
from tests.harness.wire import Kind
from tests.spec.marks import both, mqtt5, mqtt311

MALFORMED, PROTOCOL_ERROR, FILTER_INVALID, NAME_INVALID = 0x81, 0x82, 0x8F, 0x90

# filter, topics that it matches, topics that it does not; the base of the test stands in front of each
MATCHES = [
    ("/#", ["", "/a", "/a/b", "/"], ["x"]),
    ("/+", ["/a", "/"], ["", "/a/b", "/a/"]),
    ("/+/+", ["/a/b", "//", "/a/", "//b"], ["/a", "/a/b/c"]),
    ("/+/b/#", ["/a/b", "/a/b/c", "/a/b/c/d", "//b"], ["/a", "/b", "/a/c", "/a/b2"]),
    ("/a", ["/a"], ["/A", "/a/", "//a", "/ a", ""]),
    ("/a/", ["/a/"], ["/a", "/a//"]),
    ("//", ["//"], ["/", "///"]),
    ("/+/x/+/y", ["/1/x/2/y", "//x//y"], ["/1/x/2/z", "/1/x/y"]),
    ("/ a b ", ["/ a b "], ["/a b"]),
    ("/$x/+", ["/$x/y"], ["/x/y"]),
]


@both
@pytest.mark.parametrize(("name", "matching", "others"), MATCHES, ids=[row[0] for row in MATCHES])
@mqtt5("4.7.1-1", "4.7.1-2", "4.7.3-4", "3.3.2-3")
@mqtt311("4.7.1-2", "4.7.1-3", "4.7.3-4", "3.3.2-3")
def test_what_a_filter_matches(
    client: ClientMaker, version: int, name: str, matching: list[str], others: list[str]
) -> None:
    base = unique()
    subscriber, publisher = client(version), client(version)
    assert subscriber.subscribe(base + name).reasons == [0]
    for topic in matching:
        publisher.publish(base + topic, b"x")
        assert subscriber.take().topic.decode() == base + topic
    for topic in others:
        publisher.publish(base + topic, b"x")
    subscriber.expect_nothing()


@both
@pytest.mark.parametrize("name", ["+", "#", "+/+", "+/#", "/+", "/#"])
@mqtt5("4.7.1-1", "4.7.1-2")
@mqtt311("4.7.1-2", "4.7.1-3")
def test_filters_that_begin_with_a_wildcard(client: ClientMaker, version: int, name: str) -> None:
    """On a node that others use too: only what carries this test's payload counts."""
    subscriber, publisher = client(version), client(version)
    mark = unique().encode()
    topics = {"+": mark.decode(), "#": f"{mark.decode()}/a/b", "+/+": f"{mark.decode()}/a", "+/#": f"{mark.decode()}/a"}
    topic = topics.get(name, f"/{mark.decode()}")
    subscriber.subscribe(name)
    publisher.publish(topic, mark)
    while (got := subscriber.take()).payload != mark:
        pass
    assert got.topic.decode() == topic


@both
@pytest.mark.parametrize("name", ["a/#/b", "a#", "#/a", "a/b#", "##", "a+", "+a", "a/+b", "a/b+/c", "++"])
@mqtt5("4.7.1-1", "4.7.1-2")
@mqtt311("4.7.1-2", "4.7.1-3")
def test_a_wildcard_that_is_not_a_whole_level_is_refused(client: ClientMaker, version: int, name: str) -> None:
    subscriber = client(version).send(wire.subscribe(1, [(name, 0)], version=version))
    try:
        answer = subscriber.receive()
    except AssertionError:
        assert version == 4  # closed
        return
    if answer.kind is Kind.DISCONNECT:
        assert answer.reason in {MALFORMED, PROTOCOL_ERROR, FILTER_INVALID}
    else:
        assert answer.reasons == [FILTER_INVALID if version == 5 else 0x80]


@both
@pytest.mark.parametrize("kind", ["subscribe", "unsubscribe"])
@mqtt5("4.7.3-1")
@mqtt311("4.7.3-1")
def test_an_empty_filter_is_refused(client: ClientMaker, version: int, kind: str) -> None:
    bad = client(version)
    if kind == "subscribe":
        bad.send(wire.subscribe(1, [("", 0)], version=version))
    else:
        bad.send(wire.unsubscribe(1, [""], version=version))
    try:
        answer = bad.receive()
    except AssertionError:
        return  # closed
    if answer.kind is Kind.DISCONNECT:
        assert answer.reason in {MALFORMED, PROTOCOL_ERROR, FILTER_INVALID}
    elif version == 5 or kind == "subscribe":
        assert answer.reasons[0] >= 0x80


@both
@mqtt5("4.7.2-1")
@mqtt311("4.7.2-1")
def test_wildcards_at_the_start_do_not_match_topics_of_the_node(client: ClientMaker, version: int) -> None:
    base = f"${unique()}"
    everything, exact = client(version), client(version)
    mark = unique().encode()
    everything.subscribe("#", "+/a", "+/#", qos=1)
    exact.subscribe(f"{base}/a", f"{base}/#", f"{base}/+", qos=1)
    publisher = client(version)
    publisher.publish(f"{base}/a", mark, qos=1)
    publisher.publish(f"{base[1:]}/a", mark, qos=1)
    assert exact.take().topic.decode() == f"{base}/a"
    while (got := everything.take()).payload != mark:
        pass
    assert got.topic.decode() == f"{base[1:]}/a"


@both
@mqtt5("4.7.2-1")
@mqtt311("4.7.2-1")
def test_retained_topics_of_the_node_do_not_match_either(client: ClientMaker, version: int) -> None:
    base = f"${unique()}"
    publisher = client(version)
    publisher.publish(f"{base}/a", b"kept", qos=1, retain=True)
    everything, exact = client(version), client(version)
    everything.subscribe("+/a")
    everything.expect_nothing()
    exact.subscribe(f"{base}/+")
    assert exact.take().payload == b"kept"
    publisher.publish(f"{base}/a", retain=True)


@both
@mqtt5("4.7.3-3")
@mqtt311("4.7.3-3")
def test_a_topic_as_long_as_a_topic_can_be(client: ClientMaker, version: int) -> None:
    topic = unique()
    topic += "x" * (65_535 - len(topic))
    subscriber = client(version)
    assert subscriber.subscribe(topic).reasons == [0]
    client(version).publish(topic, b"x")
    assert len(subscriber.take().topic) == 65_535


@both
@mqtt5("4.7.3-4")
@mqtt311("4.7.3-4")
def test_topics_are_not_normalized(client: ClientMaker, version: int) -> None:
    base = unique()
    composed, decomposed = f"{base}/\u00e9", f"{base}/e\u0301"
    first, second, publisher = client(version), client(version), client(version)
    first.subscribe(composed)
    second.subscribe(decomposed)
    publisher.publish(composed, b"composed")
    publisher.publish(decomposed, b"decomposed")
    publisher.publish(f"{base}/\u00c9", b"upper case")
    assert first.take().payload == b"composed"
    assert second.take().payload == b"decomposed"
    first.expect_nothing()
    second.expect_nothing()

"""docs/guide/shared.md: strategies of groups, and members that are away, on a real node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.harness.fixtures import ClientMaker
from tests.harness.node import Node
from tests.harness.raw import Client, unique
from tests.harness.wire import Property

STRATEGIES = ("random", "round_robin", "sticky", "hash_client", "hash_topic", "local")
GROUPS = "".join(f'[shared.groups.{name}]\nstrategy = "{name}"\n' for name in STRATEGIES)
KEPT = [(Property.SESSION_EXPIRY, 100)]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with one group for each strategy, named after it."""
    started = Node(tmp_path_factory.mktemp("groups"), GROUPS)
    yield started
    started.stop()


def _members(client: ClientMaker, node: Node, filter: str, count: int = 3) -> list[Client]:
    members = [client(to=node) for _ in range(count)]
    for member in members:
        member.subscribe(filter, qos=1)
    return members


def _received(members: list[Client], topics: list[str]) -> dict[str, list[int]]:
    """Which members got each topic. Whatever was on its way to a member is there before a message of its own is."""
    found: dict[str, list[int]] = {topic: [] for topic in topics}
    for number, member in enumerate(members):
        end = unique("end")
        member.subscribe(end)
        member.publish(end)
        while (got := member.take()).topic != end.encode():
            found[got.topic.decode()].append(number)
    return found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_message_goes_to_one_member(groups: Node, client: ClientMaker, strategy: str) -> None:
    base = unique("jobs")
    members = _members(client, groups, f"$share/{strategy}/{base}/#")
    topics = [f"{base}/{number}" for number in range(30)]
    publisher = client(to=groups)
    for topic in topics:
        publisher.publish(topic, b"work", qos=1)
    found = _received(members, topics)
    assert all(len(receivers) == 1 for receivers in found.values())
    load = Counter(receivers[0] for receivers in found.values())
    if strategy in ("round_robin", "local"):
        assert set(load.values()) == {10}
    elif strategy in ("sticky", "hash_client"):
        assert len(load) == 1
    else:
        assert len(load) > 1  # 30 topics on one of three by chance: never in the life of this test


def test_hash_topic_keeps_a_topic_with_one_member(groups: Node, client: ClientMaker) -> None:
    base = unique("jobs")
    members = _members(client, groups, f"$share/hash_topic/{base}/#")
    topics = [f"{base}/{number}" for number in range(5)]
    for _ in range(3):
        publisher = client(to=groups)
        for topic in topics:
            publisher.publish(topic, b"work", qos=1)
    for receivers in _received(members, topics).values():
        assert len(receivers) == 3
        assert len(set(receivers)) == 1


def test_sticky_moves_on_when_its_member_leaves(groups: Node, client: ClientMaker) -> None:
    topic = unique("jobs")
    members = _members(client, groups, f"$share/sticky/{topic}", 2)
    publisher = client(to=groups)
    publisher.publish(topic, b"1", qos=1)
    first = next(number for number, counted in enumerate(_count(members, topic)) if counted)
    members[first].disconnect()
    publisher.publish(topic, b"2", qos=1)
    assert members[1 - first].take().payload == b"2"


def _count(members: list[Client], topic: str) -> list[int]:
    found = _received(members, [topic])[topic]
    return [found.count(number) for number in range(len(members))]


def test_name_and_filter_make_a_group(groups: Node, client: ClientMaker) -> None:
    base = unique("jobs")
    first, second, ordinary = client(to=groups), client(to=groups), client(to=groups)
    first.subscribe(f"$share/round_robin/{base}/#")
    second.subscribe(f"$share/round_robin/{base}/+")
    ordinary.subscribe(f"{base}/1")
    client(to=groups).publish(f"{base}/1", b"work")
    assert [member.take().payload for member in (first, second, ordinary)] == [b"work"] * 3


def test_a_member_that_is_away_gets_messages_only_when_all_are(groups: Node, client: ClientMaker) -> None:
    topic = unique("jobs")
    name = unique()
    away = client(5, name, to=groups, clean=False, props=KEPT)
    here = client(to=groups)
    away.subscribe(f"$share/round_robin/{topic}", qos=1)
    here.subscribe(f"$share/round_robin/{topic}", qos=1)
    away.disconnect()
    publisher = client(to=groups)
    for number in range(4):
        publisher.publish(topic, b"%d" % number, qos=1)
    assert here.take_payloads(4) == [b"0", b"1", b"2", b"3"]
    here.disconnect()
    publisher.publish(topic, b"4", qos=1)
    back = client(5, name, to=groups, clean=False, props=KEPT)
    assert back.take_payloads(1) == [b"4"]
    back.expect_nothing()


def test_the_queue_of_a_session_that_ends_goes_to_another_member(groups: Node, client: ClientMaker) -> None:
    topic = unique("jobs")
    name = unique()
    away = client(5, name, to=groups, clean=False, props=KEPT)
    away.subscribe(f"$share/round_robin/{topic}", qos=1)
    away.disconnect()
    publisher = client(to=groups)
    publisher.publish(topic, b"1", qos=1)
    publisher.publish(topic, b"2", qos=2)
    here = client(to=groups)
    here.subscribe(f"$share/round_robin/{topic}", qos=2)
    client(5, name, to=groups, clean=True)  # ends the old session
    assert sorted(here.take_payloads(2)) == [b"1", b"2"]

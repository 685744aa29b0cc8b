"""The topic index against the rule itself (`mqtt.topics.matches`), while subscriptions come and go.

The memory of audiences is asked before and after every change, so that an answer that outlived its truth shows.
"""

from __future__ import annotations

from zlib import crc32

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from brookmq.base.counters import Counters
from brookmq.broker import topics
from brookmq.broker.session import Session
from brookmq.broker.settings import SessionLimits
from brookmq.broker.shared import SharedGroup
from brookmq.broker.subscription import Subscription
from brookmq.broker.topics import Audience, TopicIndex
from brookmq.mqtt.topics import matches

NAMES = st.lists(st.sampled_from(["a", "b", "c", "", "$x"]), min_size=1, max_size=4).map("/".join).filter(bool)
FILTER_LEVELS = st.lists(st.sampled_from(["a", "b", "", "$x", "+", "+"]), min_size=1, max_size=4)
FILTERS = st.tuples(FILTER_LEVELS, st.sampled_from(["", "", "/#", "#"])).map(
    lambda parts: "#" if parts[1] == "#" else "/".join(parts[0]) + parts[1]
)
FILTER_BYTES = FILTERS.filter(bool).map(str.encode)
TOPIC_BYTES = NAMES.map(str.encode)
SESSIONS = st.integers(0, 3)


class IndexMachine(RuleBasedStateMachine):
    """``subscriptions`` by session and filter and ``groups`` by name and filter are the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.index = TopicIndex(Counters())
        self.sessions = [Session(f"c{number}", SessionLimits(), Counters()) for number in range(4)]
        self.subscriptions: dict[tuple[int, bytes], Subscription] = {}
        self.groups: dict[tuple[str, bytes], SharedGroup] = {}
        self.remembered: list[Audience] = []  # as connections remember the last one they used

    @initialize(filters=st.lists(FILTER_BYTES, max_size=5))
    def begin(self, filters: list[bytes]) -> None:
        for number, filter_ in enumerate(filters):
            self.subscribe(number % 4, filter_, 1)

    @rule(who=SESSIONS, filter_=FILTER_BYTES, qos=st.integers(0, 2))
    def subscribe(self, who: int, filter_: bytes, qos: int) -> None:
        subscription = Subscription(self.sessions[who], filter_, qos, identifiers=(who + 1,))
        self.subscriptions[who, filter_] = subscription
        self.index.add(subscription)

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.subscriptions:
            key = data.draw(st.sampled_from(sorted(self.subscriptions)))
            self.index.remove(self.subscriptions.pop(key))

    @rule(who=SESSIONS, filter_=FILTER_BYTES)
    def unsubscribe_what_is_not_there(self, who: int, filter_: bytes) -> None:
        """Another object for the same filter: it was replaced meanwhile, so nothing happens."""
        self.index.remove(Subscription(self.sessions[who], filter_, 0))

    @rule(name=st.sampled_from(["g", "h"]), filter_=FILTER_BYTES)
    def share(self, name: str, filter_: bytes) -> None:
        known = self.index.group(name, filter_)
        assert known is self.groups.get((name, filter_))
        group = known or SharedGroup(name, filter_.decode(), "round_robin", None)  # type: ignore[arg-type]
        self.groups[name, filter_] = group
        self.index.add_group(group)

    @rule(data=st.data())
    def end_share(self, data: st.DataObject) -> None:
        if self.groups:
            key = data.draw(st.sampled_from(sorted(self.groups)))
            self.index.remove_group(self.groups.pop(key))

    @rule(names=st.lists(TOPIC_BYTES, min_size=1, max_size=6))
    def look_up(self, names: list[bytes]) -> None:
        for topic in names:
            found = sorted(entry.filter for entry in self.index.match(topic))
            filters = {filter_ for _, filter_ in self.subscriptions} | {filter_ for _, filter_ in self.groups}
            assert found == sorted(filter_ for filter_ in filters if matches(filter_, topic))
            audience = self.index.audience(topic)
            self.check_audience(audience, topic)
            self.remembered.append(audience)

    @rule(count=st.integers(1, 40))
    def change_elsewhere(self, count: int) -> None:
        """More changes than the index keeps: old audiences cannot be checked against them."""
        other = Subscription(self.sessions[0], b"elsewhere/+", 0)
        for _ in range(count):
            self.index.add(other)
            self.index.remove(other)

    def check_audience(self, audience: Audience, topic: bytes) -> None:
        expected: dict[int, list[Subscription]] = {}
        for (who, filter_), subscription in self.subscriptions.items():
            if matches(filter_, topic):
                expected.setdefault(who, []).append(subscription)
        got = {self.sessions.index(target.session): target for target in audience.targets}
        assert len(got) == len(audience.targets)  # one copy for each session [MQTT-3.3.4-2]
        assert got.keys() == expected.keys()
        for who, matching in expected.items():
            assert got[who].qos == max(subscription.qos for subscription in matching)
            assert got[who].identifiers == (who + 1,) * len(matching)  # [MQTT-3.3.4-4]
        groups = [group for (_, filter_), group in self.groups.items() if matches(filter_, topic)]
        assert {id(group) for group in audience.groups} == {id(group) for group in groups}
        assert len(audience.groups) == len(groups)

    @invariant()
    def current_audiences_are_right(self) -> None:
        """What a connection remembers may be used without a look-up while its epoch is the index's own."""
        self.remembered = self.remembered[-20:]
        for audience in (*self.index.audiences.values(), *self.remembered):
            if audience.epoch == self.index.epoch:
                self.check_audience(audience, audience.topic)

    @invariant()
    def nothing_is_left_behind(self) -> None:
        filters = {filter_ for _, filter_ in self.subscriptions} | {filter_ for _, filter_ in self.groups}
        assert self.index.entry_count == len(filters)
        if not filters:
            assert not self.index.exact
            assert self.index.root.unused()


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=80, stateful_step_count=40)


class SmallMemoryMachine(IndexMachine):
    """The same with room for three audiences: all are forgotten again and again."""

    count_max = topics.AUDIENCE_COUNT_MAX

    def __init__(self) -> None:
        super().__init__()
        topics.AUDIENCE_COUNT_MAX = 3

    def teardown(self) -> None:
        topics.AUDIENCE_COUNT_MAX = self.count_max


TestSmallMemory = SmallMemoryMachine.TestCase
TestSmallMemory.settings = settings(max_examples=40, stateful_step_count=30)


@pytest.mark.parametrize(
    ("filter_", "topic", "matched"),
    [
        (b"#", b"$x", False),  # [MQTT-4.7.2-1]
        (b"+/a", b"$x/a", False),
        (b"$x/#", b"$x", True),
        (b"$x/+", b"$x/a", True),
        (b"a/#", b"a", True),
        (b"+/+", b"/", True),
        (b"/+", b"/", True),
        (b"a/+/#", b"a/b", True),
    ],
)
def test_the_edges_of_matching(filter_: bytes, topic: bytes, matched: bool) -> None:
    index = TopicIndex(Counters())
    index.add(Subscription(Session("c", SessionLimits(), Counters()), filter_, 0))
    assert bool(index.match(topic)) is matched
    assert matches(filter_, topic) is matched


def test_what_is_captured_has_the_ids_of_its_capture_filters() -> None:
    index = TopicIndex(Counters())
    index.capture = [b"a/#", b"a/+", b"b"]
    captured = index.audience(b"a/1")
    ids = [captured.filters[at : at + 4] for at in range(0, len(captured.filters), 4)]
    assert ids == [crc32(filter).to_bytes(4, "big") for filter in (b"a/#", b"a/+")]
    assert (captured.captured, captured.durable, captured.awaited) == (True, True, False)
    index.keep(b"c")
    kept = index.audience(b"c")
    assert kept.filters == crc32(b"c").to_bytes(4, "big")
    assert (kept.captured, kept.durable, kept.awaited) == (False, True, True)
    assert not index.audience(b"d").durable

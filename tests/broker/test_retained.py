"""Retained messages: what is kept, what a filter finds, and scans that go on while the store changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.message import Message
from brookmq.broker import retained
from brookmq.broker.retained import RetainedStore
from brookmq.broker.sorted_keys import CHUNK_KEYS_MAX, SortedKeys

NAMES = [b"a", b"b", b"", b"a-", b"$x", b"\x01", b"a\x01", b"\xc3\xa9"]
topics = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join).filter(bool)
filters = st.builds(
    lambda levels, rest: b"/".join(levels + rest),
    st.lists(st.sampled_from([*NAMES, b"+", b"+"]), max_size=4),
    st.sampled_from([[], [b"#"]]),
).filter(bool)


def message(topic: bytes, payload: bytes = b"1", expires_at: float = 0.0) -> Message:
    return Message(topic, payload, 1, True, b"", expires_at)


def matches(topic_filter: bytes, topic: bytes) -> bool:
    """The rules of the specification, written as simply as they can be."""
    wanted, levels = topic_filter.split(b"/"), topic.split(b"/")
    if wanted[0] in (b"+", b"#") and topic.startswith(b"$"):
        return False
    if wanted[-1] == b"#":
        wanted = wanted[:-1]
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(a in (b"+", b) for a, b in zip(wanted, levels, strict=True))


def slices(store: RetainedStore, topic_filter: bytes, limit: int = 3, now: float = 0.0) -> Iterator[list[bytes]]:
    scan = store.scan(topic_filter)
    while not scan.done:
        found = [found.topic for found in scan.next(limit, now)]
        assert len(found) <= limit
        yield found


def found(store: RetainedStore, topic_filter: bytes, now: float = 0.0) -> list[bytes]:
    return [topic for part in slices(store, topic_filter, now=now) for topic in part]


@pytest.fixture
def store() -> Iterator[RetainedStore]:
    store = RetainedStore()
    yield store
    store.check_invariants()


def test_the_last_message_of_a_topic_is_kept(store: RetainedStore) -> None:
    store.set(message(b"a", b"old"), 0.0)
    newer = message(b"a", b"newer")
    assert store.set(newer, 0.0)
    assert store.get(b"a", 0.0) is newer
    assert (store.count, store.bytes) == (1, newer.size())


def test_an_empty_payload_deletes_and_is_not_stored(store: RetainedStore) -> None:
    """[MQTT-3.3.1-6], [MQTT-3.3.1-7]"""
    store.set(message(b"a"), 0.0)
    assert store.set(message(b"a", b""), 0.0)
    assert store.get(b"a", 0.0) is None
    assert (store.count, store.bytes) == (0, 0)
    assert not store.delete(b"a")


def test_a_slash_is_no_other_character(store: RetainedStore) -> None:
    """Topics that differ only in where their levels end are different topics."""
    for topic in (b"a/b", b"a", b"a/", b"/a", b"a//b", b"a/b/"):
        store.set(message(topic), 0.0)
    assert store.count == 6
    assert found(store, b"a/b") == [b"a/b"]
    assert sorted(found(store, b"a/+")) == [b"a/", b"a/b"]


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        ({"count_max": 2}, message(b"c")),
        ({"bytes_max": 5}, message(b"c")),
        ({"bytes_max": 5}, message(b"a", b"123")),
        ({"payload_max": 3}, message(b"a", b"1234")),
    ],
)
def test_a_limit_refuses_and_changes_nothing(limits: dict[str, int], refused: Message) -> None:
    store = RetainedStore(**limits)
    assert store.set(message(b"a"), 0.0)
    assert store.set(message(b"b"), 0.0)
    before = store.get(refused.topic, 0.0)
    assert not store.set(refused, 0.0)
    assert store.refused == 1
    assert store.get(refused.topic, 0.0) is before
    store.check_invariants()


def test_what_stands_at_a_limit_can_still_change() -> None:
    store = RetainedStore(count_max=2, bytes_max=6, payload_max=3)
    assert store.set(message(b"a", b"123"), 0.0)
    assert store.set(message(b"b"), 0.0)  # exactly at both limits
    assert store.set(message(b"a", b"321"), 0.0)
    store.delete(b"b")
    assert store.set(message(b"c"), 0.0)
    assert store.refused == 0


def test_expired_messages_are_never_handed_out(store: RetainedStore) -> None:
    """[MQTT-3.3.2-5]"""
    for topic in (b"x/1", b"x/2", b"x/3"):
        store.set(message(topic, expires_at=10.0), 0.0)
    store.set(message(b"x/4"), 0.0)
    assert store.get(b"x/1", 9.9) is not None
    assert store.get(b"x/1", 10.0) is None
    assert found(store, b"x/2", now=10.0) == []
    assert found(store, b"x/+", now=10.0) == [b"x/4"]
    assert (store.count, store.expired) == (1, 3)


def test_a_message_that_comes_expired_leaves_nothing(store: RetainedStore) -> None:
    store.set(message(b"a"), 0.0)
    assert store.set(message(b"a", expires_at=5.0), 6.0)
    assert store.count == 0


def test_sweeps_go_round_and_remove_all_that_is_expired(store: RetainedStore) -> None:
    for index in range(100):
        store.set(message(b"t/%d" % index, expires_at=10.0 if index % 2 else 0.0), 0.0)
    assert sum(store.sweep(5.0, 7) for _ in range(30)) == 0
    assert sum(store.sweep(20.0, 7) for _ in range(30)) == 50
    assert store.count == 50
    assert store.sweep(20.0, 7) == 0


def test_dollar_topics_are_hidden_from_leading_wildcards(store: RetainedStore) -> None:
    """[MQTT-4.7.2-1]"""
    for topic in (b"$SYS/uptime", b"$", b"#no"[1:], b"%after", b"a/$b"):
        store.set(message(topic), 0.0)
    assert sorted(found(store, b"#")) == [b"%after", b"a/$b", b"no"]
    assert found(store, b"+/uptime") == []
    assert found(store, b"$SYS/#") == [b"$SYS/uptime"]
    assert found(store, b"$SYS/+") == [b"$SYS/uptime"]
    assert found(store, b"a/+") == [b"a/$b"]


def test_hash_matches_the_parent_level(store: RetainedStore) -> None:
    """[MQTT-4.7.1-2]"""
    for topic in (b"sport", b"sport/tennis", b"sport/tennis/1", b"sports"):
        store.set(message(topic), 0.0)
    assert found(store, b"sport/#") == [b"sport", b"sport/tennis", b"sport/tennis/1"]


@given(st.sets(topics, max_size=40), filters, st.integers(1, 5))
def test_a_scan_finds_exactly_what_matches(names: set[bytes], topic_filter: bytes, limit: int) -> None:
    store = RetainedStore()
    for name in names:
        store.set(message(name), 0.0)
    got = [topic for part in slices(store, topic_filter, limit) for topic in part]
    assert sorted(got) == sorted(name for name in names if matches(topic_filter, name))


@given(st.sets(topics, max_size=30), st.lists(st.tuples(topics, st.booleans()), max_size=30), filters)
def test_a_scan_survives_changes(names: set[bytes], changes: list[tuple[bytes, bool]], topic_filter: bytes) -> None:
    """No topic twice, nothing that does not match, and everything that was there all the time."""
    store = RetainedStore()
    for name in names:
        store.set(message(name), 0.0)
    steady = {name for name in names if matches(topic_filter, name)} - {name for name, _ in changes}
    scan = store.scan(topic_filter)
    got: list[bytes] = []
    while not scan.done:
        got += [message.topic for message in scan.next(1, 0.0)]
        if changes:
            name, keep = changes.pop()
            store.set(message(name, b"2" if keep else b""), 0.0)
    assert len(got) == len(set(got))
    assert steady <= set(got)
    assert all(matches(topic_filter, name) for name in got)
    store.check_invariants()


def test_a_scan_over_many_topics_works_in_slices(store: RetainedStore) -> None:
    for index in range(5_000):
        store.set(message(b"site/%d/on" % index), 0.0)
    parts = list(slices(store, b"site/+/on", 500))
    assert [len(part) for part in parts if part] == [500] * 10


def test_a_scan_that_finds_nothing_gives_way(store: RetainedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many topics lie in between: a call looks at a bounded number of them."""
    monkeypatch.setattr(retained, "SCAN_STEPS_MAX", 100)
    for index in range(1_000):
        store.set(message(b"%04d/on" % index), 0.0)
    store.set(message(b"9999/off"), 0.0)
    parts = list(slices(store, b"+/off", 10))
    assert len(parts) >= 10
    assert [topic for part in parts for topic in part] == [b"9999/off"]


def test_scans_jump_over_what_cannot_match(store: RetainedStore) -> None:
    """Ten thousand topics under one name cost a scan for another level one look, not ten thousand."""
    for index in range(10_000):
        store.set(message(b"big/%d" % index), 0.0)
    store.set(message(b"big/status"), 0.0)
    store.set(message(b"small/status"), 0.0)
    scan = store.scan(b"+/status")
    assert [message.topic for message in scan.next(10, 0.0)] == [b"big/status", b"small/status"]
    assert scan.done


@given(st.sets(topics, max_size=20), st.integers(1, 4), st.none() | filters)
def test_pages_list_everything_once(names: set[bytes], limit: int, match: bytes | None) -> None:
    store = RetainedStore()
    for name in names:
        store.set(message(name), 0.0)
    after: bytes | None = b""
    got: list[bytes] = []
    while after is not None:
        messages, after = store.page(after, limit, match, 0.0)
        got += [message.topic for message in messages]
    assert sorted(got) == sorted(name for name in names if match is None or matches(match, name))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=400), st.integers(2, 8))
def test_sorted_keys_are_a_sorted_set(steps: list[tuple[bool, int]], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("brookmq.broker.sorted_keys.CHUNK_KEYS_MAX", chunk)
        keys, model = SortedKeys(), set[bytes]()
        for add, number in steps:
            key = b"%03d" % number
            if add and key not in model:
                keys.add(key)
                model.add(key)
            elif not add and key in model:
                keys.remove(key)
                model.remove(key)
        keys.check_invariants()
        assert list(keys) == sorted(model)
        for number in range(0, 301, 7):
            chunk_found, index = keys.run(b"%03d" % number)
            expected = min((key for key in model if key >= b"%03d" % number), default=None)
            assert (chunk_found[index] if chunk_found else None) == expected


def test_keys_in_order_fill_their_lists() -> None:
    keys = SortedKeys()
    for number in range(10 * CHUNK_KEYS_MAX):
        keys.add(b"%08d" % number)
    assert len(keys._chunks) <= 11

"""Topics stay where they are, and events are together."""

from __future__ import annotations

from brookmq.base.events import EVENTS, topic_of
from brookmq.store.journal.sharding import shard_hash


def test_a_topic_has_the_shard_that_it_always_had() -> None:
    """Numbers that were written down: another one would take a topic's order apart."""
    assert [shard_hash(topic) % 12 for topic in (b"a", b"sensors/1/data", b"$SYS/x", "é/ü".encode())] == [3, 10, 6, 2]


def test_events_are_in_one_shard() -> None:
    assert {shard_hash(topic_of(name)) for name in EVENTS} == {0}

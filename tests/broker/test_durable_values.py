"""Retained and delayed messages in the store: what was stored is there after any crash, and loading disturbs nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from brookmq.base.message import Message
from brookmq.broker.durable_values import NUMBERS_RESERVED
from brookmq.broker.retained import part_of_topic
from brookmq.store.errors import BadRecord
from brookmq.store.table.interface import PARTS, part_of
from brookmq.store.value_record import (
    DELETED,
    SET,
    decode_delayed,
    decode_numbers,
    delayed_key,
    delayed_number,
    encode_delayed,
    encode_numbers,
    retained_key,
    state_after,
)
from tests.broker.durable_world import World
from tests.broker.memory import MemoryNode
from tests.store.test_message_record import fields


def test_a_message_is_back_whole_after_a_crash() -> None:
    world = World().begin().settle()
    message = world.set(b"a/b", b"value", expires_at=2e9)
    world = world.settle().crashed().begin().settle()
    restored = world.retained.peek(b"a/b")
    assert restored is not None
    assert fields(restored) == fields(message)
    world.check()


def test_what_was_deleted_or_replaced_stays_so() -> None:
    world = World().begin()
    world.set(b"gone")
    world.set(b"newer", b"old")
    world.retained.set(Message(b"gone", b"", 0, True), 0.0)
    world.set(b"newer", b"new")
    assert world.settle().crashed().begin().settle().kept() == {b"newer": b"new"}


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_happens_before_a_part_is_loaded_counts(snapshot: bool) -> None:
    world = World().begin()
    for topic in (b"replaced", b"deleted", b"left"):
        world.set(topic, b"old")
    world.settle()
    if snapshot:
        world.table.snapshot_all()
    world = world.crashed()
    world.set(b"replaced", b"new")
    assert not world.retained.delete(b"deleted")  # it can't know
    world.begin().settle()
    assert world.kept() == {b"replaced": b"new", b"left": b"old"}
    assert world.crashed().begin().settle().kept() == {b"replaced": b"new", b"left": b"old"}


def test_what_the_node_says_of_itself_is_not_kept() -> None:
    world = World().begin()
    world.set(b"$SYS/broker/uptime", client_id="")
    world.set(b"$other", client_id="")
    world.settle().table.snapshot_all()
    assert world.crashed().begin().settle().kept() == {b"$other": b"1"}


def test_a_delete_of_nothing_writes_nothing() -> None:
    world = World().begin().settle()
    before = world.values.taken
    world.retained.delete(b"a")
    assert world.values.taken == before


def test_what_has_expired_leaves_the_store_too() -> None:
    world = World().begin()
    world.set(b"a", expires_at=100.0)
    world.settle()
    assert world.retained.sweep(101.0, 10) == 1
    assert world.settle().crashed().begin().settle().kept() == {}


def test_an_acknowledgement_waits_for_what_was_taken_before_it() -> None:
    world = World().begin().settle()
    told: list[str] = []
    world.values.after(lambda: told.append("nothing to wait for"))
    world.table.hold()
    world.set(b"a")
    world.values.after(lambda: told.append("a"))
    world.set(b"b")
    world.values.after(lambda: told.append("b"))
    world.settle()
    assert told == ["nothing to wait for"]
    world.table.release(1)
    assert told == ["nothing to wait for", "a"]
    world.table.release()
    assert told == ["nothing to wait for", "a", "b"]


# -- delayed messages


def test_a_delayed_message_is_due_once_and_after_a_crash_again_until_it_was_published() -> None:
    world = World().begin()
    message = Message(b"t", b"later", 1, False, b"", 0.0, 50.0, "c", None)
    assert world.delayed.add(message, 50.0)
    world = world.settle().crashed().begin().settle()
    assert world.delayed.take_due(49.0, 10) == []
    (entry,) = world.delayed.take_due(50.0, 10)
    assert fields(entry.message) == fields(message)
    assert world.delayed.take_due(50.0, 10) == []
    world.table.snapshot_all()  # a snapshot in between must have it
    world = world.crashed().begin().settle()
    (entry,) = world.delayed.take_due(50.0, 10)
    world.delayed.finish(entry.id)
    world.check()
    world = world.settle().crashed().begin().settle()
    assert world.delayed.take_due(50.0, 10) == []
    world.check()


def test_numbers_are_never_given_twice() -> None:
    world, seen = World().begin(), set[int]()
    for _ in range(3):
        for _ in range(3):
            assert world.delayed.add(Message(b"t", b"x", 0), 9.0)
        seen.add(world.delayed.last_id)
        world = world.settle().crashed()
        world.values.begin()  # and nothing is loaded yet
        assert world.delayed.last_id >= max(seen)
    assert world.settle().delayed.count == 9
    assert [entry.id for entry in world.delayed.page(0, 100)] == sorted(e.id for e in world.delayed.page(0, 100))


def test_a_block_of_numbers_that_is_used_up_is_followed_by_another() -> None:
    world = World().begin()
    world.delayed.last_id = NUMBERS_RESERVED - 2
    for _ in range(3):
        world.delayed.add(Message(b"t", b"x", 0), 9.0)
    world = world.settle().crashed().begin()
    assert world.delayed.last_id == 2 * NUMBERS_RESERVED


def test_one_that_is_removed_is_gone() -> None:
    world = World().begin()
    world.delayed.add(Message(b"t", b"x", 0), 9.0)
    assert world.delayed.remove(world.delayed.last_id) is not None
    world.check()
    assert world.settle().crashed().begin().settle().delayed.count == 0


# -- any history

TOPICS = [b"a", b"a/b", b"b", b"\xc3\xa4/" + b"x" * 70_000, b"$x"]


class AnyHistory(RuleBasedStateMachine):
    """What is stored at a crash, and nothing else, is there afterwards; what is asked meanwhile is never older."""

    @initialize()
    def start(self) -> None:
        self.world = World().begin()
        self.now = 1.0
        self.model: dict[bytes, tuple[bytes, float] | None] = {}  # by key: payload, expiry or due; None = gone
        self.log: list[tuple[int, bytes, tuple[bytes, float] | None]] = []  # after how many changes a key was what
        self.taken: set[int] = set()  # numbers of delayed messages between their time and their publishing

    def note(self, key: bytes, value: tuple[bytes, float] | None) -> None:
        self.model[key] = value
        self.log.append((self.world.values.taken, key, value))

    @rule(topic=st.sampled_from(TOPICS), payload=st.binary(min_size=1, max_size=3), lives=st.sampled_from([0, 0, 3]))
    def set(self, topic: bytes, payload: bytes, lives: int) -> None:
        expires_at = self.now + lives if lives else 0.0
        self.world.set(topic, payload, expires_at)
        self.note(retained_key(topic), (payload, expires_at))

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: bytes) -> None:
        self.world.retained.delete(topic)
        self.note(retained_key(topic), None)

    @rule(payload=st.binary(max_size=3), delay=st.integers(0, 3))
    def delay(self, payload: bytes, delay: int) -> None:
        assert self.world.delayed.add(Message(b"t", payload, 1), self.now + delay)
        key = delayed_key(self.world.delayed.last_id)
        assert key not in self.model
        self.note(key, (payload, self.now + delay))

    @rule()
    def take_due(self) -> None:
        for entry in self.world.delayed.take_due(self.now, 2):
            assert self.model[delayed_key(entry.id)] == (entry.message.payload, entry.due)
            self.taken.add(entry.id)

    @precondition(lambda self: self.taken)
    @rule()
    def finish(self) -> None:
        number = self.taken.pop()
        self.world.delayed.finish(number)
        self.note(delayed_key(number), None)

    @rule(seconds=st.integers(1, 3))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds
        self.world.retained.sweep(self.now, 3)

    @rule()
    def turn(self) -> None:
        if self.world.soon:
            self.world.soon.popleft()()

    @rule()
    def settle(self) -> None:
        self.world.settle()

    @rule()
    def hold(self) -> None:
        self.world.table.hold()

    @rule(count=st.none() | st.integers(0, 3))
    def release(self, count: int | None) -> None:
        self.world.table.release(count)

    @rule(topic=st.sampled_from(TOPICS))
    def subscribe(self, topic: bytes) -> None:
        self.world.values.loaded(topic)

    @precondition(lambda self: self.world.table.all_loaded and not self.world.table.waiting_bytes)
    @rule()
    def snapshot(self) -> None:
        self.world.table.snapshot_all()

    @rule(unanswered=st.integers(0, 3))
    def crash(self, unanswered: int) -> None:
        values = self.world.values
        stored = min(values.stored + unanswered, values.taken)
        self.model = {}
        for after, key, value in self.log:
            if after <= stored:
                self.model[key] = value
        self.world = self.world.crashed(unanswered)
        self.log = [(0, key, value) for key, value in self.model.items()]
        self.taken.clear()
        self.world.begin()

    @invariant()
    def what_is_asked_is_right(self) -> None:
        world = self.world
        world.check()
        for topic in TOPICS:
            if world.table.loaded(part_of_topic(topic)):
                found = world.retained.get(topic, self.now)
                kept = self.model.get(retained_key(topic))
                alive = kept is not None and (kept[1] == 0.0 or kept[1] > self.now)
                assert (found and found.payload) == (kept[0] if kept and alive else None)
        if world.table.all_loaded:
            delayed = {key for key, value in self.model.items() if key[:1] == b"d" and value is not None}
            assert all(world.delayed.peek(delayed_number(key)) for key in delayed)
            assert world.delayed.count == len(delayed) - len(self.taken)


AnyHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestAnyHistory = AnyHistory.TestCase


# -- subscribers

MANY = 3_000


@pytest.fixture
def node() -> Iterator[MemoryNode]:
    node = MemoryNode()
    yield node
    node.close()


def restarted(node: MemoryNode, count: int) -> World:
    """A broker over the values of a run that has ended: of its topics nothing is loaded yet."""
    before = World(soon=node.soon).begin()
    for number in range(count):
        before.set(b"room/%d" % number)
    return before.settle().crashed(broker=node.broker)


def test_a_wildcard_waits_until_all_parts_are_loaded(node: MemoryNode) -> None:
    world = restarted(node, MANY)
    reader = node.client()
    reader.subscribe("room/#")
    reader.expect_nothing()
    node.pass_time(1.0)
    reader.expect_nothing()
    world.begin().settle()
    assert len({reader.take().topic for _ in range(MANY)}) == MANY
    reader.expect_nothing()


def test_the_name_of_a_topic_needs_its_own_part_only(node: MemoryNode) -> None:
    world = restarted(node, MANY)
    reader = node.client()
    reader.subscribe("room/7")
    assert reader.take().topic == b"room/7"
    assert sum(world.table.loaded(part) for part in range(PARTS)) < PARTS / 2
    reader.expect_nothing()


def test_a_subscription_that_has_got_all_is_told(node: MemoryNode) -> None:
    world = restarted(node, 10)
    over: list[bytes] = []
    world.replays.on_over = lambda subscription: over.append(subscription.filter)
    reader = node.client()
    reader.subscribe("room/+")
    reader.subscribe("nothing")
    assert over == [b"nothing"]
    world.begin().settle()
    assert [reader.take().topic for _ in range(10)]
    node.pass_time(1.0)
    assert over == [b"nothing", b"room/+"]


def test_what_is_published_while_loading_is_not_followed_by_an_older_value(node: MemoryNode) -> None:
    world = restarted(node, 10)
    reader = node.client()
    reader.subscribe("room/#")
    node.client().publish("room/3", b"new", qos=1, retain=True)
    assert reader.take().payload == b"new"
    world.begin().settle()
    got = {message.topic: message.payload for message in (reader.take() for _ in range(10))}
    assert got[b"room/3"] == b"new"
    assert len(got) == 10


# -- format


def test_parts_are_those_of_the_table() -> None:
    for topic in (b"a", b"a/b", b"", b"\xc3\xa4" * 40_000):
        assert part_of_topic(topic) == part_of(retained_key(topic))


def test_values_are_read_as_they_were_written() -> None:
    message = Message(b"a", b"b", 2, True, b"\x01\x01", 1.5, 2.5, "c", "u")
    due, read = decode_delayed(encode_delayed(7.25, message))
    assert (due, fields(read)) == (7.25, fields(message))
    assert decode_numbers(encode_numbers(12)) == 12
    assert decode_numbers(b"") == 0
    assert delayed_number(delayed_key(2**64 - 1)) == 2**64 - 1
    assert state_after(SET + b"state") == b"state"
    assert state_after(DELETED) is None
    assert encode_delayed(7.25, message).hex() == (
        "01" "401d000000000000" "01" "0e" "3ff8000000000000" "4004000000000000"
        "00000001" "00000002" "00000001" "00000001" "61" "0101" "63" "75" "62"
    )  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"\x02\x01", b"\x01", b"\x01\x03rest"])
def test_a_newer_format_is_refused(body: bytes) -> None:
    for read in (decode_delayed, state_after):
        with pytest.raises(BadRecord, match="not known here"):
            read(body)
    if body:
        with pytest.raises(BadRecord, match="not known here"):
            decode_numbers(body)

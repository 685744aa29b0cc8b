"""Rows of queries, each published once: over repeats, crashes at every moment, stores that answer when they like."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.sinks import FORGET_S, Sinks
from brookmq.store.memory_table import MemoryTable
from brookmq.store.pipeline_record import NOTHING, Row, SinkPosition, decode_sink, encode_sink, sink_key
from brookmq.store.table.states import KeyedStates
from tests.broker.memory import MemoryNode
from tests.broker.memory_journal import MemoryJournal
from tests.harness.raw import Client
from tests.harness.wire import Property

KEY = sink_key("query", 3)
TOPICS = 7  # in several shards
KEPT = [(Property.SESSION_EXPIRY, 100_000), (Property.RECEIVE_MAXIMUM, 500)]


class PipelineNode(MemoryNode):
    """A node in memory with the table of the pipeline."""

    def __init__(
        self,
        *,
        after: PipelineNode | None = None,
        unanswered: int | Callable[[int], int] = 0,
        held: bool = False,  # whether the table of the pipeline keeps its answers back
    ) -> None:
        self._held = held
        stored = unanswered if callable(unanswered) else lambda _: unanswered
        self._left = None if after is None else after.pipeline.reopened(stored(after.pipeline.unanswered))
        super().__init__(after=after, unanswered=unanswered)

    def open_store(self, journal: MemoryJournal, sessions: MemoryTable, values: MemoryTable) -> None:
        self.journal, self.sessions_table, self.values_table = journal, sessions, values
        self.pipeline = self._left or MemoryTable(self.soon.append, self.clock)
        if self._held:
            self.pipeline.hold()
        self.sinks = Sinks(self.broker.keeper, self.broker.publish_patiently)
        restoring = self.broker.restoring
        for shard, watermark in enumerate(restoring.watermark(sessions.meta_state())):
            for batch in journal.batches[shard]:
                if batch.end > watermark:
                    restoring.look_through(shard, batch.groups)
                    self.sinks.look_through(batch.groups)
        journal.on_stored = self.broker.journaling.stored
        self.broker.attach(journal, sessions, values, self.now)
        self.states = KeyedStates(self.pipeline, self.soon.append)
        self.states.begin()
        self.sinks.begin(self.states, restoring, self.now)
        self.settle()
        self.broker.tick(self.now, self.monotonic)

    def rows(self, batch: int, first: int, last: int, *, retain: bool = False) -> list[bool]:
        """Sends rows, both ends included; the answer is true once they are stored."""
        answer = [False]

        def done() -> None:
            answer[0] = True

        messages = [message(batch, row, retain=retain, now=self.now) for row in range(first, last + 1)]
        self.sinks.take(KEY, Row(batch, first), messages, self.now, done)
        return answer

    def hold(self, chance: random.Random) -> None:
        """Some of what keeps things keeps its answers back."""
        for log in self.journal.logs:
            if chance.random() < 0.5:
                log.hold()
        for table in (self.pipeline, self.sessions_table, self.values_table):
            if chance.random() < 0.3:
                table.hold()

    def release(self) -> None:
        for log in self.journal.logs:
            log.release()
        for table in (self.pipeline, self.sessions_table, self.values_table):
            table.release()
        self.settle()


def message(batch: int, row: int, *, retain: bool = False, now: float = 0.0) -> Message:
    topic = b"out/%d" % (row % TOPICS)
    return Message(topic, b"%d:%d" % (batch, row), 2, retain, b"", 0.0, now)


def subscriber(node: MemoryNode, *, clean: bool = False) -> Client:
    return node.client(client_id="reader", clean=clean, props=KEPT)


def received(node: MemoryNode) -> list[bytes]:
    """All that waits for the subscriber, acknowledged to the end."""
    client = subscriber(node)
    found: list[bytes] = []
    while True:
        try:
            found.append(client.take().payload)
        except (AssertionError, TimeoutError):
            break
    client.close()
    return found


@pytest.fixture
def node() -> Iterator[PipelineNode]:
    """With a kept subscriber, who is away; its loop is that of all nodes after it."""
    made = PipelineNode()
    with subscriber(made) as client:
        client.subscribe("out/#", qos=2)
    yield made
    made.close()


def payloads(batch: int, first: int, last: int) -> list[bytes]:
    return [b"%d:%d" % (batch, row) for row in range(first, last + 1)]


def test_rows_are_published_and_repeats_are_not(node: PipelineNode) -> None:
    assert node.sinks.position(KEY) == NOTHING
    answer = node.rows(0, 0, 9)
    assert answer == [False]
    node.settle()
    assert answer == [True]
    assert node.sinks.position(KEY) == Row(0, 9)
    assert node.rows(0, 0, 9) == [True], "known: at once"
    again = node.rows(0, 5, 14)
    node.settle()
    assert again == [True]
    node.rows(1, 0, 4)
    node.settle()
    assert node.rows(0, 0, 14) == [True], "a batch before the kept one"
    assert sorted(received(node)) == sorted([*payloads(0, 0, 14), *payloads(1, 0, 4)])


def test_the_answer_waits_for_all_that_was_taken(node: PipelineNode) -> None:
    for log in node.journal.logs:
        log.hold()
    first = node.rows(0, 0, 9)
    repeat = node.rows(0, 0, 9)  # its sender lost the connection
    node.settle()
    assert (first, repeat) == ([False], [False])
    node.release()
    assert (first, repeat) == ([True], [True])
    assert len(received(node)) == 10
    assert not [floor for floor in node.broker.keeper.floors if floor.startswith(b"sinks")]


def test_a_position_has_nothing_missing_below_it(node: PipelineNode) -> None:
    slow = node.journal.logs[node.broker.index.audience(b"out/0").shard % len(node.journal.logs)]
    slow.hold()
    waiting = node.rows(0, 0, 6)
    later = [number for number in range(7, 14) if slow is not node.journal.logs[
        node.broker.index.audience(b"out/%d" % (number % TOPICS)).shard % len(node.journal.logs)]]  # fmt: skip
    quick = node.rows(0, later[0], later[0])
    node.settle()
    assert (waiting, quick) == ([False], [False])
    assert node.sinks.position(KEY) == NOTHING
    slow.release()
    node.settle()
    assert (waiting, quick) == ([True], [True])


@pytest.mark.parametrize("stored", [0, 100])
def test_after_a_crash_what_the_journal_has_is_not_published_again(node: PipelineNode, stored: int) -> None:
    node.pipeline.hold()  # all rows are stored, the position is not
    answer = node.rows(0, 0, 9)
    node.settle()
    assert answer == [False]
    after = PipelineNode(after=node, unanswered=stored)
    assert after.sinks.position(KEY) == (Row(0, 9) if stored else NOTHING)
    after = PipelineNode(after=after)  # and once more: what was found was written down
    again = after.rows(0, 0, 12)
    after.settle()
    assert again == [True]
    assert sorted(received(after)) == sorted(payloads(0, 0, 12))
    kept = decode_sink(after.states.get(KEY) or b"")
    assert (kept.row, kept.beyond) == (Row(0, 12), frozenset())


def test_a_start_looks_far_enough_back(node: PipelineNode) -> None:
    """Watermarks move on while the position of rows that are stored is not, in two lives of the node."""
    node.pipeline.hold()
    node.rows(0, 0, 9)
    move_watermark(node)
    after = PipelineNode(after=node, held=True)
    move_watermark(after)
    after = PipelineNode(after=after)
    move_watermark(after)
    again = after.rows(0, 0, 9)
    after.settle()
    assert again == [True]
    assert sorted(received(after)) == sorted(payloads(0, 0, 9))


def move_watermark(node: PipelineNode) -> None:
    """What others publish makes the journal longer, and time passes."""
    with node.client() as client:
        client.subscribe("elsewhere/#")
        for number in range(2 * TOPICS):
            client.publish(f"elsewhere/{number}", qos=1)
    for _ in range(20):
        node.pass_time(10.0)


def test_retained_rows_are_there_after_a_crash(node: PipelineNode) -> None:
    node.values_table.hold()
    answer = node.rows(0, 0, 0, retain=True)
    node.settle()
    assert answer == [False], "it waits for its topic's value"
    after = PipelineNode(after=node)
    kept = after.broker.retained.get(b"out/0", after.now)
    assert kept is not None
    assert kept.payload == b"0:0"
    again = after.rows(0, 0, 0, retain=True)
    after.settle()
    assert again == [True]
    assert received(after) == [b"0:0"]


def test_a_row_that_cannot_be_published_ends_what_came_with_it(node: PipelineNode) -> None:
    told: list[int] = []
    rows = [message(0, 0), Message(b"a/#", b"", 1, False, b"", 0.0, 0.0), message(0, 2)]
    with pytest.raises(PeerError):
        node.sinks.take(KEY, Row(0, 0), rows, node.now, lambda: told.append(1))
    node.settle()
    assert told == []
    assert node.sinks.position(KEY) == Row(0, 0)
    node.rows(0, 0, 3)
    node.settle()
    assert sorted(received(node)) == sorted(payloads(0, 0, 3))


def test_a_query_that_is_done_can_be_forgotten(node: PipelineNode) -> None:
    node.rows(1, 0, 3)
    others = [sink_key(name, 3) for name in ("query2", "quer", "query\u00ff", "other")]
    for key in others:
        node.sinks.take(key, Row(0, 0), [message(0, 0)], node.now, lambda: None)
    node.settle()
    assert node.sinks.position(KEY) == Row(1, 3)
    node.pipeline.hold()
    node.sinks.take(sink_key("query", 4), Row(9, 0), [message(9, 0)], node.now, lambda: None)
    node.sinks.forget("query")
    node.pipeline.release()
    node.settle()
    assert node.sinks.position(KEY) == NOTHING
    assert node.sinks.position(sink_key("query", 4)) == Row(9, 0), "it was on its way"
    assert [node.sinks.position(key) for key in others] == [Row(0, 0)] * 4
    node.rows(1, 0, 3)
    node.settle()
    assert sorted(received(node)).count(b"1:0") == 2


def test_queries_that_are_long_gone_are_forgotten(node: PipelineNode) -> None:
    node.rows(0, 0, 1)
    other = sink_key("other", 0)
    node.states.put(other, encode_sink(SinkPosition(Row(5, 5), node.now - FORGET_S - 1)))
    node.settle()
    after = PipelineNode(after=node)
    assert after.sinks.position(other) == NOTHING
    assert after.sinks.position(KEY) == Row(0, 1)


@pytest.mark.parametrize("seed", range(40))
def test_each_row_once_whatever_dies(node: PipelineNode, seed: int) -> None:
    """A driver that sends batches and repeats what was not answered, a node that dies, a store that takes its time."""
    chance = random.Random(seed)
    sizes = [chance.randrange(1, 40) for _ in range(6)]
    got: list[bytes] = []
    batch = row = 0
    steps = 0
    while batch < len(sizes):
        steps += 1
        assert steps < 1000
        if chance.random() < 0.5:
            node.hold(chance)
        last = min(row + chance.randrange(1, 20), sizes[batch] - 1)
        answer = node.rows(batch, row, last)
        for _ in range(chance.randrange(0, 30)):
            if node.soon:
                node.soon.popleft()()
        happens = chance.random()
        if happens < 0.4:
            node = PipelineNode(after=node, unanswered=lambda count: chance.randrange(0, count + 1))
            row = 0  # the batch is computed anew
            continue
        if happens < 0.5:
            node.pass_time(chance.choice([1.0, 15.0]))  # watermarks, and what the journal gives up
        node.release()
        node.pass_time(0.1)
        if not answer[0]:
            row = 0
            continue
        if happens > 0.9:
            got += received(node)
        row = last + 1
        if row >= sizes[batch]:
            batch, row = batch + 1, 0
    node.release()
    got += received(node)
    wanted = [payload for number, size in enumerate(sizes) for payload in payloads(number, 0, size - 1)]
    assert sorted(got) == sorted(wanted)
    for topic in range(TOPICS):
        numbers = [tuple(map(int, payload.split(b":"))) for payload in got]
        of_topic = [number for number in numbers if number[1] % TOPICS == topic]
        assert of_topic == sorted(of_topic), "in their order"

"""The offsets of a stream: they never go back, limits are exact, and a node is not asked all the time."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from brookmq.spark import stream_reader
from brookmq.spark.node_client import JournalFacts, NodeClient, Plan, Run, Shard, StoreAccess
from brookmq.spark.options import source_options
from brookmq.spark.planning import ROWS_WORTH_A_PART, JournalPartition
from brookmq.spark.positions import to_checkpoint
from brookmq.spark.stream_reader import POLL_IDLE_S, POLL_S, StreamReader

ALL = ReadAllAvailable()


class MemoryNode:
    """What the reader asks, and a clock of its own."""

    def __init__(self) -> None:
        self.journal_id = "id"
        self.firsts = [0, 0]
        self.ends = [10, 20]
        self.now = 1000.0
        self.asked = 0
        self.accesses = 0
        self.expires_at = 1e12
        self.lost: dict[int, int] = {}
        self.empty: tuple[int, ...] = ()  # shards for which the index has nothing
        self.told_lost: set[tuple[int, int]] = set()
        self.reported: list[tuple[str, dict[int, int]]] = []

    def journal(self, *, credential: bool = False) -> JournalFacts:
        self.asked += 1
        self.accesses += credential
        store = StoreAccess(("nats://127.0.0.1:1",), "u", f"p{self.accesses}", self.expires_at)
        shards = (
            Shard(number, f"JOURNAL_{number}", first, end)
            for number, (first, end) in enumerate(zip(self.firsts, self.ends, strict=True))
        )
        return JournalFacts(self.journal_id, "n@h", tuple(shards), store if credential else None)

    def plan(self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: object = None) -> Plan:
        runs = {shard: [] if shard in self.empty else [Run(1, 9, start, end)] for shard, (start, end) in ranges.items()}
        return Plan(runs, self.lost)

    def at_time(self, moment: float) -> dict[int, int]:
        return {0: int(moment), 1: int(moment) + 1}

    def put_reader(self, name: str, position: Mapping[int, int], filters: Sequence[str]) -> int:
        self.reported.append((name, dict(position)))
        return len(self.told_lost)

    def lose(self, name: str, ranges: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        if not self.reported:
            raise LookupError(name)
        self.told_lost |= {(shard, one) for shard, found in ranges.items() for each in found for one in range(*each)}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> MemoryNode:
    made = MemoryNode()
    for name in ("journal", "plan", "at_time", "put_reader", "lose"):
        monkeypatch.setattr(NodeClient, name, getattr(made, name))
    monkeypatch.setattr(stream_reader.time, "monotonic", lambda: made.now)
    return made


def reader(**options: str) -> StreamReader:
    return StreamReader(source_options(options), ("topic", "offset"))


def at(*offsets: int, journal: str = "id") -> dict[str, Any]:
    return to_checkpoint(journal, dict(enumerate(offsets)))


@pytest.mark.parametrize(
    ("position", "start"),
    [("", (10, 20)), ("latest", (10, 20)), ("earliest", (3, 4)), ("5", (5, 6)), ('{"1": 7}', (3, 7))],
)
def test_where_a_stream_begins(node: MemoryNode, position: str, start: tuple[int, int]) -> None:
    node.firsts = [3, 4]
    assert reader(startingPosition=position).initialOffset() == at(*start)


def test_a_partition_that_does_not_exist(node: MemoryNode) -> None:
    with pytest.raises(ValueError, match=r"^brookmq: the option startingPosition names partition 9; .* 0 to 1$"):
        reader(startingPosition='{"9": 7}').initialOffset()


def test_everything_or_exactly_so_many_rows(node: MemoryNode) -> None:
    stream = reader()
    assert stream.getDefaultReadLimit() == ALL
    assert stream.latestOffset(at(0, 0), ALL) == at(10, 20)
    assert reader(maxRowsPerBatch="6").getDefaultReadLimit() == ReadMaxRows(6)
    position, rows = at(0, 0), []
    while (following := stream.latestOffset(position, ReadMaxRows(7))) != position:
        rows.append(sum(following["offsets"].values()) - sum(position["offsets"].values()))
        position = following
    assert rows == [7, 7, 7, 7, 2]
    assert position == at(10, 20)


def test_offsets_never_go_back(node: MemoryNode) -> None:
    stream = reader()
    node.ends = [5, 20]
    assert stream.latestOffset(at(10, 15), ALL) == at(10, 20)


def test_available_now_ends_where_it_began(node: MemoryNode) -> None:
    stream = reader()
    stream.prepareForTriggerAvailableNow()
    node.ends = [100, 200]
    node.now += 60
    assert stream.latestOffset(at(0, 0), ALL) == at(10, 20)
    assert stream.latestOffset(at(10, 20), ReadMaxRows(5)) == at(10, 20)


def test_an_idle_stream_asks_a_few_times_a_second(node: MemoryNode) -> None:
    stream = reader()
    for _ in range(6000):  # a minute of Spark's polling
        node.now += 0.01
        stream.latestOffset(at(10, 20), ALL)
        stream.reportLatestOffset()
    assert node.asked <= 10 / POLL_S + 50 / POLL_IDLE_S + 2
    node.ends = [11, 20]
    node.now += POLL_IDLE_S
    assert stream.latestOffset(at(10, 20), ALL) == at(11, 20)


def test_another_journal_is_noticed(node: MemoryNode) -> None:
    stream = reader()
    with pytest.raises(ValueError, match="the checkpoint is of the journal 'old'"):
        stream.latestOffset(at(0, 0, journal="old"), ALL)
    stream.latestOffset(at(0, 0), ALL)
    node.journal_id = "new"
    node.now += 1
    with pytest.raises(ValueError, match="the node has 'new'"):
        stream.latestOffset(at(0, 0), ALL)


def test_tasks_have_a_credential_that_lasts(node: MemoryNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.spark.node_client.time.time", lambda: 50_000.0)
    node.expires_at = 53_600.0
    stream = reader()
    for _ in range(3):
        tasks = stream.partitions(at(0, 0), at(10, 0))
        assert all(isinstance(task, JournalPartition) for task in tasks)
        assert [(task.task.shard, task.task.store.password) for task in tasks] == [(0, "p1")]
    node.expires_at = 57_200.0
    monkeypatch.setattr("brookmq.spark.node_client.time.time", lambda: 53_000.0)
    assert stream.partitions(at(0, 0), at(1, 1))[0].task.store.password == "p2"
    assert stream.partitions(at(5, 5), at(5, 5)) == []


def partition_ranges(stream: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, ...] | None]:
    found = []
    for partition in stream.partitions(start, end):
        assert isinstance(partition, JournalPartition)
        runs = partition.task.runs
        found.append((partition.task.shard, runs[0].start, runs[0].end) if runs else None)
    return found


def test_a_batch_is_divided_in_the_same_way_on_any_machine(node: MemoryNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brookmq.spark.planning.os.cpu_count", lambda: 4)
    node.ends = [3 * ROWS_WORTH_A_PART, ROWS_WORTH_A_PART]
    start = at(0, 0)
    end = reader().latestOffset(start, ALL)
    assert end == {**at(*node.ends), "parts": 4}
    first = partition_ranges(reader(), start, end)
    assert len(first) == 4
    monkeypatch.setattr("brookmq.spark.planning.os.cpu_count", lambda: 64)
    assert partition_ranges(reader(minPartitions="9"), start, end) == first
    assert reader().latestOffset(end, ALL) == end  # nothing new is nothing new for Spark
    assert reader(minPartitions="9").latestOffset(start, ALL)["parts"] == 9
    assert reader().latestOffset(start, ReadMaxRows(1000)) == at(750, 250)


def test_partitions_keep_their_numbers_when_the_index_knows_more(node: MemoryNode) -> None:
    whole = partition_ranges(reader(), at(0, 0), at(10, 20))
    assert whole == [(0, 0, 10), (1, 0, 20)]
    node.empty = (0,)
    assert partition_ranges(reader(), at(0, 0), at(10, 20)) == [None, (1, 0, 20)]
    (nothing, _) = reader().partitions(at(0, 0), at(10, 20))
    assert list(reader().read(nothing)) == []


def test_a_reader_travels_without_credential(node: MemoryNode) -> None:
    stream = reader()
    stream.partitions(at(0, 0), at(10, 0))
    assert pickle.loads(pickle.dumps(stream))._store is None


def test_what_is_lost_is_an_error_or_is_counted(node: MemoryNode) -> None:
    node.lost = {1: 7}
    with pytest.raises(ValueError, match=r"^brookmq: offsets that are to be read \(7 of partition 1\) are gone"):
        reader().partitions(at(0, 0), at(10, 20))
    stream = reader(failOnDataLoss="false")
    stream.partitions(at(0, 0), at(10, 20))
    stream.partitions(at(0, 0), at(10, 20))
    assert stream.reportLatestOffset() == {**at(10, 20), "lost": 14}


def test_a_named_reader_says_how_far_it_has_come(node: MemoryNode) -> None:
    stream = reader(readerName="me", startingPosition="earliest")
    stream.initialOffset()
    assert node.reported == [("me", {0: 0, 1: 0})]
    for offset in range(1, 6):
        node.now += 0.3
        stream.latestOffset(at(offset, offset), ALL)
    assert node.reported[1:] == [("me", {0: 4, 1: 4})]
    for _ in range(50):
        node.now += 1
        stream.latestOffset(at(5, 5), ALL)
    assert node.reported[2:] == [("me", {0: 5, 1: 5})]
    node.now += 60
    stream.latestOffset(at(5, 5), ALL)
    assert len(node.reported) == 4  # it is still there
    stream.latestOffset(at(6, 6), ALL)
    stream.stop()
    assert node.reported[4:] == [("me", {0: 6, 1: 6})]


def test_the_end_of_what_is_there_is_told_at_once(node: MemoryNode) -> None:
    stream = reader(readerName="me", startingPosition="earliest")
    stream.prepareForTriggerAvailableNow()
    stream.initialOffset()
    stream.latestOffset(at(4, 4), ALL)
    assert node.reported == [("me", {0: 0, 1: 0})]
    stream.latestOffset(at(10, 20), ALL)
    stream.latestOffset(at(10, 20), ALL)
    assert node.reported[1:] == [("me", {0: 10, 1: 20})]


def test_what_a_named_reader_has_lost_is_counted_by_the_node(node: MemoryNode) -> None:
    node.lost = {0: 3}
    for _ in range(2):  # the same batch once more, after a crash
        stream = reader(readerName="me", failOnDataLoss="false")
        stream.latestOffset(at(2, 0), ALL)
        stream.partitions(at(2, 0), at(10, 20))
        node.told_lost.add((1, 17))  # by a task
        stream.latestOffset(at(10, 20), ALL)
        assert node.told_lost == {(0, 2), (0, 3), (0, 4), (1, 17)}
        assert stream.reportLatestOffset() == {**at(10, 20), "lost": 4}
        stream.stop()


def test_a_reader_that_was_dropped_goes_on(node: MemoryNode) -> None:
    node.lost = {0: 3}
    stream = reader(readerName="me", failOnDataLoss="false")
    assert stream.partitions(at(2, 0), at(10, 20))
    assert node.told_lost == set()


def test_without_a_name_nothing_is_said(node: MemoryNode) -> None:
    stream = reader()
    stream.initialOffset()
    stream.latestOffset(at(1, 1), ALL)
    stream.stop()
    assert node.reported == []

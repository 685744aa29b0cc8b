"""Runs of records on an executor: every offset is accounted for, and what fails is tried again."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from brookmq.spark import journal_reader
from brookmq.spark.journal_reader import ReadSettings, ReadTask, read_task
from brookmq.spark.node_client import JournalFacts, NodeClient, Run, Shard, StoreAccess
from brookmq.spark.store_connection import StoreRefusedError
from tests.spark.records import MemoryStream

STORE = StoreAccess(("nats://127.0.0.1:1",), "reader-1", "secret", 1e10)
SETTINGS = ReadSettings(("http://127.0.0.1:1",), None, ("topic", "offset"), ("#",), True)


class World:
    """A stream, and the node that tells about it."""

    def __init__(self) -> None:
        self.stream = MemoryStream()
        self.stream.add_owner()
        self.first = 0  # the oldest offset that the node knows to be there
        self.accesses = 0

    def connection(self, store: StoreAccess) -> MemoryStream:
        return self.stream

    def journal(self, *, credential: bool = False) -> JournalFacts:
        self.accesses += credential
        return JournalFacts("id", "n@h", (Shard(0, "JOURNAL_0", self.first, self.stream.end),), STORE)

    def read(self, *runs: Run, settings: ReadSettings = SETTINGS) -> list[int]:
        batches = read_task(ReadTask(0, "JOURNAL_0", runs, "n@h", STORE), settings)
        return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(journal_reader, "_connection", made.connection)
    monkeypatch.setattr(NodeClient, "journal", made.journal)
    monkeypatch.setattr(journal_reader, "PAUSE_FIRST_S", 0.0)
    return made


def filled(world: World, batches: int = 8, rows: int = 10) -> list[int]:
    """Batches with summaries between some of them; their sequences."""
    found = []
    for number in range(batches):
        found.append(world.stream.add_batch(rows))
        if number % 3 == 2:
            world.stream.add_summary()
    return found


def test_a_run_is_read_whole(world: World) -> None:
    sequences = filled(world)
    assert world.read(Run(sequences[0], sequences[-1], 0, 80)) == list(range(80))
    assert len(world.stream.asked) > 2
    assert {stream for stream, *_ in world.stream.asked} == {"JOURNAL_0"}


def test_offsets_are_cut_to_the_row(world: World) -> None:
    sequences = filled(world)
    assert world.read(Run(sequences[1], sequences[4], 13, 47)) == list(range(13, 47))


def test_several_runs(world: World) -> None:
    sequences = filled(world)
    runs = Run(sequences[0], sequences[0], 0, 10), Run(sequences[3], sequences[4], 30, 45)
    assert world.read(*runs) == [*range(10), *range(30, 45)]


def test_topics_are_filtered(world: World) -> None:
    first = world.stream.add_batch(5, b"a/b")
    world.stream.add_batch(5, b"c/d")
    last = world.stream.add_batch(5, b"$events/e")
    assert world.read(Run(first, last, 0, 15)) == list(range(10))
    assert world.read(Run(first, last, 0, 15), settings=replace(SETTINGS, filters=("c/#", "$events/+"))) == [
        *range(5, 15)
    ]


@pytest.mark.parametrize("gone", [[0], [0, 1, 2], [3], [2, 3, 4], [7], [5, 6, 7]])
def test_what_is_gone_is_an_error_or_is_skipped(
    world: World, gone: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    sequences = filled(world)
    world.stream.purge(*(sequences[number] for number in gone))
    world.first = 80
    run = Run(sequences[0], sequences[-1], 3, 77)
    first, last = max(3, gone[0] * 10), min(77, gone[-1] * 10 + 10) - 1
    with pytest.raises(
        ValueError, match=f"^brookmq: offsets {first} to {last} of partition 0 are gone .* failOnDataLoss"
    ):
        world.read(run)
    with caplog.at_level(logging.WARNING, "brookmq.spark"):
        found = world.read(run, settings=replace(SETTINGS, fail_on_data_loss=False))
    assert found == [offset for offset in range(3, 77) if offset // 10 not in gone]
    assert f"{last - first + 1} offsets from {first} on are gone" in caplog.text


def test_what_a_named_reader_skips_is_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, object]] = []
    monkeypatch.setattr(NodeClient, "lose", lambda client, *what: told.append(what))
    sequences = filled(world)
    world.stream.purge(*sequences[:2], sequences[-1])
    world.first = 80
    named = replace(SETTINGS, fail_on_data_loss=False, reader_name="me")
    assert world.read(Run(sequences[0], sequences[-1], 3, 77), settings=named) == list(range(20, 70))
    assert told == [("me", {0: [(3, 20)]}), ("me", {0: [(70, 77)]})]

    def unknown(client: NodeClient, *what: object) -> None:
        raise LookupError("me")

    monkeypatch.setattr(NodeClient, "lose", unknown)
    assert world.read(Run(sequences[0], sequences[-1], 3, 77), settings=named) == list(range(20, 70))

    def away(client: NodeClient, *what: object) -> None:
        raise ConnectionError("brookmq: no node answers")

    monkeypatch.setattr(NodeClient, "lose", away)
    with pytest.raises(ConnectionError):
        world.read(Run(sequences[0], sequences[-1], 3, 77), settings=named)


def test_everything_is_gone(world: World) -> None:
    sequences = filled(world)
    world.stream.purge(*list(world.stream.records))
    world.first = 80
    with pytest.raises(ValueError, match="offsets 0 to 79 of partition 0"):
        world.read(Run(sequences[0], sequences[-1], 0, 80))


def test_a_summary_that_is_gone_is_no_loss(world: World) -> None:
    sequences = filled(world)
    world.stream.purge(sequences[2] + 1)
    assert world.read(Run(sequences[0], sequences[-1], 0, 80)) == list(range(80))


def test_a_store_that_is_behind_is_waited_for(world: World) -> None:
    sequences = filled(world)
    late = {one: world.stream.records.pop(one) for one in list(world.stream.records) if one >= sequences[4]}
    fetch = world.stream.fetch

    def fetch_late(stream: str, first: int, count: int) -> object:
        found = fetch(stream, first, count)
        if not found:
            world.stream.records |= late
        return found

    world.stream.fetch = fetch_late  # type: ignore[method-assign,assignment]
    assert world.read(Run(sequences[0], sequences[-1], 0, 80)) == list(range(80))


def test_a_connection_that_ends_is_made_anew_with_what_the_node_says_then(world: World) -> None:
    sequences = filled(world)
    world.stream.failures = [ConnectionError("lost"), StoreRefusedError("Authorization Violation"), OSError("refused")]
    assert world.read(Run(sequences[0], sequences[-1], 0, 80)) == list(range(80))
    assert world.accesses == 3


def test_a_credential_that_is_refused_again_and_again(world: World) -> None:
    sequences = filled(world)
    world.stream.failures = [StoreRefusedError("Authorization Violation")] * 3
    message = "^brookmq: the store at nats://127.0.0.1:1 refuses the credential .* Authorization Violation$"
    with pytest.raises(PermissionError, match=message):
        world.read(Run(sequences[0], sequences[-1], 0, 80))


def test_a_store_that_can_not_be_reached(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "PATIENCE_S", 0.0)
    sequences = filled(world)
    world.stream.failures = [ConnectionRefusedError(111, "refused")]
    with pytest.raises(ConnectionError, match=r"^brookmq: the store at nats://127.0.0.1:1 can't be reached from here"):
        world.read(Run(sequences[0], sequences[-1], 0, 80))


def test_a_record_that_is_broken_is_named(world: World) -> None:
    sequences = filled(world)
    world.stream.records[sequences[2]] = world.stream.records[sequences[2]][:-3]
    with pytest.raises(ValueError, match=f"^brookmq: JOURNAL_0, the record at {sequences[2]}: "):
        world.read(Run(sequences[0], sequences[-1], 0, 80))

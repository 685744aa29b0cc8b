"""Where queries go on: checkpoints one behind the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brookmq.base.errors import OperationError
from brookmq.spark.pipeline.checkpoints import KEPT, Checkpoints, Generation
from brookmq.spark.pipeline.documents import ReaderFacts
from brookmq.spark.pipeline.wanted import WantedQuery
from tests.spark.pipeline.memory_node import MemoryNode
from tests.spark.pipeline.test_wanted import one, rule, table

AT_CREATION = {0: 7, 1: 8}


@pytest.fixture
def node() -> MemoryNode:
    return MemoryNode(times={5.0: AT_CREATION, 6.0: {0: 20, 1: 20}})


def changed(**fields: Any) -> WantedQuery:
    return one(rule(sql='SELECT payload.u AS u FROM "b"', **fields))


def run(generation: Generation, *batches: tuple[int, int], unfinished: tuple[int, int] | None = None) -> None:
    """What Spark leaves behind."""
    checkpoint = generation.checkpoint
    for folder in ("commits", "offsets"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text('{"id":"00000000-1111"}')
    for number, ends in enumerate([*batches, *([unfinished] if unfinished else [])]):
        offset = {"journal": "journal", "offsets": {"0": ends[0], "1": ends[1]}}
        (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")
        (checkpoint / "offsets" / f".{number}.crc").write_text("")
    for number in range(len(batches)):
        (checkpoint / "commits" / str(number)).write_text("v1\n{}")


def test_a_rule_begins_where_it_was_made(tmp_path: Path, node: MemoryNode) -> None:
    generation = Checkpoints(tmp_path).prepare(one(rule()), "journal", node)
    assert generation.start == AT_CREATION
    assert generation.folder == tmp_path / "queries" / "rule.r" / "1"
    assert generation.reached() == AT_CREATION


def test_a_table_begins_with_all_there_is(tmp_path: Path, node: MemoryNode) -> None:
    assert Checkpoints(tmp_path).prepare(one(table()), "journal", node).start == node.firsts


def test_the_same_query_goes_on(tmp_path: Path, node: MemoryNode) -> None:
    first = Checkpoints(tmp_path).prepare(one(rule()), "journal", node)
    node.trouble = ConnectionError("not asked")
    again = Checkpoints(tmp_path).prepare(one(rule(description="other", revision=2)), "journal", node)
    assert again == first


def test_a_changed_rule_goes_on_behind_the_last_batch_that_was_finished(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    first = checkpoints.prepare(one(rule()), "journal", node)
    run(first, (9, 9), (11, 12), unfinished=(15, 15))
    assert first.query_id == "00000000-1111"
    second = checkpoints.prepare(changed(), "journal", node)
    assert (second.folder.name, second.start) == ("2", {0: 11, 1: 12})
    assert not second.checkpoint.exists()


def test_a_start_that_came_to_nothing_does_not_lose_the_place(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    run(checkpoints.prepare(one(rule()), "journal", node), (9, 9))
    checkpoints.prepare(changed(), "journal", node)
    assert checkpoints.prepare(changed(), "journal", node).start == {0: 9, 1: 9}
    back = checkpoints.prepare(one(rule()), "journal", node)
    assert (back.folder.name, back.start) == ("3", {0: 9, 1: 9})


def test_a_rule_that_is_changed_back_does_not_go_back(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    run(checkpoints.prepare(one(rule()), "journal", node), (9, 9))
    run(checkpoints.prepare(changed(), "journal", node), (13, 13))
    assert checkpoints.prepare(one(rule()), "journal", node).start == {0: 13, 1: 13}
    kept = sorted(path.name for path in (tmp_path / "queries" / "rule.r").iterdir())
    assert kept == ["2", "3"]
    assert len(kept) == KEPT


def test_a_rule_of_the_same_name_is_another_one(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    run(checkpoints.prepare(one(rule()), "journal", node), (9, 9))
    node.found_readers["rule.r"] = ReaderFacts({0: 9, 1: 9}, seen_at=7.0)
    assert checkpoints.prepare(one(rule(created_at=6.0)), "journal", node).start == node.times[6.0]


def test_a_table_at_another_place_is_another_one(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    run(checkpoints.prepare(one(table()), "journal", node), (9, 9))
    assert checkpoints.prepare(one(table(path="/lake/other")), "journal", node).start == node.firsts


def test_another_journal_is_read_from_where_the_rule_was_made(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    run(checkpoints.prepare(one(rule()), "journal", node), (9, 9))
    again = checkpoints.prepare(one(rule()), "another", node)
    assert (again.journal, again.start) == ("another", AT_CREATION)


def test_a_lost_folder_goes_on_where_the_node_says(tmp_path: Path, node: MemoryNode) -> None:
    node.found_readers["rule.r"] = ReaderFacts({0: 25}, seen_at=5.5)
    assert Checkpoints(tmp_path).prepare(one(rule()), "journal", node).start == {0: 25, 1: node.firsts[1]}
    assert Checkpoints(tmp_path / "b").prepare(one(rule(created_at=6.0)), "journal", node).start == node.times[6.0]


def test_what_cannot_be_read_is_said(tmp_path: Path, node: MemoryNode) -> None:
    checkpoints = Checkpoints(tmp_path)
    generation = checkpoints.prepare(one(rule()), "journal", node)
    run(generation, (9, 9))
    (generation.checkpoint / "offsets" / "0").write_text("v1\n{}\n-")
    with pytest.raises(OperationError, match="move the folder"):
        checkpoints.prepare(changed(), "journal", node)
    (generation.folder / "generation.json").write_text("{")
    with pytest.raises(OperationError, match=r"generation\.json can't be read"):
        checkpoints.prepare(one(rule()), "journal", node)

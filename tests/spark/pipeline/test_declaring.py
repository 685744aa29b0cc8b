"""`pipeline init`: the four tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from brookmq.base.errors import OperationError
from brookmq.base.rule_documents import TableBody
from brookmq.spark.pipeline.declaring import _FIELDS, KINDS, Declaration, declare
from tests.spark.pipeline.memory_node import MemoryNode

WANTED = Declaration(("a/#", "b"), Path("/lake"), "reading", "parquet")


def test_four_tables() -> None:
    node = MemoryNode()
    declare(node, WANTED)
    found = node.found_tables
    assert list(found) == list(KINDS) == [table.kind for table in found.values()]
    assert {table.schema_name for table in found.values()} == {None, "reading"}
    assert found["bronze"].schema_name is None
    assert [table.format for table in found.values()] == ["parquet", "parquet", "delta", "parquet"]
    assert {tuple(table.filter) for table in found.values()} == {("a/#", "b")}
    assert found["gold_last"].path == "/lake/gold_last"


def test_a_second_set() -> None:
    node = MemoryNode()
    declare(node, WANTED)
    declare(node, replace(WANTED, prefix="plant_", folder=Path("rel")))
    assert len(node.found_tables) == 8
    assert node.found_tables["plant_silver"].path == str(Path("rel/plant_silver").absolute())


def test_what_is_there_is_not_changed_by_accident() -> None:
    node = MemoryNode()
    declare(node, WANTED)
    declare(node, WANTED)  # the same again
    with pytest.raises(OperationError, match="another table bronze"):
        declare(node, replace(WANTED, filters=("c",)))
    assert node.found_tables["gold_minute"].filter == ["a/#", "b"]
    declare(node, replace(WANTED, filters=("c",), replace=True))
    assert node.found_tables["gold_minute"].filter == ["c"]


def test_all_that_a_user_says_is_compared() -> None:
    assert {field.alias or name for name, field in TableBody.model_fields.items()} == _FIELDS

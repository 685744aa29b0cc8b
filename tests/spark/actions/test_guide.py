"""The guide of the sinks: its documents are accepted, and its programs read what the actions write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from brookmq.base.rule_documents import ACTION_TYPES, parse_action
from tests.spark.actions.dying import Mortals, mortals

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "rule-sinks.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_documents_of_the_guide_are_accepted() -> None:
    kinds = {parse_action(json.loads(block)).type for block in blocks("json")}
    assert kinds == set(ACTION_TYPES) - {"republish"}


def test_every_setting_is_in_the_guide() -> None:
    text = PAGE.read_text("utf-8")
    for block in blocks("json"):
        for name in type(parse_action(json.loads(block))).model_fields:
            assert f"`{name}`" in text or f'"{name}"' in text, name


def test_programs_of_the_guide_read_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mortals() as processes:
        _write_tables(processes, tmp_path)
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    results = []
    for program in blocks("python"):
        program = program.replace("/data/warehouse", str(tmp_path / "warehouse"))
        *lines, last = program.rstrip().splitlines()
        exec("\n".join(lines), found)
        results.append(eval(last.split("  #")[0], found))
    delta, _vacuumed, iceberg, parquet = results
    assert delta.num_rows == iceberg.num_rows == 50
    assert sorted(parquet["number"].to_pylist()) == list(range(10))


def _write_tables(processes: Mortals, folder: Path) -> None:
    documents = [
        {"type": "delta", "path": str(folder / "lake" / "readings")},
        {"type": "iceberg", "warehouse": str(folder / "warehouse"), "table": "plant.readings"},
        {"type": "parquet", "path": str(folder / "lake" / "raw")},
    ]
    for document in documents:
        assert processes.write(document, 0) == 100

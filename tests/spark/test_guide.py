"""The guide to Spark says what is so: its tables are generated, its programs are run, its errors are in the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from brookmq.base.config import Config
from brookmq.base.errors import CallerError
from brookmq.spark.guide import COLUMN_MEANINGS, PARTS, SOURCE_USES
from brookmq.spark.options import SOURCE, source_options
from brookmq.spark.planning import ROWS_WORTH_A_PART
from brookmq.spark.push_down import TOPICS_MAX
from brookmq.spark.rules.guide import fill
from brookmq.spark.schema import COLUMNS
from tests.spark.journal_node import JournalNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"
SOURCES = Path(__file__).parents[2] / "src" / "brookmq" / "spark"
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
ROOMS = ["attic", "hall", "kitchen"]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalNode]:
    node = JournalNode(tmp_path_factory.mktemp("node"))
    node.publish_all([(f"sensors/{room}/data", b'{"temp": %d}' % n) for n in range(20) for room in ROOMS])
    yield node
    node.stop()


def test_tables_are_up_to_date() -> None:
    text = GUIDE.read_text()
    assert fill(text, PARTS) == text


def test_markers_are_needed() -> None:
    with pytest.raises(CallerError, match="markers"):
        fill("# Spark", PARTS)


def test_every_option_and_column_is_explained() -> None:
    assert list(SOURCE_USES) == list(SOURCE)
    assert list(COLUMN_MEANINGS) == list(COLUMNS)
    assert not any("|" in text for text in (*SOURCE.values(), *COLUMN_MEANINGS.values()))


def test_defaults_are_those_of_the_code() -> None:
    found = source_options({})
    assert SOURCE_USES["servers"].default == f"`{found.servers[0]}`"
    assert SOURCE_USES["filter"].default.startswith(f"`{found.filters[0]}`")
    assert SOURCE_USES["failOnDataLoss"].default == f"`{found.fail_on_data_loss}`".lower()
    assert SOURCE_USES["pushDown"].default == f"`{found.push_down}`".lower()
    assert found.columns == tuple(COLUMNS)
    assert (found.token, found.rows_max, found.partitions_min, found.reader_name) == (None, None, None, None)


def test_numbers_are_those_of_the_code() -> None:
    text = GUIDE.read_text()
    assert f"[{len(COLUMNS)} columns](#columns)" in text
    assert f"more than {ROWS_WORTH_A_PART:,} rows" in text
    assert f"`IN` (up to {TOPICS_MAX})" in text
    journal = Config().journal
    assert f"`journal.shards` partitions ({journal.shards} unless" in text
    assert journal.readers_wait == 7 * 24 * 3600
    assert "`journal.readers_wait` (7 days)" in text


def test_errors_are_those_of_the_code() -> None:
    code = "".join(re.sub(r'"\n\s+f?"', "", file.read_text()) for file in SOURCES.glob("*.py"))
    quoted = re.findall(r"^\| `(.+?)` \| ", GUIDE.read_text().partition("## When something is wrong")[2], re.MULTILINE)
    assert len(quoted) >= 7
    for message in quoted:
        for part in re.split(r"…|'startingOffsets'; |http://|nats://|\(…\)|\(refused\)", message):
            assert part.strip(" ?") in code, message


def test_programs_run(
    spark: SparkSession, journal: JournalNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = PROGRAM.findall(GUIDE.read_text())
    assert len(programs) >= 6
    names: dict[str, Any] = {}
    for program in programs:
        program = program.replace('format("brookmq")', f'format("brookmq").option("servers", "{journal.url}")')
        for folder in ("lake/", "checkpoints/"):
            program = program.replace(f'"{folder}', f'"{tmp_path}/{folder}')
        exec(compile(program, str(GUIDE), "exec"), names)
    assert names["spark"] is spark
    assert names["halls"].count() == 40
    assert names["readings"].groupBy("room").avg("temp").sort("room").collect() == [(room, 9.5) for room in ROOMS]
    assert names["query"].lastProgress["numInputRows"] in (0, 60)  # a batch without rows may close the windows
    shown = capsys.readouterr().out
    assert '{"temp": ' in shown
    assert "lag 0" in shown
    assert "hourly-report" in {reader["name"] for reader in readers(journal)}


def readers(journal: JournalNode) -> list[dict[str, Any]]:
    with urlopen(f"{journal.url}/api/v1/readers") as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found

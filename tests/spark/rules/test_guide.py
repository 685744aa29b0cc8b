"""The guide says what is so: its tables are generated, its examples are run."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from brookmq.base.errors import CallerError
from brookmq.spark.rules import Schema, compile_rule
from brookmq.spark.rules.checking import checked_name
from brookmq.spark.rules.functions import FUNCTIONS, GROUPS
from brookmq.spark.rules.guide import fill
from brookmq.spark.rules.parsing import COLUMNS_MAX, FILTERS_MAX
from brookmq.spark.rules.testing import sample_messages, try_rule
from brookmq.spark.rules.tokens import TEXT_CHARACTERS_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "rules.md"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EXAMPLE = re.compile(
    r"(?:```json\n(?P<schema>.*?)```\n\n)?```sql\n(?P<sql>.*?)```\n\n```\n(?P<lines>.*?)```", re.DOTALL
)


class Example(NamedTuple):
    sql: str
    schema: Schema | None
    messages: list[dict[str, Any]]
    rows: list[dict[str, Any]]


def examples() -> list[Example]:
    found = []
    for match in EXAMPLE.finditer(GUIDE.read_text()):
        messages, rows = [], []
        for number, line in enumerate(match["lines"].splitlines()):
            left, _, right = line.partition("→")
            if left.strip():
                topic, payload = left.strip().split(maxsplit=1)
                at = NOON + timedelta(seconds=number)
                messages.append({"topic": topic, "payload": payload, "client_id": "d7", "published_at": at})
            if right.strip() not in ("", "nothing"):
                rows.append(json.loads(right))
        schema = None
        if match["schema"]:
            said = json.loads(match["schema"])
            schema = Schema.checked(said["name"], said["kind"], said["definition"])
        found.append(Example(match["sql"], schema, messages, rows))
    return found


EXAMPLES = examples()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert GUIDE.read_text().count("```sql") == len(EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.sql.split("\n")[0])
def test_examples(spark: SparkSession, example: Example) -> None:
    found = try_rule(spark, compile_rule(example.sql, example.schema), sample_messages(example.messages))
    assert list(found.rows) == example.rows


def test_tables_are_up_to_date() -> None:
    text = GUIDE.read_text()
    assert fill(text) == text


def test_markers_are_needed() -> None:
    with pytest.raises(CallerError, match="markers"):
        fill("# Rules")


def test_limits_are_those_of_the_code() -> None:
    text = GUIDE.read_text()
    assert f"{TEXT_CHARACTERS_MAX:,} characters" in text
    assert f"{COLUMNS_MAX} columns" in text
    assert f"{FILTERS_MAX} topic filters" in text


def test_other_names_are_in_the_guide() -> None:
    text = GUIDE.read_text()
    for name, function in FUNCTIONS.items():
        assert f"`{name}`" in text or name == function.name


def test_functions_are_shown_with_their_names_once() -> None:
    names = [function.name for group in GROUPS.values() for function in group]
    assert len(names) == len(set(names))
    for group in GROUPS.values():
        for function in group:
            assert function.shown.startswith(f"{function.name}(")
            assert "|" not in function.shown + function.doc
            assert checked_name(function.name, 0)

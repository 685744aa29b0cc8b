"""Batches as tables in a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from brookmq.base.rule_documents import ConsoleAction
from brookmq.spark.actions.console import CELL_CHARACTERS_MAX, ConsolePrinter, shown
from tests.spark.actions.frames import ROWS, key, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def printed(frame: DataFrame, rows_max: int = 20) -> tuple[str, int]:
    output = io.StringIO()
    console = Console(file=output, width=160, force_terminal=True, color_system=None)
    count = ConsolePrinter(ConsoleAction(rows=rows_max), frame.schema, console).write(frame, key(5))
    return output.getvalue(), count


def test_the_first_rows_are_shown_and_all_are_counted(spark: SparkSession) -> None:
    text, count = printed(rows(spark, 0, "number", "topic", "reading"), 3)
    assert count == ROWS
    assert "batch 5: 100 rows, the first 3 are shown" in text
    assert "sensors/2" in text
    assert "sensors/3" not in text
    assert '{"t":1}' in text


def test_less_rows_than_fit_are_all_shown(spark: SparkSession) -> None:
    text, _ = printed(rows(spark, 0, "number", "payload").where("number IN (1, 98)"))
    assert "batch 5: 2 rows\n" in text
    assert "p1" in text
    assert "p98" in text


def test_a_batch_is_printed_once_and_one_without_rows_never(spark: SparkSession) -> None:
    output = io.StringIO()
    frame = rows(spark, 0, "number")
    printer = ConsolePrinter(ConsoleAction(), frame.schema, Console(file=output))
    assert printer.write(frame, key(0)) == ROWS
    before = output.getvalue()
    assert printer.write(frame, key(0)) == 0
    assert printer.write(frame.where("number < 0"), key(1)) == 0
    assert output.getvalue() == before
    printer.close()


def test_nothing_from_a_device_steers_the_terminal(spark: SparkSession) -> None:
    text, _ = printed(rows(spark, 0, bad="concat('a', char(27), '[2J', char(7), '[red]b[/red]')").limit(1))
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "[red]b[/red]" in text


def test_values_as_text() -> None:
    assert shown(None) == ""
    assert shown(b"text") == "text"
    assert shown(b"\xff\x00") == "ff00"
    assert shown("two\nlines") == "two\N{REPLACEMENT CHARACTER}lines"
    assert shown("x" * 1000) == "x" * CELL_CHARACTERS_MAX + "…"

"""What the commands print: tables for people, tab-separated lines for pipes, JSON for programs.

Names come from clients and may hold control characters. A terminal would obey them, so they are printed escaped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import click

Row = Mapping[str, Any]
Column = tuple[str, Callable[[Row], object]]

FOLDED_CELL = 24
"""Characters from which on a column of a table is folded where the terminal is too narrow."""


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_listing(rows: Iterable[Row], columns: Sequence[Column], *, limit: int | None, as_json: bool) -> None:
    """Print up to ``limit`` rows, and on stderr whether there are more."""
    rows = iter(rows)
    shown = islice(rows, limit)
    if as_json:
        _print_json_rows(shown)
    elif _in_terminal():
        _print_table([_cells(row, columns) for row in shown], columns)
    else:
        click.echo("\t".join(title for title, _ in columns))
        for row in shown:
            click.echo("\t".join(_cells(row, columns)))
    if next(rows, None) is not None:
        click.echo(f"There are more than these {limit}: --limit shows more, --all shows all.", err=True)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one to a line."""
    if not _in_terminal():
        for name, value in facts.items():
            click.echo(f"{name}\t{printable(value)}")
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        click.echo(f"{click.style(name.ljust(width), dim=True)}  {printable(value)}")


def printable(value: object) -> str:
    """A value as text that a terminal only shows."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def moment(text: str | None) -> str | None:
    """A point in time in the local zone."""
    return None if text is None else f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"


def moment_of(seconds: float | None) -> str | None:
    """The same for unix seconds."""
    return None if seconds is None else moment(datetime.fromtimestamp(seconds, UTC).isoformat())


def age(text: str | None) -> str | None:
    """How long ago a point in time was."""
    return None if text is None else duration((datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds())


def duration(seconds: float) -> str:
    """A length of time in its two largest units."""
    minutes, rest_s = divmod(max(int(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"


def size(count_bytes: float) -> str:
    """A number of bytes, short."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count_bytes >= factor:
            return f"{count_bytes / factor:.1f} {unit}"
    return f"{count_bytes:.0f} B"


def _in_terminal() -> bool:
    return sys.stdout.isatty()


def _cells(row: Row, columns: Sequence[Column]) -> list[str]:
    return [printable(value(row)) for _, value in columns]


def _print_json_rows(rows: Iterable[Row]) -> None:
    """A JSON array, written as the rows come, so that a million of them need no room."""
    separator = "[\n"
    for row in rows:
        click.echo(f"{separator}  {json.dumps(row, ensure_ascii=False)}", nl=False)
        separator = ",\n"
    click.echo("[]" if separator == "[\n" else "\n]")


def _print_table(rows: Sequence[Sequence[str]], columns: Sequence[Column]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        click.echo("none")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for index, (title, _) in enumerate(columns):
        cells = [row[index] for row in rows]
        numeric = all(cell.isdigit() or cell == "-" for cell in cells) and any(map(str.isdigit, cells))
        foldable = max(map(len, cells)) > FOLDED_CELL
        table.add_column(title, justify="right" if numeric else "left", overflow="fold", no_wrap=not foldable)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)

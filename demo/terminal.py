"""What the demo shows while it runs: steps with their times, and below them the devices and the pipeline as they are.

In a terminal that is one picture that changes; into a pipe go lines.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from demo.node_api import QueryNow

STATE_STYLES = {"running": "green", "failed": "red", "starting": "yellow", "waiting": "yellow"}


class Screen(Protocol):
    """Where progress is shown."""

    def begin(self, title: str) -> None:
        """A step; the one before is done."""

    def tell(self, text: str) -> None:
        """Something about the step."""

    def show(self, queries: Sequence[QueryNow]) -> None:
        """The pipeline as it is."""

    def end(self) -> None:
        """The last step is done."""


@dataclass(slots=True)
class _Step:
    title: str
    began: float = field(default_factory=time.monotonic)
    took_s: float | None = None
    note: str = ""

    def end(self) -> None:
        if self.took_s is None:
            self.took_s = time.monotonic() - self.began


class LiveScreen:
    """For a terminal."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._queries: Sequence[QueryNow] = ()
        self._spinner = Spinner("dots", style="cyan")

    def begin(self, title: str) -> None:
        self.end()
        self._steps.append(_Step(title))

    def tell(self, text: str) -> None:
        self._steps[-1].note = text

    def show(self, queries: Sequence[QueryNow]) -> None:
        self._queries = queries

    def end(self) -> None:
        if self._steps:
            self._steps[-1].end()

    def __rich__(self) -> RenderableType:
        steps = Table.grid(padding=(0, 1))
        for step in self._steps:
            took_s = time.monotonic() - step.began if step.took_s is None else step.took_s
            mark: RenderableType = self._spinner if step.took_s is None else Text("✓", "bold green")
            title = Text(step.title, "bold" if step.took_s is None else "")
            steps.add_row(mark, title, Text(f"{took_s:4.1f} s", "dim"), Text(step.note, "cyan"))
        parts: list[RenderableType] = [Padding(steps, (1, 1))]
        if self._queries:
            parts.append(Padding(_queries_table(self._queries), (0, 2)))
        return Group(*parts)


def _queries_table(queries: Sequence[QueryNow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    table.add_column("in Spark")
    table.add_column("")
    for title in ("messages", "rows out", "lag"):
        table.add_column(title, justify="right", min_width=9)
    for query in queries:
        state = Text(query.state, STATE_STYLES.get(query.state, ""))
        table.add_row(query.name, state, f"{query.matched:,}", f"{query.passed:,}", f"{query.lag:,}")
    return table


class LineScreen:
    """For everything else: a line for each step, and nothing in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step: _Step | None = None

    def begin(self, title: str) -> None:
        self.end()
        self._step = _Step(title)

    def tell(self, text: str) -> None:
        assert self._step is not None
        self._step.note = text

    def show(self, queries: Sequence[QueryNow]) -> None:
        """Too much for lines."""

    def end(self) -> None:
        if self._step is not None and self._step.took_s is None:
            self._step.end()
            note = f": {self._step.note}" if self._step.note else ""
            self._console.print(f"{self._step.took_s:5.1f} s  {self._step.title}{note}", highlight=False)


def screen_for(console: Console) -> tuple[Screen, AbstractContextManager[object]]:
    """A screen, and what has to be entered while it is used."""
    if console.is_terminal:
        live = LiveScreen()
        return live, Live(live, console=console, refresh_per_second=10)
    return LineScreen(console), nullcontext()
